// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestIdleWorkerLeavesAtOnce(t *testing.T) {
	for _, queue := range []string{onSQLite, onRedis} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			var took []time.Duration
			for range times(3, 40) {
				a := newApp(t, queue)
				w := a.start(t, plan{work: []string{"--sleep=25"}})
				w.awaitPhase(t, workerstate.Loop)
				time.Sleep(300 * time.Millisecond) // into the sleep
				message, hook := w.drain(t)
				if message.Outcome != termination.Drained {
					t.Fatalf("outcome %+v", message)
				}
				took = append(took, hook)
				w.stop(t)
			}
			slices.Sort(took)
			t.Logf("%d idle drains: median %s, longest %s", len(took), took[len(took)/2], took[len(took)-1])
			if median := took[len(took)/2]; median > 12*time.Second {
				t.Errorf("an idle drain takes %s, which is the worker's sleep of 25 s and no stop", median)
			}
		})
	}
}

func TestJobIsNotDisturbed(t *testing.T) {
	for _, queue := range []string{onSQLite, onMariaDB, onRedis} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			a.dispatch(t, "Sleeps", facts("first", "seconds", 6))
			a.dispatch(t, "Short", facts("second"))
			w := a.start(t, plan{})
			a.await(t, "start", "first")
			message, _ := w.drain(t)
			if message.Outcome != termination.Drained || message.Job != nil || message.WaitedFor == nil || message.WaitedFor.Class != `App\Jobs\Sleeps` {
				t.Errorf("outcome %+v", message)
			}
			w.stop(t)
			a.wholeSeconds(t, "first", 6)
			if c := a.counts(t); c.Waiting != 1 || c.Reserved != 0 || c.Failed != 0 {
				t.Errorf("the second job is gone, or the first is not: %+v", c)
			}
			if message.ExitCode != 0 || contains(w.output.text(), "ignores SIGTERM") {
				t.Errorf("the worker did not leave by itself after its job: it ended with %d", message.ExitCode)
			}
		})
	}
}

// The reason for all this: plain artisan cuts the wait and calls the job done.
func TestPlainArtisanCutsTheWait(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("cut", "seconds", 20))
	cmd := exec.Command("php8.2", "artisan", "queue:work", "--sleep=1")
	cmd.Dir, cmd.Env = a.dir, a.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a.await(t, "start", "cut")
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if ran := a.ran(t, "cut"); ran > 15*time.Second {
		t.Errorf("plain artisan let the job wait for %s: these tests prove nothing", ran)
	}
	a.nothingLeft(t)
}

// A job run in place inside another one must not end the other's protection.
func TestJobInsideAJob(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	a.dispatch(t, "Nests", facts("outer", "seconds", 6))
	w := a.start(t, plan{})
	a.await(t, "end", "") // the inner one
	time.Sleep(100 * time.Millisecond)
	if state := w.awaitPhase(t, workerstate.Job); state.Job.Class != `App\Jobs\Nests` {
		t.Errorf("the worker says it runs %s", state.Job.Class)
	}
	w.drain(t)
	w.stop(t)
	a.wholeSeconds(t, "outer", 6)
	a.nothingLeft(t)
}

func TestDrainInBoot(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Short", facts("waits"))
	mark := a.dir + "/booting"
	w := a.start(t, plan{env: []string{"APP_SLOW_BOOT=25", "APP_SLOW_BOOT_MARK=" + mark}})
	awaitFile(t, mark)
	if message, took := w.drain(t); message.Outcome != termination.Drained || took > 15*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
	if n := a.count(t, "start", ""); n != 0 {
		t.Errorf("%d jobs were started", n)
	}
}

// A stop right after the start, at different moments of the boot.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("s", "seconds", 1), "--times=40")
	for i := range times(6, 40) {
		_ = os.RemoveAll(filepath.Join(a.dir, "qw", "run"))
		w := a.start(t, plan{})
		eventually(t, patience, "the agent's socket", func() bool { return exists(w.dir.Socket()) })
		time.Sleep(time.Duration(i*30) * time.Millisecond)
		w.signal(t, syscall.SIGTERM)
		w.wantOutcome(t, termination.Drained, 0)
	}
	for _, n := range a.notes(t) {
		if n.Event == "start" {
			a.wholeSeconds(t, n.Name, 1)
		}
	}
	if c := a.counts(t); c.Reserved != 0 || c.Failed != 0 {
		t.Errorf("a started job did not end: %+v", c)
	}
}

// longPop declares pops that block for longer than a loaded machine takes to
// close the gate.
func longPop(w *timeoutchain.Wire) { w.PopSeconds = 21 }

