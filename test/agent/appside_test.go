// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// An application's listeners on the same events, registered before ours could
// be by a later attachment, must not hide the gate nor leave signals blocked.
func TestApplicationsOwnListeners(t *testing.T) {
	for _, kind := range []string{"true", "false"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onRedis, "APP_LISTENERS="+kind, "REDIS_QUEUE_BLOCK_FOR=20")
			a.park(t, "Sleeps", facts("late", "seconds", 2))
			w := a.start(t, plan{wire: longPop})
			w.awaitPhase(t, workerstate.Loop)
			time.Sleep(200 * time.Millisecond)
			done := make(chan termination.Message)
			go func() { message, _ := w.drain(t); done <- message }()
			eventually(t, patience, "the closed gate", func() bool { return exists(w.dir.Gate()) })
			a.release(t)
			a.dispatch(t, "Short", facts("next"))
			if message := <-done; message.Outcome != termination.Drained || message.DrainSeconds > 30 {
				t.Errorf("message %+v", message)
			}
			w.stop(t)
			a.wholeSeconds(t, "late", 2)
			if n := a.count(t, "start", "next"); n != 0 {
				t.Error("the gate was ignored")
			}
		})
	}
	t.Run("throw", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite, "APP_LISTENERS=throw")
		plain := exec.Command("php8.2", "artisan", "queue:work")
		plain.Dir, plain.Env = a.dir, a.env
		_ = plain.Run()
		w := a.start(t, plan{})
		if message := w.wantOutcome(t, termination.Crashed, 70); message.ExitCode != plain.ProcessState.ExitCode() {
			t.Errorf("the worker ends with %d, without us with %d", message.ExitCode, plain.ProcessState.ExitCode())
		}
	})
}

// The state directory fails under the worker: it goes on, holds signals back in
// every job, and says so once.
func TestWorkerCannotWriteItsState(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	w := a.start(t, plan{work: []string{"--sleep=1"}})
	w.awaitPhase(t, workerstate.Loop)
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "ro", "none", w.dir.Run()).CombinedOutput()
	if err != nil {
		t.Fatalf("mount: %v\n%s", err, out)
	}
	unmount := func() { _ = exec.Command("umount", "-l", w.dir.Run()).Run() }
	defer unmount()
	a.dispatch(t, "Sleeps", facts("s", "seconds", 6), "--times=2")
	a.await(t, "start", "s-0")
	time.Sleep(200 * time.Millisecond)
	w.signal(t, syscall.SIGTERM)
	if code := w.wait(t, patience); code != 0 {
		t.Errorf("ended with %d", code)
	}
	a.wholeSeconds(t, "s-0", 6)
	if n := a.count(t, "start", "s-1"); n != 0 {
		t.Errorf("the second job was started %d times", n)
	}
}

// The state directory cannot be looked into: nobody knows that the worker is
// idle, so it is not touched while it may be in a job.
func TestSupervisorCannotReadStates(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("s", "seconds", 3))
	w := a.start(t, plan{})
	a.await(t, "start", "s")
	if err := os.Rename(w.dir.Run(), w.dir.Run()+"-gone"); err != nil {
		t.Fatal(err)
	}
	w.signal(t, syscall.SIGTERM)
	a.await(t, "end", "s")
	a.wholeSeconds(t, "s", 3)
	if err := os.Rename(w.dir.Run()+"-gone", w.dir.Run()); err != nil {
		t.Fatal(err)
	}
	w.wantOutcome(t, termination.Drained, 0)
}

// The image's configuration is cached with 90; what was declared applies.
func TestDeclaredReservation(t *testing.T) {
	declare := func(w *timeoutchain.Wire) { w.RetryAfterSeconds = 300 }
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onRedis)
		a.artisan(t, "config:cache")
		a.dispatch(t, "Long", facts("l", "seconds", 10))
		w := a.start(t, plan{wire: declare})
		a.await(t, "start", "l")
		if seconds := a.reservedFor(t); seconds < 280 || seconds > 300 {
			t.Errorf("reserved for %d s, declared 300, cached 90", seconds)
		}
		w.drain(t)
		w.stop(t)
	})
	for _, queue := range []string{onSQLite, onMariaDB} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			a.artisan(t, "config:cache")
			a.dispatch(t, "Short", facts("reserved"))
			a.artisan(t, "app:reserve", "--ago=120")
			w := a.start(t, plan{wire: declare})
			w.awaitPhase(t, workerstate.Loop)
			time.Sleep(1500 * time.Millisecond)
			w.drain(t)
			w.stop(t)
			if n := a.count(t, "start", ""); n != 0 {
				t.Error("a job reserved 120 s ago was taken, declared are 300")
			}
			a.artisan(t, "queue:work", "--once", "--tries=5")
			a.ran(t, "reserved") // by plain artisan, whose 90 have passed
		})
	}
}

