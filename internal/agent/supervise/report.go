// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"fmt"
	"math"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/verdict"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// writeProvisional leaves a message for the case that SIGKILL comes next.
func (s *supervisor) writeProvisional(alive []workerstate.State) {
	s.stop.reported = current(alive)
	job := jobOf(alive)
	if job != nil {
		s.stop.waitedFor = job
	}
	s.write(termination.Message{
		Outcome:      termination.GraceCut,
		Provisional:  true,
		Reason:       "the grace ended before the worker did",
		DrainAt:      s.stop.asked.UTC().Format(time.RFC3339),
		DrainSeconds: s.drainSeconds(),
		Job:          job,
	})
}

// conclude reports the end, answers everyone who waits for it, and decides how
// long the supervisor itself stays.
func (s *supervisor) conclude(v verdict.Verdict, last *workerstate.State) {
	message := termination.Message{Outcome: v.Outcome, Reason: v.Reason, ExitCode: verdict.ExitCode(s.command.status)}
	if s.stopping() {
		message.DrainAt = s.stop.asked.UTC().Format(time.RFC3339)
		message.DrainSeconds = s.drainSeconds()
	}
	if v.Outcome == termination.Drained {
		message.WaitedFor = s.stop.waitedFor
	}
	if v.JobEnded {
		message.Job = s.overran
		if message.Job == nil && last != nil {
			message.Job = report(*last)
		}
	}
	s.write(message)
	if s.stopping() {
		s.tally.Drained(string(message.Outcome))
	}
	s.logf("ended: %s", message.Encode())
	s.final, s.exit, s.ended = message, v.Exit, true
	asked := len(s.stop.waiting) > 0
	for _, waiting := range s.stop.waiting {
		waiting <- string(message.Encode())
	}
	s.until = time.Now()
	if asked {
		s.until = s.until.Add(linger)
	}
	s.done = !asked || s.stop.bySignal
}

func (s *supervisor) write(message termination.Message) {
	if err := termination.Write(s.TerminationLog, message); err != nil {
		s.logf("%v", err)
	}
}

func (s *supervisor) drainSeconds() float64 { return seconds(time.Since(s.stop.asked)) }

func report(state workerstate.State) *termination.Job {
	job := &termination.Job{AgeSeconds: seconds(state.Age(proc.Clock()))}
	if state.Job != nil {
		job.UUID, job.Class, job.Queue, job.Attempt = state.Job.UUID, state.Job.Class, state.Job.Queue, state.Job.Attempt
	}
	return job
}

func describe(task *workerstate.Task) string {
	if task == nil {
		return "(no job)"
	}
	return fmt.Sprintf("%s (%s)", task.Class, task.UUID)
}

// seconds rounds to milliseconds, for people.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
