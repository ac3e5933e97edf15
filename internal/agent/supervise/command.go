// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/queueworker/operator/internal/agent/cgroup"
	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/verdict"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// command is the worker command of the moment.
type command struct {
	pid     int
	started time.Time
	oom     int // kills for memory in the container until then
	gone    bool
	status  syscall.WaitStatus
	told    []proc.Process // whom the stop signal was sent to
}

// adoptOrphans makes the children of dead workers ours, which is so already for
// the first process of a container.
func adoptOrphans() error {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("adopt orphaned processes: %w", errno)
	}
	return nil
}

func (s *supervisor) start() error {
	s.command = command{started: time.Now(), oom: cgroup.OOMKills()}
	clear(s.scolded)
	pid, err := spawn(s.Command, s.Env)
	if err != nil {
		return err
	}
	s.command.pid = pid
	return nil
}

// spawn starts a process in a group of its own, with no signal blocked. It is
// reaped by wait4, so os/exec must not wait for it too.
func spawn(command, env []string) (int, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, fmt.Errorf("start %q: %w", command[0], err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := setMask(0)
	if err != nil {
		return 0, err
	}
	defer func() { _, _ = setMask(old) }()
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %q: %w", path, err)
	}
	return pid, nil
}

// setMask replaces this thread's mask of blocked signals; a child inherits it.
func setMask(mask uint64) (old uint64, err error) {
	const setMask = 2 // SIG_SETMASK
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask,
		uintptr(unsafe.Pointer(&mask)), uintptr(unsafe.Pointer(&old)), //nolint:gosec // the kernel's own 64-bit sets
		unsafe.Sizeof(mask), 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("unblock signals: %w", errno)
	}
	return old, nil
}

// reap collects every child that has ended, adopted ones included.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		switch pid {
		case s.command.pid:
			s.command.gone, s.command.status = true, status
		case s.stop.before.pid:
			s.beforeStopEnded(status)
		}
	}
}

// commandEnded judges the end of the command and starts it again or not.
func (s *supervisor) commandEnded(alive, dead []workerstate.State) {
	s.killLeftovers()
	last := s.lastWord(alive, dead, time.Now())
	s.departed = departure{}
	end := verdict.End{
		Status:   s.command.status,
		Last:     last,
		Draining: s.stopping(),
		Overran:  s.overran != nil,
		OOM:      cgroup.OOMKills() > s.command.oom,
		Tracked:  s.Tracked,
		Lived:    time.Since(s.command.started),
	}
	v := verdict.Judge(end)
	if v.Recycle && s.floor.Spinning(end) {
		v = verdict.Spun()
	}
	if v.Recycle {
		s.logf("the worker ended with code %d after %s and is started again", verdict.ExitCode(end.Status), end.Lived.Round(time.Millisecond))
		s.tally.Recycled(recycleCause(end.Last))
		s.forget(append(dead, alive...))
		err := s.start()
		if err == nil {
			return
		}
		v = verdict.Verdict{Outcome: "Crashed", Exit: verdict.ExitCrashed, Reason: err.Error()}
	}
	s.conclude(v, end.Last)
}

// lastWords picks the state to judge by: one with a job, else the newest.
func lastWords(states []workerstate.State) *workerstate.State {
	var last *workerstate.State
	for i := range states {
		state := &states[i]
		if last == nil || state.InJob() && !last.InJob() || state.InJob() == last.InJob() && state.Clock > last.Clock {
			last = state
		}
	}
	return last
}

// killLeftovers ends what a dead worker left behind, whatever group or session
// it is in: it must not run beside the job's next delivery. Processes that the
// kubelet started in the container are no descendants of ours.
func (s *supervisor) killLeftovers() {
	self := os.Getpid()
	for end := time.Now().Add(leftoverLimit); ; time.Sleep(time.Millisecond) {
		left := proc.Descendants(self)
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			s.logf("%d processes do not die of SIGKILL", len(left))
			break
		}
		for _, process := range left {
			s.send(process, syscall.SIGKILL)
		}
		s.reap()
	}
	s.reap()
}
