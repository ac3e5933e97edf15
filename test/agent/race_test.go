// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workdir"
)

var raceAgent = sync.OnceValues(func() (string, error) { return build("raceagent", "./raceagent") })

// The stop arrives when the worker has looked at the gate and not yet taken its
// job: there it waits until the supervisor has read "loop", and the supervisor
// waits, before it signals, until the job was taken. The job must not notice.
// Without the worker's second look at the gate it does.
func TestLateSignalDoesNotReachALateJob(t *testing.T) {
	rounds := times(8, 50)
	if cut := lateJobs(t, rounds); cut > 0 {
		t.Errorf("%d of %d jobs were cut", cut, rounds)
	}
}

func TestNaiveProtocolIsCaught(t *testing.T) {
	rounds := times(6, 12)
	cut := lateJobs(t, rounds, "--naive")
	t.Logf("%d of %d jobs were cut", cut, rounds)
	if cut == 0 {
		t.Error("no job was cut: the test above cannot fail")
	}
}

// lateJobs returns how many of the jobs that were taken behind the closed gate
// did not run in full.
func lateJobs(t *testing.T, rounds int, flags ...string) int {
	t.Helper()
	var cut atomic.Int32
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				if !lateJob(t, round{plan: plan{flags: append([]string{"--stall=100ms"}, flags...)}, maintenance: i%2 == 1}) {
					cut.Add(1)
				}
			})
		}
	})
	return int(cut.Load())
}

// round is one drain in the window.
type round struct {
	plan plan
	// untilGate ends the window when the gate is closed, for a supervisor that
	// does not signal before the job has ended.
	untilGate bool
	// maintenance mode begins during the late job: the worker does not come back
	// to its loop, and must still hear the held signal.
	maintenance bool
}

// lateJob drains in the window and says whether the job that was taken behind
// the closed gate ran in full.
func lateJob(t *testing.T, r round) (full bool) {
	t.Helper()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Short", facts("a"))
	a.dispatch(t, "Sleeps", facts("b", "seconds", 2))
	mark, end := filepath.Join(a.dir, "in-window"), filepath.Join(a.dir, "held-up")
	if r.untilGate {
		end = workdir.Dir(filepath.Join(a.dir, "qw")).Gate()
	} else {
		r.plan.flags = append(r.plan.flags, "--held-up="+end)
	}
	r.plan.program = must[string](t)(raceAgent())
	r.plan.env = append([]string{"APP_WINDOW_MARK=" + mark, "APP_WINDOW_END=" + end}, r.plan.env...)
	w := a.start(t, r.plan)
	eventually(t, patience, "the worker in the window", func() bool { return exists(mark) })
	w.signal(t, syscall.SIGTERM)
	if r.maintenance {
		a.await(t, "start", "b")
		a.maintenance(t)
	}
	if code := w.wait(t, patience); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if outcome := w.left(t).Outcome; outcome != termination.Drained {
		t.Errorf("outcome %s", outcome)
	}
	return a.ran(t, "b") > 1990*time.Millisecond
}

// A job in the first moments of a drain, when nothing is widened: jobs end to
// end, stopped at any moment.
func TestDrainAtAnyMoment(t *testing.T) {
	for i := range times(4, 40) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			a := newApp(t, []string{onSQLite, onRedis}[i%2])
			a.dispatch(t, "Long", facts("l", "seconds", 0.05), "--times=100")
			w := a.start(t, plan{})
			a.await(t, "end", "l-0")
			time.Sleep(time.Duration(i*23) * time.Millisecond)
			w.signal(t, syscall.SIGTERM)
			w.wantOutcome(t, termination.Drained, 0)
			started, ended, c := a.count(t, "start", ""), a.count(t, "end", ""), a.counts(t)
			if started != ended || started+c.Waiting != 100 || c.Reserved != 0 || c.Failed != 0 {
				t.Errorf("%d started, %d ended, tables %+v", started, ended, c)
			}
		})
	}
}
