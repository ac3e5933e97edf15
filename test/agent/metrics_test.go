// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// releases is a job that goes back to the queue by its own wish, once.
const releases = `<?php

namespace App\Jobs;

class Releases extends Job
{
    public $secret = '';

    protected function run(): void
    {
        if ($this->attempts() < 2) {
            $this->release(0);
        }
    }
}
`

// scraped is a worker with metrics.
type scraped struct {
	*worker
	address string
}

func (a *app) startScraped(t *testing.T, p plan) *scraped {
	t.Helper()
	address := "127.0.0.1:" + must[string](t)(takePort())
	p.env = append(p.env, "QUEUEWORKER_METRICS="+address)
	return &scraped{a.start(t, p), address}
}

func (s *scraped) scrape(t *testing.T) map[string]string {
	t.Helper()
	response, err := http.Get("http://" + s.address + "/metrics")
	if err != nil {
		return nil // not yet, or no more
	}
	defer response.Body.Close()
	return samples(t, response.Body)
}

// value is one sample without its prefix; -1 where there is none.
func value(found map[string]string, name string) float64 {
	n, err := strconv.ParseFloat(found["queueworker_worker_"+name], 64)
	if err != nil {
		return -1
	}
	return n
}

func (s *scraped) becomes(t *testing.T, name string, want float64) {
	t.Helper()
	var found map[string]string
	defer func() {
		if t.Failed() {
			t.Logf("%v", found)
		}
	}()
	eventually(t, patience, fmt.Sprintf("%s %g", name, want), func() bool {
		found = s.scrape(t)
		return value(found, name) == want
	})
}

// Every run of every job is counted once, under its class and its result, on
// both drivers and over the worker's recycling.
func TestWorkerMetrics(t *testing.T) {
	const secret = "4111-PLANTED"
	for _, queue := range []string{onRedis, onMariaDB} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			for name, text := range map[string]string{"Leaks": leaks, "Releases": releases} {
				if err := os.WriteFile(filepath.Join(a.dir, "app/Jobs/"+name+".php"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			a.dispatch(t, "Short", facts(secret), "--times=25")
			a.dispatch(t, "Fails", facts(secret, "tries", 1), "--times=3")
			a.dispatch(t, "Fails", facts(secret, "tries", 2))
			a.dispatch(t, "GivesUp", facts(secret))
			a.dispatch(t, "Releases", facts(secret, "tries", 3))
			a.dispatch(t, "Leaks", facts(secret, "secret", secret, "shown", "Charge of "+secret, "tries", 1))
			a.dispatch(t, "Nests", facts(secret, "seconds", 0))
			s := a.startScraped(t, plan{work: []string{"--sleep=0.1", "--max-jobs=10"}})
			s.becomes(t, `jobs_total{class="App\\Jobs\\Releases",result="processed"}`, 1)
			s.becomes(t, `jobs_total{class="App\\Jobs\\Fails",result="failed"}`, 4)
			a.dispatch(t, "Long", facts("long", "seconds", 4))
			s.becomes(t, `job_bound_seconds`, 55)
			found := s.scrape(t)
			if age := value(found, `job_seconds{class="App\\Jobs\\Long"}`); age < 0 || age > 60 {
				t.Errorf("the running job's age is %g", age)
			}
			s.becomes(t, `jobs_total{class="App\\Jobs\\Long",result="processed"}`, 1)
			found = s.scrape(t)
			for name, want := range map[string]float64{
				`jobs_total{class="App\\Jobs\\Short",result="processed"}`:        25,
				`jobs_total{class="App\\Jobs\\Fails",result="exception"}`:        1,
				`jobs_total{class="App\\Jobs\\GivesUp",result="failed"}`:         1,
				`jobs_total{class="App\\Jobs\\Releases",result="released"}`:      1,
				`jobs_total{class="other",result="failed"}`:                      1,
				`jobs_total{class="App\\Jobs\\Nests",result="processed"}`:        1,
				`job_duration_seconds_count{class="App\\Jobs\\Short"}`:           25,
				`job_duration_seconds_bucket{class="App\\Jobs\\Long",le="1"}`:    0,
				`job_duration_seconds_bucket{class="App\\Jobs\\Long",le="1800"}`: 1,
				`redeliveries_total{class="App\\Jobs\\Fails"}`:                   1,
				`redeliveries_total{class="App\\Jobs\\Releases"}`:                1,
				`redeliveries_total{class="App\\Jobs\\Short"}`:                   0,
				`releases_total{class="App\\Jobs\\Fails"}`:                       1,
				`releases_total{class="App\\Jobs\\Releases"}`:                    1,
				`lost_runs_total`:      0,
				`watchdog_kills_total`: 0,
			} {
				if got := value(found, name); got != want {
					t.Errorf("%s is %g, wanted %g", name, got, want)
				}
			}
			// From Laravel 11.52 on a worker says why it stops.
			if n := max(value(found, `recycles_total{cause="other"}`), value(found, `recycles_total{cause="max_jobs"}`)); n < 3 {
				t.Errorf("%g recycles of 35 runs in tens", n)
			}
			if age := value(found, "heartbeat_age_seconds"); age < 0 || age > 60 {
				t.Errorf("the heartbeat is %g s old", age)
			}
			if all := fmt.Sprint(found); strings.Contains(all, "PLANTED") || strings.Contains(all, "4111") {
				t.Errorf("it tells: %s", all)
			}
			files, _ := filepath.Glob(s.dir.Run() + "/*.runs")
			if len(files) > 1 {
				t.Errorf("files of workers that are gone: %q", files)
			}
			s.drain(t)
			s.becomes(t, `drains_total{outcome="Drained"}`, 1)
			s.stop(t)
		})
	}
}

