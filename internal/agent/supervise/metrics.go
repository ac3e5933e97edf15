// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"slices"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/scrape"
	"github.com/queueworker/operator/internal/agent/tally"
	"github.com/queueworker/operator/internal/agent/watchdog"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// serveMetrics begins to answer scrapes. A port that is taken is no reason to
// keep a worker from its jobs.
func (s *supervisor) serveMetrics() {
	if s.Metrics == "" {
		return
	}
	if _, err := scrape.Listen(s.Metrics, s.scrapes); err != nil {
		s.logf("%v: there are no metrics", err)
		s.Metrics = ""
	}
}

// count takes in what workers have told since the last look.
func (s *supervisor) count(alive, dead []workerstate.State) {
	if s.Metrics == "" {
		return
	}
	for _, state := range slices.Concat(alive, dead) {
		s.runs(state.PID).Read(&s.tally)
	}
}

func (s *supervisor) runs(pid int) *tally.Ring {
	if s.rings[pid] == nil {
		s.rings[pid] = tally.RingOf(s.Dir.Run(), pid)
	}
	return s.rings[pid]
}

// forgetRuns drops what a worker that is gone has told, which was counted when
// it was seen to be gone.
func (s *supervisor) forgetRuns(pid int) {
	if s.Metrics == "" {
		return
	}
	s.runs(pid).Drop()
	delete(s.rings, pid)
}

func (s *supervisor) countKill(state workerstate.State, inJob bool, clock int64) {
	if !inJob || state.Job == nil {
		return
	}
	s.tally.Killed()
	s.tally.Ran(tally.Run{Class: state.Job.Class, Result: tally.Timeout, Attempt: state.Job.Attempt, Took: state.Age(clock)})
}

func (s *supervisor) metrics() []byte {
	alive, dead := s.workers()
	s.count(alive, dead)
	clock := proc.Clock()
	var now tally.Now
	for _, state := range alive {
		if !state.Beat.IsZero() {
			now.Heartbeats = append(now.Heartbeats, max(time.Since(state.Beat), 0))
		}
		if state.Phase == workerstate.Job && state.Job != nil {
			now.Running = append(now.Running, tally.Running{Class: state.Job.Class, Age: state.Age(clock), Bound: watchdog.Bound(s.Wire, state.Job)})
		}
	}
	return s.tally.Text(now)
}

// causes are the reasons that Laravel gives; before 11.52 it gives none.
var causes = []string{"interrupted", "lost_connection", "max_jobs", "memory", "max_time", "empty", "empty_for", "restart_signal", "timed_out"}

const memoryExceeded = 12 // the worker's status then

// recycleCause is why a worker ended on purpose, as far as it says so.
func recycleCause(last *workerstate.State) string {
	switch {
	case last == nil:
	case slices.Contains(causes, last.Reason):
		return last.Reason
	case last.Job != nil:
		return "timed_out"
	case last.Status == memoryExceeded:
		return "memory"
	}
	return "other"
}
