// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/probe"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestComplaint(t *testing.T) {
	wire := timeoutchain.Wire{JobSeconds: 30, CallSeconds: 20, RetryAfterSeconds: 90, PopSeconds: 60}
	now, clock := time.Unix(1_800_000_000, 0), int64(100*time.Hour)
	for name, c := range map[string]struct {
		phase workerstate.Phase
		quiet time.Duration
		wrong bool
	}{
		"idle":                      {workerstate.Loop, 11 * time.Minute, false},
		"idle too long":             {workerstate.Loop, 11*time.Minute + time.Second, true},
		"held by the gate too long": {workerstate.Gated, time.Hour, true},
		"in a job":                  {workerstate.Job, 85 * time.Second, false},
		"the watchdog is dead":      {workerstate.Job, 86 * time.Second, true},
		"maintenance from the boot": {workerstate.Boot, 50 * time.Hour, false},
		"paused after a job":        {workerstate.Ended, 50 * time.Hour, false},
		"stopping":                  {workerstate.Stopping, 50 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := workerstate.State{PID: 9, Phase: c.phase, Beat: now.Add(-c.quiet), Clock: clock - int64(c.quiet)}
			fine := workerstate.State{PID: 8, Phase: workerstate.Loop, Beat: now}
			got := probe.Complaint(wire, []workerstate.State{fine, w}, now, clock)
			if (got != "") != c.wrong {
				t.Errorf("complaint %q", got)
			}
		})
	}
	unlimited := workerstate.State{Phase: workerstate.Job, Clock: 0}
	if got := probe.Complaint(timeoutchain.Wire{}, []workerstate.State{unlimited}, now, clock); got != "" {
		t.Errorf("a job without any limit: %q", got)
	}
}
