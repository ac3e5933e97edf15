// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
)

var raceAgent = sync.OnceValues(func() (string, error) { return build("raceagent", "./raceagent") })

// The stop arrives when the worker has looked at the gate and not yet taken its
// job: that window is widened to 20 ms, and the supervisor is held up for 40 ms
// between reading "loop" and signalling. The job that was taken meanwhile must
// not notice. Without the worker's second look at the gate it does.
func TestLateSignalDoesNotReachALateJob(t *testing.T) {
	rounds := times(8, 50)
	late, cut := races(t, rounds, "--stall=40ms")
	t.Logf("%d rounds, %d jobs taken behind the closed gate, %d cut", rounds, late, cut)
	if late < rounds/4 {
		t.Errorf("only %d of %d rounds hit the window: this test proves little", late, rounds)
	}
	if cut > 0 {
		t.Errorf("%d of %d jobs were cut", cut, late)
	}
}

func TestNaiveProtocolIsCaught(t *testing.T) {
	rounds := times(6, 12)
	late, cut := races(t, rounds, "--stall=40ms", "--naive")
	t.Logf("%d rounds, %d jobs taken behind the closed gate, %d cut", rounds, late, cut)
	if cut == 0 {
		t.Error("no job was cut: the test above cannot fail")
	}
}

// races returns how many jobs were started after the stop was asked for, and
// how many of those did not run in full.
func races(t *testing.T, rounds int, flags ...string) (late, cut int) {
	t.Helper()
	program := must[string](t)(raceAgent())
	var mutex sync.Mutex
	t.Run("rounds", func(t *testing.T) {
		for i := range rounds {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				ran, full := race(t, plan{program: program, flags: flags}, i%2 == 1)
				mutex.Lock()
				defer mutex.Unlock()
				if ran {
					late++
				}
				if ran && !full {
					cut++
				}
			})
		}
	})
	return late, cut
}

// states is what the workers say, as text.
func states(w *worker) string {
	files, _ := filepath.Glob(w.dir.Run() + "/w.*.state")
	text := ""
	for _, file := range files {
		text += read(file)
	}
	return text
}

// race drains in the window. With maintenance mode set during the late job the
// worker does not come back to its loop, and must still hear the held signal.
func race(t *testing.T, p plan, maintenance bool) (ran, full bool) {
	a := newApp(t, onSQLite)
	a.dispatch(t, "Short", facts("a"))
	a.dispatch(t, "Sleeps", facts("b", "seconds", 2))
	p.env = append([]string{"APP_WIDE_WINDOW=20000"}, p.env...)
	w := a.start(t, p)
	a.await(t, "end", "a")
	for end := time.Now().Add(patience); !strings.Contains(states(w), `"phase":"loop"`); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("the worker does not go on")
		}
	}
	w.signal(t, syscall.SIGTERM)
	if maintenance {
		time.Sleep(500 * time.Millisecond)
		a.maintenance(t)
	}
	if code := w.wait(t, patience); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if outcome := w.left(t).Outcome; outcome != termination.Drained {
		t.Errorf("outcome %s", outcome)
	}
	if a.count(t, "start", "b") == 0 {
		return false, false
	}
	return true, a.ran(t, "b") > 1990*time.Millisecond
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
