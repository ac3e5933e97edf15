// SPDX-License-Identifier: Apache-2.0

// Package measure holds what the benchmarks share: figures and verdicts, and a
// control plane with the real manager beside it.
package measure

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Percentile is the value that p percent of the values do not exceed. It sorts
// them; of no values it is zero.
func Percentile[T float64 | time.Duration](values []T, p int) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)*p/100]
}

// Median is the 50th percentile.
func Median[T float64 | time.Duration](values []T) T { return Percentile(values, 50) }

// Milliseconds for tables.
func Milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// Verdicts compares figures with targets and remembers whether one was missed.
type Verdicts struct {
	Out    io.Writer
	missed int
}

// AtMost expects a figure of at most the limit.
func (v *Verdicts) AtMost(what string, got, limit float64, unit string) {
	v.say(got <= limit, what, figure(got, unit), "at most "+number(limit))
}

// AtLeast expects a figure of at least the limit.
func (v *Verdicts) AtLeast(what string, got, limit float64, unit string) {
	v.say(got >= limit, what, figure(got, unit), "at least "+number(limit))
}

func (v *Verdicts) say(met bool, what, got, wanted string) {
	word := "met   "
	if !met {
		word = "MISSED"
		v.missed++
	}
	_, _ = fmt.Fprintf(v.Out, "%s  %s: %s (%s)\n", word, what, got, wanted)
}

func figure(value float64, unit string) string {
	if unit == "" {
		return number(value)
	}
	return number(value) + " " + unit
}

func number(value float64) string {
	if value == float64(int64(value)) {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// Err says how many targets were missed; nil when none was.
func (v *Verdicts) Err() error {
	if v.missed == 0 {
		return nil
	}
	return fmt.Errorf("targets missed: %d", v.missed)
}

// Machine describes where and when figures were measured. Others' load is part
// of it: it decides what they are worth.
func Machine() string {
	load := field("/proc/loadavg", "")
	return fmt.Sprintf("%s, %d cores, %s, load %s, %s", strings.TrimSpace(field("/proc/cpuinfo", "model name")), runtime.NumCPU(),
		runtime.Version(), strings.Join(strings.Fields(load)[:min(3, len(strings.Fields(load)))], " "), time.Now().Format("2006-01-02 15:04"))
}

// field is what follows a key and a colon in a file of the kernel's; the first
// line without a key.
func field(path, key string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for _, line := range strings.Split(string(content), "\n") {
		if name, value, _ := strings.Cut(line, ":"); key == "" {
			return line
		} else if strings.TrimSpace(name) == key {
			return value
		}
	}
	return ""
}
