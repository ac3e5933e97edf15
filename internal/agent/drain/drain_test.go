// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/drain"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

const pid = 7

// at is a reading of the clock so long after the gate was closed.
func at(d time.Duration) int64 { return int64(time.Hour + d) }

func closed() *drain.Drain {
	return &drain.Drain{GateID: "this", Began: at(0), Pop: 5 * time.Second}
}

func worker(phase workerstate.Phase, change ...func(*workerstate.State)) workerstate.State {
	w := workerstate.State{PID: pid, Phase: phase, Mask: true, Clock: at(-time.Minute)}
	for _, c := range change {
		c(&w)
	}
	return w
}

func noMask(w *workerstate.State)        { w.Mask = false }
func interruptible(w *workerstate.State) { w.Interruptible = true }
func sawThis(w *workerstate.State)       { w.Gate = "this" }
func sawOther(w *workerstate.State)      { w.Gate = "other" }
func justNow(w *workerstate.State)       { w.Clock = at(0) }

func TestWhoIsSignalled(t *testing.T) {
	for name, c := range map[string]struct {
		worker workerstate.State
		after  time.Duration
		want   bool
	}{
		"boot":                   {worker(workerstate.Boot), 0, true},
		"boot, any signal kills": {worker(workerstate.Boot, noMask), 0, true},
		"loop":                   {worker(workerstate.Loop), 0, true},
		"loop, any signal kills": {worker(workerstate.Loop, noMask), 0, false},
		"loop, any signal kills, just in the pop": {worker(workerstate.Loop, noMask), 15 * time.Second, false},
		"loop, any signal kills, surely paused":   {worker(workerstate.Loop, noMask), 15*time.Second + 1, true},
		"gated":                                   {worker(workerstate.Gated, sawThis), 0, true},
		"gated, any signal kills":                 {worker(workerstate.Gated, noMask, sawThis), 0, true},
		"gated by an older gate":                  {worker(workerstate.Gated, sawOther), 0, true},
		"job":                                     {worker(workerstate.Job), 0, false},
		"job, long after":                         {worker(workerstate.Job), time.Hour, false},
		"interruptible job":                       {worker(workerstate.Job, interruptible), 0, true},
		"job has just ended":                      {worker(workerstate.Ended, justNow), 999 * time.Millisecond, false},
		"job ended a while ago":                   {worker(workerstate.Ended, justNow), time.Second, true},
		"job ended, any signal kills":             {worker(workerstate.Ended, noMask), time.Second, false},
		"stopping":                                {worker(workerstate.Stopping), 0, false},
		"unreadable":                              {worker(workerstate.Unknown), time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			actions := closed().Next(at(c.after), []workerstate.State{c.worker}, false)
			if got := len(actions) == 1; got != c.want {
				t.Fatalf("actions %+v, wanted one: %t", actions, c.want)
			}
			if c.want && actions[0] != (drain.Action{PID: pid}) {
				t.Errorf("action %+v", actions[0])
			}
		})
	}
}

func TestNoWorkerYetMeansTheCommand(t *testing.T) {
	if actions := closed().Next(at(0), nil, false); len(actions) != 1 || actions[0].PID != drain.Command {
		t.Errorf("actions %+v", actions)
	}
}

// A wrapper script may have something left to do when its worker is gone.
func TestWrapperEndsByItself(t *testing.T) {
	d := closed()
	for _, c := range []struct {
		after time.Duration
		told  bool
	}{{0, false}, {4999 * time.Millisecond, false}, {5 * time.Second, true}} {
		actions := d.Next(at(c.after), nil, true)
		if told := len(actions) == 1 && actions[0].PID == drain.Command; told != c.told {
			t.Errorf("after %s: %+v", c.after, actions)
		}
	}
}

// Repeats come after 0.25, 0.5, 0.75 s and so on, but for an interruptible job.
func TestRepeats(t *testing.T) {
	sent := func(w workerstate.State, span time.Duration) (times []time.Duration) {
		d := closed()
		for after := time.Duration(0); after <= span; after += 50 * time.Millisecond {
			for range d.Next(at(after), []workerstate.State{w}, false) {
				times = append(times, after)
			}
		}
		return times
	}
	got := sent(worker(workerstate.Loop), 2500*time.Millisecond)
	want := []time.Duration{0, 250 * time.Millisecond, 750 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond}
	if len(got) != len(want) {
		t.Fatalf("sent at %v, wanted %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("sent at %v, wanted %v", got, want)
		}
	}
	if got := sent(worker(workerstate.Job, interruptible), time.Minute); len(got) != 1 {
		t.Errorf("an interruptible job was told at %v", got)
	}
	long := sent(worker(workerstate.Loop), time.Minute)
	if step := long[len(long)-1] - long[len(long)-2]; step != 2*time.Second {
		t.Errorf("the last step is %s, wanted 2s", step)
	}
}

func TestDeafWorkerIsKilledOnlyBehindThisGate(t *testing.T) {
	for _, c := range []struct {
		worker workerstate.State
		kill   bool
	}{
		{worker(workerstate.Gated, sawThis), true},
		{worker(workerstate.Gated, sawOther), false},
		{worker(workerstate.Loop), false},
	} {
		d := closed()
		d.Next(at(0), []workerstate.State{c.worker}, false)
		for _, after := range []time.Duration{4999 * time.Millisecond, 5 * time.Second} {
			actions := d.Next(at(after), []workerstate.State{c.worker}, false)
			kill := len(actions) == 1 && actions[0].Kill
			if want := c.kill && after == 5*time.Second; kill != want {
				t.Errorf("%s after %s: actions %+v, wanted a kill: %t", c.worker.Phase, after, actions, want)
			}
		}
	}
}

func TestMasterIsToldOnceAndLast(t *testing.T) {
	d := closed()
	idle, busy := worker(workerstate.Gated, sawThis), worker(workerstate.Job)
	busy.PID = 8
	if actions := d.NextMaster(at(0), []workerstate.State{idle, busy}); len(actions) != 0 {
		t.Errorf("with a busy worker: %+v", actions)
	}
	if actions := d.NextMaster(at(time.Second), []workerstate.State{idle}); len(actions) != 1 || actions[0].PID != drain.Command {
		t.Errorf("with an idle one: %+v", actions)
	}
	if actions := d.NextMaster(at(time.Minute), []workerstate.State{idle}); len(actions) != 0 {
		t.Errorf("again: %+v", actions)
	}
	told := worker(workerstate.Job, interruptible)
	if actions := closed().NextMaster(at(0), []workerstate.State{told}); len(actions) != 1 || actions[0].PID != pid {
		t.Errorf("an interruptible job: %+v", actions)
	}
}
