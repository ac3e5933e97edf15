// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/verdict"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

func exited(code int) syscall.WaitStatus          { return syscall.WaitStatus(code << 8) }
func killed(by syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus(by) }
func last(p workerstate.Phase) *workerstate.State { return &workerstate.State{Phase: p} }
func end(s syscall.WaitStatus, l *workerstate.State) verdict.End {
	return verdict.End{Status: s, Last: l, Tracked: true}
}

func TestJudge(t *testing.T) {
	draining := func(e verdict.End) verdict.End { e.Draining = true; return e }
	oom := func(e verdict.End) verdict.End { e.OOM = true; return e }
	overran := func(e verdict.End) verdict.End { e.Overran = true; return e }
	untracked := func(e verdict.End) verdict.End { e.Tracked = false; return e }
	kill, term := killed(syscall.SIGKILL), killed(syscall.SIGTERM)

	for name, c := range map[string]struct {
		end     verdict.End
		recycle bool
		outcome termination.Outcome
		exit    int
		job     bool
	}{
		"clean stop":                      {end: end(exited(0), last("stopping")), recycle: true},
		"memory":                          {end: end(exited(12), last("stopping")), recycle: true},
		"own timeout":                     {end: end(kill, last("stopping")), recycle: true},
		"own timeout as process 1":        {end: end(exited(1), last("stopping")), recycle: true},
		"exit 0 unannounced":              {end(exited(0), last("loop")), false, "Crashed", 70, false},
		"exit 12 unannounced":             {end(exited(12), last("loop")), false, "Crashed", 70, false},
		"exit 0 in boot":                  {end(exited(0), last("boot")), false, "Crashed", 70, false},
		"exit 0 without a word":           {end(exited(0), nil), false, "Crashed", 70, false},
		"fatal error in a job":            {end(exited(255), last("job")), false, "Crashed", 70, true},
		"unreadable state":                {end(exited(0), last("unknown")), false, "Crashed", 70, true},
		"killed in a job":                 {end(kill, last("job")), false, "Killed", 137, true},
		"killed when idle":                {end(kill, last("loop")), false, "Killed", 137, false},
		"killed behind a wrapper":         {end(exited(137), last("job")), false, "Killed", 137, true},
		"killed for memory":               {oom(end(kill, last("job"))), false, "OOMKilled", 137, true},
		"killed for memory when idle":     {oom(end(kill, last("loop"))), false, "OOMKilled", 137, false},
		"a child of it killed for memory": {oom(end(exited(1), last("loop"))), false, "Crashed", 70, false},
		"overran":                         {overran(end(kill, last("job"))), false, "Overran", 70, true},
		"drained":                         {draining(end(exited(0), last("stopping"))), false, "Drained", 0, false},
		"drained by the signal":           {draining(end(term, last("boot"))), false, "Drained", 0, false},
		"drained without pcntl":           {draining(end(term, last("gated"))), false, "Drained", 0, false},
		"drained after its job":           {draining(end(term, last("ended"))), false, "Drained", 0, false},
		"deaf and killed by us":           {draining(end(kill, last("gated"))), false, "Drained", 0, false},
		"own timeout in a drain":          {draining(end(kill, last("stopping"))), false, "Drained", 0, false},
		"killed in its job in a drain":    {draining(end(kill, last("job"))), false, "Killed", 137, true},
		"memory in a drain":               {draining(oom(end(kill, last("job")))), false, "OOMKilled", 137, true},
		"fatal error in a drain":          {draining(end(exited(255), last("job"))), false, "Crashed", 70, true},
		"overran in a drain":              {draining(overran(end(kill, last("job")))), false, "Overran", 70, true},
		"generic ends with 0":             {untracked(end(exited(0), nil)), false, "Crashed", 0, false},
		"generic ends with 7":             {untracked(end(exited(7), nil)), false, "Crashed", 7, false},
		"generic is drained":              {draining(untracked(end(term, nil))), false, "Drained", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict.Judge(c.end)
			if got.Recycle != c.recycle || got.Outcome != c.outcome || got.Exit != c.exit || got.JobEnded != c.job {
				t.Errorf("verdict %+v", got)
			}
		})
	}
}

func TestFloor(t *testing.T) {
	idle := func(jobs int, lived time.Duration) verdict.End {
		return verdict.End{Last: &workerstate.State{Phase: workerstate.Stopping, Jobs: jobs}, Lived: lived}
	}
	var f verdict.Floor
	spins := func(e verdict.End, n int) (spun bool) {
		for range n {
			spun = f.Spinning(e)
		}
		return spun
	}
	if spins(idle(0, time.Second), 4) {
		t.Error("four stops are spinning already")
	}
	if !spins(idle(0, time.Second), 1) {
		t.Error("five stops are not spinning")
	}
	for name, e := range map[string]verdict.End{"with a job": idle(1, time.Second), "after 5 s": idle(0, 5*time.Second)} {
		if spins(idle(0, time.Second), 4); spins(e, 100) {
			t.Errorf("%s: spinning", name)
		}
		if spins(idle(0, time.Second), 4) {
			t.Errorf("%s: the count was not begun anew", name)
		}
		f = verdict.Floor{}
	}
}
