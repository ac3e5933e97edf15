// SPDX-License-Identifier: Apache-2.0

// Package probe decides whether workers are alive, from what they last said. It
// is pure.
package probe

import (
	"fmt"
	"time"

	"github.com/queueworker/operator/internal/agent/watchdog"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const (
	// silence is how long an idle worker may say nothing, besides the time that
	// a pop may take. Long, because maintenance mode and a pause by signal
	// silence a healthy worker too.
	silence = 10 * time.Minute

	// overdue is how much later than the watchdog the probe speaks: only when
	// the watchdog does not.
	overdue = 30 * time.Second
)

// Complaint is what is wrong, empty when nothing is. A worker in phase boot is
// never wrong: maintenance mode can hold it there.
func Complaint(wire timeoutchain.Wire, workers []workerstate.State, now time.Time, clock int64) string {
	idle := silence + time.Duration(wire.PopSeconds)*time.Second
	for _, w := range workers {
		switch w.Phase {
		case workerstate.Loop, workerstate.Gated:
			if quiet := now.Sub(w.Beat); quiet > idle {
				return fmt.Sprintf("worker %d looks for no job since %s (longest allowed %s)", w.PID, round(quiet), idle)
			}
		case workerstate.Job:
			bound := watchdog.Bound(wire, w.Job)
			if age := w.Age(clock); bound > 0 && age > bound+overdue {
				return fmt.Sprintf("worker %d runs its job since %s (longest allowed %s)", w.PID, round(age), bound)
			}
		}
	}
	return ""
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }
