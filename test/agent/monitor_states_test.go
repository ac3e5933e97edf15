// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/monitor"
)

// lookUntil looks twice a second until the state is believed, and takes down
// every other one that was seen on the way.
func (w *watched) lookUntil(t *testing.T, want monitor.State, allowed ...monitor.State) {
	t.Helper()
	eventually(t, patience, "state "+string(want), func() bool {
		s := w.look(t)
		if s.State == want {
			return true
		}
		for _, state := range allowed {
			if s.State == state {
				time.Sleep(500 * time.Millisecond)
				return false
			}
		}
		t.Fatalf("%s on the way to %s: %+v\n%s", s.State, want, s, w.log.text())
		return false
	})
}

// holds looks for a while and wants nothing else.
func (w *watched) holds(t *testing.T, want monitor.State, looks int) {
	t.Helper()
	for range looks {
		if s := w.look(t); s.State != want {
			t.Fatalf("%s, wanted %s to hold: %+v\n%s", s.State, want, s, w.log.text())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (w *watched) workers(wanted, ready int64) {
	w.cluster.Lock()
	defer w.cluster.Unlock()
	w.cluster.object.Spec.Replicas, w.cluster.object.Status.ReadyReplicas = &wanted, ready
}

// What can happen to a real worker of a real queue, one after the other, and
// what is made of it.
func TestMonitorStates(t *testing.T) {
	for _, queue := range []string{onRedis, onMariaDB} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			w := a.watch(t)
			w.Config.StuckAfterSeconds = 15 // a busy machine is not a stuck queue
			began := time.Now()
			worker := a.start(t, plan{work: []string{"--sleep=0.2"}})
			state := worker.awaitPhase(t, workerstate.Loop)
			w.lookUntil(t, monitor.Empty)
			w.holds(t, monitor.Empty, 5)

			a.dispatch(t, "Long", facts("load", "seconds", 1), "--times=300")
			w.lookUntil(t, monitor.Busy, monitor.Empty)
			w.holds(t, monitor.Busy, 25)

			// Frozen in its job.
			php := proc.Process{PID: state.PID, Start: state.Start}
			freeze := func(signal syscall.Signal) {
				if err := proc.Signal(php, signal); err != nil {
					t.Fatal(err)
				}
			}
			freeze(syscall.SIGSTOP)
			w.lookUntil(t, monitor.Stuck, monitor.Busy)
			if s := w.look(t); s.ObservedTime.Sub(s.Since) < 14*time.Second { // 15, in whole ones
				t.Errorf("Stuck too soon: %+v", s)
			}
			w.holds(t, monitor.Stuck, 5)
			freeze(syscall.SIGCONT)
			w.lookUntil(t, monitor.Busy, monitor.Stuck)

			// Gone, with work waiting.
			worker.drain(t)
			worker.stop(t)
			w.workers(1, 0)
			w.lookUntil(t, monitor.Stopped, monitor.Busy)
			w.holds(t, monitor.Stopped, 20)
			w.workers(0, 0)
			w.lookUntil(t, monitor.Paused)

			// Back.
			w.workers(1, 0)
			w.lookUntil(t, monitor.Busy)
			w.workers(1, 1)
			worker = a.start(t, plan{dir: worker.dir, message: worker.message, work: []string{"--sleep=0.2"}})
			worker.awaitPhase(t, workerstate.Job)
			w.holds(t, monitor.Busy, 15)

			// In one call that does not end: the only job that runs is older than the threshold.
			a.clear(t)
			a.dispatch(t, "Long", facts("call", "seconds", 40))
			a.dispatch(t, "Short", facts("waits"))
			a.await(t, "start", "call")
			w.lookUntil(t, monitor.Stuck, monitor.Busy)
			a.await(t, "end", "waits")
			w.lookUntil(t, monitor.Empty, monitor.Stuck, monitor.Busy)
			worker.drain(t)
			worker.stop(t)
			if n, seconds := len(w.cluster.writes), time.Since(began).Seconds(); float64(n) > seconds+1 {
				t.Errorf("%d writes in %.0f s, more than one an interval", n, seconds)
			}
			t.Logf("%d writes: %s", len(w.cluster.writes), states(w.cluster.writes))
		})
	}
}

func states(writes []monitor.Status) (text string) {
	last := monitor.State("")
	for _, s := range writes {
		if s.State != last {
			text += fmt.Sprintf("%s(%d) ", s.State, *s.Depth)
		}
		last = s.State
	}
	return text
}

// clear takes away what waits.
func (a *app) clear(t *testing.T) {
	t.Helper()
	if a.connection == "redis" {
		a.redis(t, "DEL", a.prefix+"queues:default")
		return
	}
	a.artisan(t, "queue:clear", "database", "--force")
}
