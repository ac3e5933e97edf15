// SPDX-License-Identifier: Apache-2.0

// Package verdict judges the end of a worker: a clean stop that is followed by a
// fresh start, or the end of the container, and with what words. It is pure.
package verdict

import (
	"fmt"
	"syscall"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// The container's exit codes.
const (
	ExitDrained = 0
	ExitCrashed = 70  // the worker ended unasked, or its job was killed for overrunning
	ExitKilled  = 137 // what the kubelet shows for a killed process
)

// End is what is known about a worker that has ended.
type End struct {
	Status   syscall.WaitStatus
	Last     *workerstate.State // what it last said; nil when it never did
	Draining bool
	Overran  bool // the watchdog killed a job
	OOM      bool // the kernel killed something in the container for memory
	Tracked  bool // it had our entry, so that silence means something
	Lived    time.Duration
}

// Verdict is what follows.
type Verdict struct {
	Recycle  bool // start it again, nothing to report
	Outcome  termination.Outcome
	Exit     int // the container's
	Reason   string
	JobEnded bool // the job it last spoke of was cut short
}

// Judge decides. An exit code of 0 proves nothing: old frameworks end with it
// after an error that could not be logged. Only a worker that said that it is
// stopping has stopped cleanly, its own time limit on a job included.
func Judge(e End) Verdict {
	inJob := e.Last != nil && e.Last.InJob()
	killed := e.Status.Signaled() && e.Status.Signal() == syscall.SIGKILL || ExitCode(e.Status) == ExitKilled
	switch {
	case e.Overran:
		return Verdict{Outcome: termination.Overran, Exit: ExitCrashed, JobEnded: true,
			Reason: "the job outlived every limit and was killed"}
	case e.Last != nil && e.Last.Phase == workerstate.Stopping && !e.Draining:
		return Verdict{Recycle: true}
	case killed && e.OOM && (inJob || !e.Draining):
		return Verdict{Outcome: termination.OOMKilled, Exit: ExitKilled, JobEnded: inJob,
			Reason: "the kernel killed the worker: the container's memory limit was reached"}
	case killed && (inJob || !e.Draining):
		return Verdict{Outcome: termination.Killed, Exit: ExitKilled, JobEnded: inJob,
			Reason: "something outside the container killed the worker"}
	case e.Draining && !inJob:
		return Verdict{Outcome: termination.Drained, Exit: ExitDrained, Reason: timedOut(e.Last)}
	default:
		return crashed(e, inJob)
	}
}

func crashed(e End, inJob bool) Verdict {
	code := ExitCode(e.Status)
	v := Verdict{Outcome: termination.Crashed, Exit: ExitCrashed, JobEnded: inJob,
		Reason: fmt.Sprintf("the worker ended with code %d without saying why", code)}
	if !e.Tracked { // nothing is known, so nothing is changed
		v.Exit = code
		v.Reason = fmt.Sprintf("the command ended with code %d", code)
	}
	return v
}

func timedOut(last *workerstate.State) string {
	if last != nil && last.Phase == workerstate.Stopping && last.Job != nil {
		return "the job's own time limit ended it"
	}
	return ""
}

// ExitCode is the code by which a shell would report this end.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

const (
	idleStops = 5               // so many clean stops in a row ...
	tooShort  = 5 * time.Second // ... each after less than this and without a job: spinning
)

// Floor notices a worker that stops cleanly again and again without doing
// anything. The zero value is ready.
type Floor struct{ idle int }

// Spinning counts a clean stop and says whether it was one too many.
func (f *Floor) Spinning(e End) bool {
	if e.Lived >= tooShort || e.Last == nil || e.Last.Jobs > 0 {
		f.idle = 0
		return false
	}
	f.idle++
	return f.idle >= idleStops
}

// Spun is the verdict over a spinning worker.
func Spun() Verdict {
	return Verdict{Outcome: termination.Crashed, Exit: ExitCrashed,
		Reason: fmt.Sprintf("the worker stopped %d times in a row within %s and without a job", idleStops, tooShort)}
}
