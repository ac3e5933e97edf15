// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"crypto/rand"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/queueworker/operator/internal/agent/drain"
	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/verdict"
	"github.com/queueworker/operator/internal/agent/watchdog"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// helper is a running beforeStop command.
type helper struct {
	pid int
	end time.Time // of its budget
}

// askToStop begins a drain. From here on no worker is started again.
func (s *supervisor) askToStop() {
	s.stop.asked = time.Now()
	s.stop.drain = drain.Drain{Began: proc.Clock(), Pop: time.Duration(s.Wire.PopSeconds) * time.Second}
	alive, _ := s.workers()
	s.writeProvisional(alive)
	if len(s.BeforeStop) == 0 {
		s.stop.beforeDone = true
		return
	}
	pid, err := spawn(s.BeforeStop, s.Env)
	if err != nil {
		s.logf("beforeStop: %v", err)
		s.stop.beforeDone = true
		return
	}
	s.stop.before = helper{pid: pid, end: s.stop.asked.Add(time.Duration(s.Wire.BeforeStopSeconds) * time.Second)}
}

func (s *supervisor) beforeStopEnded(status syscall.WaitStatus) {
	if code := verdict.ExitCode(status); code != 0 {
		s.logf("beforeStop ended with code %d", code)
	}
	s.stop.beforeDone = true
}

// closeGate waits for the beforeStop command, then keeps workers from taking
// jobs. A gate that cannot be closed is tried again each time.
func (s *supervisor) closeGate() {
	if !s.stopping() || s.stop.gateClosed {
		return
	}
	if !s.stop.beforeDone {
		if time.Now().Before(s.stop.before.end) {
			return
		}
		s.logf("beforeStop did not end within its %d seconds", s.Wire.BeforeStopSeconds)
		s.killTree(proc.Process{PID: s.stop.before.pid})
		s.stop.beforeDone = true
	}
	if !s.Tracked {
		s.stop.gateClosed = true
		return
	}
	id, err := s.Dir.CloseGate(rand.Text())
	if err != nil {
		s.complain(err)
		return
	}
	s.stop.gateClosed, s.stop.drain.GateID, s.stop.drain.Began = true, id, proc.Clock()
}

// drainStep signals whoever may be signalled now.
func (s *supervisor) drainStep(alive, dead []workerstate.State) {
	if current(alive) != s.stop.reported {
		s.writeProvisional(alive)
	}
	if !s.stop.beforeDone {
		return
	}
	clock := proc.Clock()
	var actions []drain.Action
	switch {
	case !s.Tracked && len(s.command.told) == 0:
		actions = []drain.Action{{PID: drain.Command}}
	case !s.Tracked:
	case s.Master:
		actions = s.stop.drain.NextMaster(clock, alive)
	default:
		actions = s.stop.drain.Next(clock, alive, len(dead) > 0)
	}
	for _, action := range actions {
		if s.BeforeSignal != nil {
			s.BeforeSignal()
		}
		s.act(action, alive)
	}
}

func (s *supervisor) act(action drain.Action, alive []workerstate.State) {
	if action.PID == drain.Command {
		s.tellCommand()
		return
	}
	for _, state := range alive {
		if state.PID != action.PID {
			continue
		}
		process := proc.Process{PID: state.PID, Start: state.Start}
		if action.Kill {
			s.logf("worker %d holds no job and ignores SIGTERM: killed", state.PID)
			s.send(process, syscall.SIGKILL)
			continue
		}
		s.send(process, syscall.SIGTERM)
	}
}

// tellCommand sends SIGTERM to the command, through shells that would not pass
// it on, and remembers whom it told.
func (s *supervisor) tellCommand() {
	for _, target := range proc.StopTargets(s.command.pid) {
		s.send(target, syscall.SIGTERM)
		if !slices.ContainsFunc(s.command.told, func(p proc.Process) bool { return p.PID == target.PID }) {
			s.command.told = append(s.command.told, target)
		}
	}
}

// stillStopping says whether, with the command gone, a worker or someone who
// was told to stop is still on the way out.
func (s *supervisor) stillStopping(alive []workerstate.State) bool {
	return len(alive) > 0 || slices.ContainsFunc(s.command.told, func(p proc.Process) bool {
		return proc.Alive(p.PID, p.Start)
	})
}

// watch kills what is past its limit.
func (s *supervisor) watch(alive []workerstate.State) {
	clock := proc.Clock()
	for _, state := range alive {
		overdue, inJob := watchdog.Overdue(s.Wire, state, clock)
		if !overdue {
			continue
		}
		if !s.scolded[state.PID] {
			s.logf("worker %d is in phase %s since %s, which is past its limit: killed %s",
				state.PID, state.Phase, state.Age(clock).Round(time.Millisecond), describe(state.Job))
			s.countKill(state, inJob, clock)
		}
		s.scolded[state.PID] = true
		// A master's worker is replaced by it, and the container lives on.
		if inJob && (!s.Master || s.stopping()) {
			s.overran = report(state)
		}
		s.killTree(proc.Process{PID: state.PID, Start: state.Start})
	}
}

// killTree kills a process of ours and everything it started.
func (s *supervisor) killTree(root proc.Process) {
	if !proc.Below(root.PID, os.Getpid()) {
		return
	}
	tree := append([]proc.Process{root}, proc.Descendants(root.PID)...)
	for _, process := range tree {
		s.send(process, syscall.SIGKILL)
	}
}

// current names the job that is running, to notice a change.
func current(alive []workerstate.State) string {
	job := jobOf(alive)
	if job == nil {
		return ""
	}
	return job.UUID + " " + job.Class
}

func jobOf(states []workerstate.State) *termination.Job {
	for _, state := range states {
		if state.Phase == workerstate.Job {
			return report(state)
		}
	}
	return nil
}