// A job's own time limit, and the watchdog's.
func TestWorkerMetricsOfTimeouts(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	a.dispatch(t, "Long", facts("own", "seconds", 60, "timeout", 1, "tries", 1))
	s := a.startScraped(t, plan{work: []string{"--sleep=0.1"}})
	s.becomes(t, `jobs_total{class="App\\Jobs\\Long",result="timeout"}`, 1)
	s.becomes(t, `recycles_total{cause="timed_out"}`, 1)
	s.drain(t)
	s.stop(t)

	b := newApp(t, onRedis)
	b.dispatch(t, "Sleeps", facts("w", "seconds", 60))
	// Nothing but the watchdog ends it, and the container with it.
	w := b.startScraped(t, plan{wire: func(w *timeoutchain.Wire) { w.JobSeconds, w.RetryAfterSeconds, w.CallSeconds = 30, 5, 0 }, work: []string{"--timeout=0"}})
	w.becomes(t, `job_bound_seconds`, 2)
	w.wantOutcome(t, termination.Overran, 70)
}

// Horizon replaces a worker that the watchdog kills, and the container lives on
// to tell.
func TestWorkerMetricsOfKills(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	a.dispatch(t, "Sleeps", facts("w", "seconds", 60), "--times=2")
	s := a.startScraped(t, plan{
		command: []string{"php8.2", "artisan", "horizon", "--processes=2"}, env: []string{"HORIZON_TIMEOUT=600"},
		wire: func(w *timeoutchain.Wire) {
			w.Runtime, w.JobSeconds, w.RetryAfterSeconds, w.CallSeconds = timeoutchain.Horizon, 600, 5, 0
		},
	})
	eventually(t, patience, "two kills", func() bool { return value(s.scrape(t), "watchdog_kills_total") >= 2 })
	if found := s.scrape(t); value(found, `jobs_total{class="App\\Jobs\\Sleeps",result="timeout"}`) != value(found, "watchdog_kills_total") {
		t.Errorf("%v", found)
	}
}

// Without the variable nobody listens and nothing is written.
func TestNoMetricsUnlessAskedFor(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	a.dispatch(t, "Short", facts("s"))
	w := a.start(t, plan{})
	a.await(t, "end", "s")
	w.drain(t)
	if files, _ := filepath.Glob(w.dir.Run() + "/*.runs"); len(files) != 0 {
		t.Errorf("%q", files)
	}
	w.stop(t)
}

// Who does not read, or has died, holds no worker up: the agent is stopped while
// its worker runs three times as many jobs as there is room for.
func TestDeadReaderSlowsNobody(t *testing.T) {
	t.Parallel()
	const jobs = 6000
	a := newApp(t, onRedis, "JOURNAL_FILE=")
	s := a.startScraped(t, plan{work: []string{"--sleep=0.1", "--quiet"}})
	s.becomes(t, "lost_runs_total", 0)
	s.signal(t, syscall.SIGSTOP)
	a.dispatch(t, "Short", facts("s"), fmt.Sprintf("--times=%d", jobs))
	length := a.prefix + "queues:default"
	eventually(t, 3*patience, "an empty queue", func() bool {
		return strings.TrimSpace(a.redis(t, "LLEN", length)) == "0" && strings.TrimSpace(a.redis(t, "ZCARD", length+":reserved")) == "0"
	})
	s.signal(t, syscall.SIGCONT)
	var counted, lost float64
	eventually(t, patience, "all runs, counted or lost", func() bool {
		found := s.scrape(t)
		counted, lost = value(found, `jobs_total{class="App\\Jobs\\Short",result="processed"}`), value(found, "lost_runs_total")
		return counted+lost == jobs
	})
	if counted < 2047 || lost <= 0 {
		t.Errorf("%g counted, %g lost", counted, lost)
	}
	t.Logf("%g counted, %g lost", counted, lost)
	time.Sleep(100 * time.Millisecond)
	s.drain(t)
	s.stop(t)
}
