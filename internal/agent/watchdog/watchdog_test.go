// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/watchdog"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func own(seconds int64) *workerstate.Task { return &workerstate.Task{Timeout: &seconds} }

func TestBound(t *testing.T) {
	for name, c := range map[string]struct {
		job, call, retryAfter int64
		task                  *workerstate.Task
		want                  int64
	}{
		"J + C + 5":                          {30, 20, 90, nil, 55},
		"never past R - 3":                   {30, 20, 50, nil, 47},
		"no call declared":                   {30, 0, 90, nil, 87},
		"no reservation":                     {30, 20, 0, nil, 55},
		"neither":                            {30, 0, 0, nil, 60},
		"the job's own limit":                {30, 20, 900, own(100), 125},
		"the job's own limit, past R":        {30, 20, 90, own(100), 87},
		"the job says no limit":              {30, 20, 90, own(0), 87},
		"the job says no limit, nor does R":  {30, 20, 0, own(0), 0},
		"nothing at all":                     {0, 0, 0, nil, 0},
		"the job's own limit where J is off": {0, 20, 0, own(10), 35},
		"a task without a limit of its own":  {30, 20, 90, &workerstate.Task{}, 55},
	} {
		t.Run(name, func(t *testing.T) {
			wire := timeoutchain.Wire{JobSeconds: c.job, CallSeconds: c.call, RetryAfterSeconds: c.retryAfter}
			if got := watchdog.Bound(wire, c.task); got != time.Duration(c.want)*time.Second {
				t.Errorf("bound %s, wanted %d s", got, c.want)
			}
		})
	}
}

// The pod is told the bound for J too; both must be the same.
func TestBoundIsTheChains(t *testing.T) {
	for job := int64(1); job < 40; job += 3 {
		for call := int64(0); call < 40; call += 3 {
			for retry := int64(0); retry < 90; retry += 7 {
				chain := timeoutchain.Chain{Job: timeoutchain.Of(job), RetryAfter: timeoutchain.Of(retry)}
				if call > 0 {
					chain.HTTP = timeoutchain.Of(call)
				}
				wire := chain.ToWire()
				if got := watchdog.Bound(wire, nil); got != time.Duration(wire.WatchdogSeconds)*time.Second {
					t.Fatalf("J %d, C %d, R %d: bound %s, the chain says %d s", job, call, retry, got, wire.WatchdogSeconds)
				}
			}
		}
	}
}

func TestOverdue(t *testing.T) {
	wire := timeoutchain.Wire{JobSeconds: 30, CallSeconds: 20, RetryAfterSeconds: 90}
	for name, c := range map[string]struct {
		phase       workerstate.Phase
		age         time.Duration
		want, inJob bool
	}{
		"in time":            {workerstate.Job, 55*time.Second - 1, false, true},
		"late":               {workerstate.Job, 55 * time.Second, true, true},
		"idle for ever":      {workerstate.Loop, time.Hour, false, false},
		"paused for ever":    {workerstate.Ended, time.Hour, false, false},
		"boot for ever":      {workerstate.Boot, time.Hour, false, false},
		"unreadable":         {workerstate.Unknown, time.Hour, false, false},
		"stopping":           {workerstate.Stopping, 59 * time.Second, false, false},
		"stopping for ever":  {workerstate.Stopping, time.Minute, true, false},
		"gated for a minute": {workerstate.Gated, time.Minute, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := workerstate.State{Phase: c.phase, Clock: 1000}
			overdue, inJob := watchdog.Overdue(wire, state, 1000+int64(c.age))
			if overdue != c.want || inJob != c.inJob {
				t.Errorf("overdue %t, in a job %t", overdue, inJob)
			}
		})
	}
}