func TestBeforeStop(t *testing.T) {
	for name, c := range map[string]struct {
		script       string
		budget       int64 // seconds, and used up by one that hangs
		hangs        bool
		wantComplain bool
	}{
		"ends":   {"test ! -e qw/run/gate && touch was-here", 30, false, false},
		"hangs":  {"touch was-here; sleep 100", 6, true, true},
		"fails":  {"touch was-here; exit 3", 30, false, true},
		"leaves": {"touch was-here; sleep 100 & sleep 100", 6, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onSQLite)
			budget := time.Duration(c.budget) * time.Second
			w := a.start(t, plan{wire: func(w *timeoutchain.Wire) { w.BeforeStopSeconds = c.budget }, flags: []string{"--before-stop", fmt.Sprintf(`["sh","-c",%q]`, c.script)}})
			w.awaitPhase(t, workerstate.Loop)
			done := make(chan termination.Message)
			go func() { message, _ := w.drain(t); done <- message }()
			if c.hangs { // what SIGKILL would leave behind now
				eventually(t, budget, "a provisional message of an idle worker", func() bool {
					now, err := termination.Decode(read(w.message))
					return err == nil && now.Provisional && now.Outcome == termination.GraceCut
				})
			}
			message := <-done
			took := time.Duration(message.DrainSeconds * float64(time.Second))
			if message.Outcome != termination.Drained || (took >= budget) != c.hangs || took > budget+30*time.Second {
				t.Errorf("took %s of %s: %+v", took, budget, message)
			}
			w.stop(t)
			if !exists(a.dir + "/was-here") {
				t.Error("the command did not run, or ran behind the closed gate")
			}
			if complained := contains(w.output.text(), "beforeStop"); complained != c.wantComplain {
				t.Errorf("complained: %t", complained)
			}
		})
	}
}

// Horizon's process tree by a stand-in: a master that replaces its workers. Both
// workers finish their jobs, then the master is told.
func TestMasterOfWorkers(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	a.dispatch(t, "Sleeps", facts("h", "seconds", 12), "--times=2")
	a.dispatch(t, "Short", facts("next"))
	a.artisan(t, "config:cache")
	w := a.start(t, plan{
		command: []string{"php8.2", "artisan", "horizon", "--processes=2"}, first: true,
		wire: func(w *timeoutchain.Wire) { w.Runtime, w.RetryAfterSeconds = timeoutchain.Horizon, 300 },
	})
	a.await(t, "start", "h-0")
	a.await(t, "start", "h-1")
	if seconds := a.reservedFor(t); seconds < 280 {
		t.Errorf("reserved for %d s, declared 300", seconds)
	}
	w.signal(t, syscall.SIGTERM)
	w.wantOutcome(t, termination.Drained, 0)
	a.wholeSeconds(t, "h-0", 12)
	a.wholeSeconds(t, "h-1", 12)
	if n := a.count(t, "start", "next"); n != 0 {
		t.Error("a worker took another job")
	}
}

func TestPauseIsPassedOn(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	w := a.start(t, plan{work: []string{"--sleep=0.2"}})
	w.awaitPhase(t, workerstate.Loop)
	w.signal(t, syscall.SIGUSR2)
	w.awaitPause(t)
	a.dispatch(t, "Short", facts("p"))
	time.Sleep(3 * time.Second)
	if n := a.count(t, "start", "p"); n != 0 {
		t.Error("a paused worker took a job")
	}
	w.signal(t, syscall.SIGCONT)
	a.await(t, "end", "p")
	w.signal(t, syscall.SIGUSR2)
	w.awaitPause(t)
	if message, took := w.drain(t); message.Outcome != termination.Drained || took > 20*time.Second {
		t.Errorf("a paused worker took %s to leave: %+v", took, message)
	}
	w.stop(t)
}

// awaitPause waits until a worker that looks for jobs all the time has not done
// so for a while.
func (w *worker) awaitPause(t *testing.T) {
	t.Helper()
	eventually(t, patience, "a paused worker", func() bool {
		states := w.states()
		return len(states) == 1 && time.Since(states[0].Beat) > 3*time.Second
	})
}

// Maintenance mode keeps a worker from its loop without a word. It is no
// overrunning job, and leaves at once when asked.
func TestMaintenanceMode(t *testing.T) {
	t.Run("after a job", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite)
		a.dispatch(t, "Long", facts("l", "seconds", 2, "timeout", 3))
		w := a.start(t, plan{wire: short})
		a.await(t, "start", "l")
		a.maintenance(t)
		a.await(t, "end", "l")
		time.Sleep(11 * time.Second) // past the watchdog's bound
		w.leavesAtOnce(t)
	})
	t.Run("from the start", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite)
		a.maintenance(t)
		w := a.start(t, plan{})
		w.awaitPhase(t, workerstate.Boot)
		time.Sleep(1500 * time.Millisecond)
		if out, exit, _ := w.client("probe"); exit != 0 {
			t.Errorf("the probe complains: %s", out)
		}
		w.leavesAtOnce(t)
	})
}

func (w *worker) leavesAtOnce(t *testing.T) {
	t.Helper()
	if message, took := w.drain(t); message.Outcome != termination.Drained || took > 20*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
}

// A job that asks to be told is told, once. From Laravel 13.7 on it hears of it
// itself; before, the signal ends its sleep.
func TestInterruptibleJobIsTold(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Heeds", facts("h", "seconds", 25))
	w := a.start(t, plan{})
	a.await(t, "start", "h")
	if message, took := w.drain(t); message.Outcome != termination.Drained || took > 20*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
	if n := a.count(t, "interrupted", "h"); n > 1 {
		t.Errorf("the job was told %d times", n)
	} else {
		t.Logf("the job heard of it %d times", n)
	}
	if n := a.count(t, "end", "h"); n != 1 {
		t.Errorf("the job ended %d times", n)
	}
	a.nothingLeft(t)
}
