// SPDX-License-Identifier: Apache-2.0

// Package drain decides whom to signal, and when, once the gate is closed. It is
// pure: the caller closes the gate, then reads the workers' states, then asks.
// In that order no worker can be signalled in a job by mistake, however late the
// signal is: one that takes a job after the gate was closed sees the gate, and
// holds the signal back until the job has ended.
package drain

import (
	"time"

	"github.com/queueworker/operator/internal/agent/workerstate"
)

const (
	// firstRepeat, and repeatStep more each time up to longestRepeat: a signal
	// that arrives just before PHP's sleep() does not shorten the sleep.
	firstRepeat   = 250 * time.Millisecond
	repeatStep    = 250 * time.Millisecond
	longestRepeat = 2 * time.Second

	// gatedPatience is how long a worker that holds no job and can take none may
	// ignore the stop signal.
	gatedPatience = 5 * time.Second

	// settle is how long after a job its release and the application's own
	// listeners are left alone. Longer than that the worker is paused.
	settle = time.Second

	// wrapperPatience is how long a wrapper script may go on after its worker.
	wrapperPatience = 5 * time.Second

	// provePatience is how long a worker that any signal kills gets, besides the
	// time of a pop, to show that it saw the gate. A paused one never does.
	provePatience = 10 * time.Second
)

// Command stands for the process that was started, before any worker has said
// anything about itself.
const Command = 0

// Action is one signal to send.
type Action struct {
	PID  int  // a worker's process, or Command
	Kill bool // SIGKILL instead of SIGTERM
}

// Drain remembers when it began and what was sent. All times are readings of
// the monotonic clock, in nanoseconds.
type Drain struct {
	GateID string        // of the closed gate
	Began  int64         // when the gate was closed
	Pop    time.Duration // the longest that a pop can be under way
	sent   map[int]*history
	alone  int64 // when the command was first seen without its worker
}

type history struct {
	first, last int64
	count       int
}

// Next decides over workers that are alive. With none the command either has not
// come so far as to have one, or it had one and is a wrapper that now ends by
// itself, or should.
func (d *Drain) Next(clock int64, workers []workerstate.State, hadOne bool) []Action {
	if len(workers) == 0 {
		if hadOne && d.wrapperMayGoOn(clock) || !d.due(clock, Command) {
			return nil
		}
		return []Action{{PID: Command}}
	}
	d.alone = 0
	var actions []Action
	for _, w := range workers {
		if action, ok := d.decide(clock, w); ok {
			actions = append(actions, action)
		}
	}
	return actions
}

func (d *Drain) wrapperMayGoOn(clock int64) bool {
	if d.alone == 0 {
		d.alone = clock
	}
	return time.Duration(clock-d.alone) < wrapperPatience
}

func (d *Drain) decide(clock int64, w workerstate.State) (Action, bool) {
	gated := w.Phase == workerstate.Gated && w.Gate == d.GateID
	switch {
	case w.Phase == workerstate.Job:
		// Its own choice to end early, so it is told, once.
		return Action{PID: w.PID}, w.Interruptible && d.once(clock, w.PID)
	case w.Phase == workerstate.Stopping, d.mayHoldJob(clock, w):
		return Action{}, false
	case gated && d.ignored(clock, w.PID):
		return Action{PID: w.PID, Kill: true}, true
	default:
		return Action{PID: w.PID}, d.due(clock, w.PID)
	}
}

// mayHoldJob says whether a signal now could disturb a job or what follows it.
func (d *Drain) mayHoldJob(clock int64, w workerstate.State) bool {
	proved := w.Mask || time.Duration(clock-d.Began) > d.Pop+provePatience
	switch w.Phase {
	case workerstate.Job, workerstate.Unknown:
		return true
	case workerstate.Ended:
		return w.Age(clock) < settle || !proved
	case workerstate.Loop:
		return !proved // may be taking a job that the signal would kill
	default:
		return false
	}
}

// NextMaster decides for a process that starts and stops its own workers: it
// is told, once, when none of them may hold a job. Until then only interruptible
// jobs are told.
func (d *Drain) NextMaster(clock int64, workers []workerstate.State) []Action {
	var actions []Action
	busy := false
	for _, w := range workers {
		busy = busy || d.mayHoldJob(clock, w)
		if w.Phase == workerstate.Job && w.Interruptible && d.once(clock, w.PID) {
			actions = append(actions, Action{PID: w.PID})
		}
	}
	if !busy && d.once(clock, Command) {
		actions = append(actions, Action{PID: Command})
	}
	return actions
}

func (d *Drain) once(clock int64, pid int) bool {
	return d.sent[pid] == nil && d.due(clock, pid)
}

func (d *Drain) due(clock int64, pid int) bool {
	if d.sent == nil {
		d.sent = map[int]*history{}
	}
	h := d.sent[pid]
	if h == nil {
		d.sent[pid] = &history{first: clock, last: clock, count: 1}
		return true
	}
	wait := min(firstRepeat+time.Duration(h.count-1)*repeatStep, longestRepeat)
	if time.Duration(clock-h.last) < wait {
		return false
	}
	h.last = clock
	h.count++
	return true
}

func (d *Drain) ignored(clock int64, pid int) bool {
	h := d.sent[pid]
	return h != nil && time.Duration(clock-h.first) >= gatedPatience
}
