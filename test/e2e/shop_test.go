// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The connections of the application's config/queue.php that the tests use.
const (
	onRedis    = "redis"
	onDatabase = "database" // MariaDB
)

var connections = []string{onRedis, onDatabase}

// shop is the application with a queue, tables and job names of its own.
type shop struct {
	name       string
	connection string
	env        []corev1.EnvVar
}

var shops atomic.Int32

// newShop makes the tables.
func newShop(t *testing.T, connection string) *shop {
	t.Helper()
	s := &shop{name: fmt.Sprintf("shop%d", shops.Add(1)), connection: connection}
	for name, value := range map[string]string{
		"QUEUE_CONNECTION": connection,
		"REDIS_HOST":       redisAddress,
		"REDIS_PREFIX":     s.name + "_",
		"DB_CONNECTION":    "mysql",
		"DB_HOST":          mariaAddress,
		"DB_USERNAME":      "shop",
		"DB_DATABASE":      s.name,
		"PROVIDER_URL":     "http://" + providerAddress + ":8080",
		"JOURNAL_URL":      "http://" + providerAddress + ":8080/journal",
	} {
		s.env = append(s.env, corev1.EnvVar{Name: name, Value: value})
	}
	if _, err := mariaSQL(t.Context(), "CREATE DATABASE "+s.name); err != nil {
		t.Fatal(err)
	}
	s.artisan(t, "app:schema")
	return s
}

// artisan runs one command of the application and returns what it prints.
func (s *shop) artisan(t *testing.T, words ...string) string {
	t.Helper()
	command := []string{"env"}
	for _, variable := range s.env {
		command = append(command, variable.Name+"="+variable.Value)
	}
	out, err := execIn(t.Context(), "console", append(append(command, "php", "artisan"), words...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dispatch queues one job; its name is the shop's, a dash and the given one.
func (s *shop) dispatch(t *testing.T, class, name string, facts map[string]any, words ...string) {
	t.Helper()
	all := map[string]any{"name": s.job(name)}
	for key, value := range facts {
		all[key] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	s.artisan(t, append([]string{"app:dispatch", class, string(text)}, words...)...)
}

// job is the full name of a job.
func (s *shop) job(name string) string { return s.name + "-" + name }

// seconds are the facts of a job that lasts so long.
func seconds(n float64) map[string]any { return map[string]any{"seconds": n} }

// queueCounts is what the queue's own tables say.
type queueCounts struct{ Failed, Waiting, Reserved int }

func (s *shop) counts(t *testing.T) queueCounts {
	t.Helper()
	var c queueCounts
	if out := s.artisan(t, "app:counts"); json.Unmarshal([]byte(out), &c) != nil {
		t.Fatalf("app:counts printed %q", out)
	}
	return c
}

// nothingLeft asserts that the queue is empty and nothing failed.
func (s *shop) nothingLeft(t *testing.T) {
	t.Helper()
	if c := s.counts(t); c != (queueCounts{}) {
		t.Errorf("the queue's tables say %+v, wanted all zero", c)
	}
}

// note is one line of the journal: what a job said of itself.
type note struct {
	Event, Class, Name string
	At                 float64
	Host               string // the pod
	PID, Attempt       int

	// What a provider answered, in the notes answer and paid.
	ID, Problem string
	Status      int
	Replayed    bool
}

func (n note) time() time.Time { return time.Unix(0, int64(n.At*1e9)) }

// jobRun is one run of a job.
type jobRun struct {
	pod        string
	pid        int
	start, end time.Time // end is zero while it runs, and for ever where it was killed
}

// runs are all runs of the shop's jobs, by name without the shop's, in the order in which they began.
func (s *shop) runs(t *testing.T) map[string][]jobRun {
	t.Helper()
	all := map[string][]jobRun{}
	for _, n := range s.notes(t) {
		name := strings.TrimPrefix(n.Name, s.job(""))
		switch n.Event {
		case "start":
			all[name] = append(all[name], jobRun{pod: n.Host, pid: n.PID, start: n.time()})
		case "end":
			all[name] = ended(all[name], n)
		}
	}
	return all
}

// notes are what the shop's jobs wrote into the journal.
func (s *shop) notes(t *testing.T) []note {
	t.Helper()
	var all []note
	for line := range bytes.Lines(atProvider(t, "/journal", s.job(""))) {
		var n note
		if err := json.Unmarshal(line, &n); err != nil {
			t.Fatalf("journal line %q: %v", line, err)
		}
		all = append(all, n)
	}
	return all
}

// atProvider asks the provider about what begins so.
func atProvider(t *testing.T, path, of string) []byte {
	t.Helper()
	text, err := suite.client.CoreV1().Services(namespace).ProxyGet("http", "provider", "8080", path, map[string]string{"of": of}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ended closes the run that is open on the pod that wrote the note.
func ended(runs []jobRun, n note) []jobRun {
	for i := range runs {
		if runs[i].pod == n.Host && runs[i].end.IsZero() {
			runs[i].end = n.time()
			break
		}
	}
	return runs
}

// inJob maps each pod that is inside a job to that job.
func (s *shop) inJob(t *testing.T) map[string]string {
	t.Helper()
	busy := map[string]string{}
	for name, runs := range s.runs(t) {
		for _, r := range runs {
			if r.end.IsZero() {
				busy[r.pod] = name
			}
		}
	}
	return busy
}

// started waits until a job has begun so many times, and returns its runs.
func (s *shop) started(t *testing.T, name string, times int) []jobRun {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d runs of job %s", times, s.job(name)), func() bool { return len(s.runs(t)[name]) >= times })
	return s.runs(t)[name]
}

// finished waits until a job's first run has ended and returns it.
func (s *shop) finished(t *testing.T, name string) jobRun {
	t.Helper()
	eventually(t, patience, "the end of job "+s.job(name), func() bool {
		runs := s.runs(t)[name]
		return len(runs) > 0 && !runs[0].end.IsZero()
	})
	return s.runs(t)[name][0]
}

// ranOnce asserts that a job ran once and for its whole time.
func (s *shop) ranOnce(t *testing.T, name string, seconds float64) jobRun {
	t.Helper()
	runs := s.runs(t)[name]
	if fault := notOnce(runs, seconds); fault != "" {
		t.Fatalf("job %s %s: %+v", s.job(name), fault, runs)
	}
	return runs[0]
}

// notOnce says what is wrong with the runs of a job that should have run once and for its whole time; empty for nothing. PHP's
// sleep may wake a millisecond early.
func notOnce(runs []jobRun, seconds float64) string {
	if len(runs) != 1 || runs[0].end.IsZero() {
		return "has not run once and whole"
	}
	if took := runs[0].end.Sub(runs[0].start).Seconds(); took < seconds-0.005 {
		return fmt.Sprintf("was cut to %.2f s of its %.0f s", took, seconds)
	}
	return ""
}