// The pop under way when the gate closes cannot be recalled: its job runs in
// full, with the stop signal held back.
func TestDrainInBlockingPop(t *testing.T) {
	for i := range times(2, 10) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onRedis, "REDIS_QUEUE_BLOCK_FOR=20")
			a.park(t, "Sleeps", facts("late", "seconds", 3))
			w := a.start(t, plan{wire: longPop})
			w.awaitPhase(t, workerstate.Loop)
			time.Sleep(200 * time.Millisecond)
			done := make(chan termination.Message)
			go func() { message, _ := w.drain(t); done <- message }()
			eventually(t, patience, "the closed gate", func() bool { return exists(w.dir.Gate()) })
			time.Sleep(time.Duration(200+i*97) * time.Millisecond)
			a.release(t)
			if message := <-done; message.Outcome != termination.Drained {
				t.Errorf("outcome %+v", message)
			}
			w.stop(t)
			a.wholeSeconds(t, "late", 3)
			a.nothingLeft(t)
			if contains(w.output.text(), "ignores SIGTERM") {
				t.Error("the worker stayed deaf after its job")
			}
		})
	}
}

func TestEveryStopSignalDrains(t *testing.T) {
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGINT}
	if full() {
		signals = append(signals, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGPWR, syscall.Signal(37))
	}
	for _, signal := range signals {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onSQLite)
			a.dispatch(t, "Sleeps", facts("s", "seconds", 2))
			w := a.start(t, plan{first: true})
			a.await(t, "start", "s")
			w.signal(t, signal)
			w.wantOutcome(t, termination.Drained, 0)
			a.wholeSeconds(t, "s", 2)
			a.nothingLeft(t)
		})
	}
}

// The message that SIGKILL would leave behind names the job, and how old it is
// when the second signal says that the grace is over.
func TestSecondSignalOnlyUpdatesTheMessage(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("s", "seconds", 12))
	w := a.start(t, plan{})
	a.await(t, "start", "s")
	w.signal(t, syscall.SIGTERM)
	var first termination.Message
	eventually(t, patience, "a provisional message", func() bool {
		text := read(w.message)
		var err error
		first, err = termination.Decode(text)
		return err == nil
	})
	if !first.Provisional || first.Outcome != termination.GraceCut || first.Job == nil || first.Job.Class != `App\Jobs\Sleeps` || first.Job.UUID == "" {
		t.Errorf("provisional message %+v", first)
	}
	time.Sleep(1500 * time.Millisecond)
	w.signal(t, syscall.SIGTERM)
	eventually(t, patience, "a message with the job's age at the second signal", func() bool {
		second, err := termination.Decode(read(w.message))
		return err == nil && second.Provisional && second.Job != nil && second.Job.AgeSeconds >= first.Job.AgeSeconds+1
	})
	w.wantOutcome(t, termination.Drained, 0)
	a.wholeSeconds(t, "s", 12)
	a.nothingLeft(t)
}

func TestHookCalledTwice(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("s", "seconds", 6))
	w := a.start(t, plan{})
	a.await(t, "start", "s")
	answers := make(chan termination.Message)
	for range 2 {
		go func() { message, _ := w.drain(t); answers <- message }()
		time.Sleep(300 * time.Millisecond)
	}
	for range 2 {
		if message := <-answers; message.Outcome != termination.Drained {
			t.Errorf("outcome %+v", message)
		}
	}
	// And once more when all is over.
	if out, _, took := w.client("drain"); !contains(out, `"Drained"`) || took > 20*time.Second {
		t.Errorf("took %s: %s", took, out)
	}
	w.stop(t)
	a.wholeSeconds(t, "s", 6)
}

func TestHookWithoutSupervisor(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	w := &worker{app: a, dir: "/nonexistent", env: append(a.env, a.chain(nil))}
	out, exit, took := w.client("drain")
	if exit != 0 || took < 900*time.Millisecond || took > 20*time.Second {
		t.Errorf("ended with %d after %s, wanted 0 after one second: %s", exit, took, out)
	}
}

// Leaving with the worker would kill the hook, which runs in the container.
func TestRunOutlivesItsHook(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	w := a.start(t, plan{})
	w.awaitPhase(t, workerstate.Loop)
	w.drain(t)
	select {
	case <-w.ended:
		t.Fatal("the agent left before the kubelet's signal")
	case <-time.After(time.Second):
	}
	if !full() {
		w.stop(t)
		return
	}
	if code := w.wait(t, 11*time.Second); code != 0 {
		t.Errorf("without any signal it ended with %d", code)
	}
}
