// SPDX-License-Identifier: Apache-2.0

package laravel

import (
	"strconv"
	"strings"
)

// QueueWork is one `php artisan queue:work`.
type QueueWork struct {
	PHP        string   // the php binary
	Artisan    string   // the artisan file
	Connection string   // of config/queue.php
	Queues     []string // in priority order; none = the connection's own queue

	Timeout int32   // seconds a job may take
	Tries   int32   // runs a job may have, 0 = unlimited
	Backoff []int32 // seconds before the second run, the third, ...; none = 0
	Sleep   int32   // seconds an idle worker waits
	Memory  int32   // MiB above which the worker stops itself

	MaxTime int32 // seconds after which the worker stops itself, 0 = never
	MaxJobs int32 // jobs after which the worker stops itself, 0 = never
	Rest    int32 // seconds between two jobs, 0 = none

	ExtraArgs []string // appended as they are
}

// Command is the command line, its options always in the same order. An option
// whose value is Laravel's own "off" is left out: --rest is unknown before 8.32.
func (w QueueWork) Command() []string {
	command := []string{w.PHP, w.Artisan, "queue:work", w.Connection}
	if len(w.Queues) > 0 {
		command = append(command, "--queue="+strings.Join(w.Queues, ","))
	}
	command = append(command, option("timeout", w.Timeout), option("tries", w.Tries))
	if len(w.Backoff) > 0 {
		command = append(command, "--backoff="+commaList(w.Backoff))
	}
	command = append(command, option("sleep", w.Sleep), option("memory", w.Memory))
	for _, limit := range []struct {
		name  string
		value int32
	}{{"max-time", w.MaxTime}, {"max-jobs", w.MaxJobs}, {"rest", w.Rest}} {
		if limit.value > 0 {
			command = append(command, option(limit.name, limit.value))
		}
	}
	return append(command, w.ExtraArgs...)
}

func option(name string, value int32) string {
	return "--" + name + "=" + strconv.Itoa(int(value))
}

func commaList(numbers []int32) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(int(n))
	}
	return strings.Join(words, ",")
}
