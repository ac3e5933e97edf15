// SPDX-License-Identifier: Apache-2.0

// Package watchdog says how long a job may run before it must be dead. PHP's own
// time limit waits for a blocking call to return, so it is no bound by itself.
package watchdog

import (
	"time"

	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// stoppingLimit is how long a worker that decided to end, and so holds no job,
// may take to do it.
const stoppingLimit = time.Minute

// Bound is the longest that a job may run; 0 is no bound. A job's own limit
// counts for it, 0 being "no limit".
func Bound(wire timeoutchain.Wire, task *workerstate.Task) time.Duration {
	job := wire.JobSeconds
	if task != nil && task.Timeout != nil {
		job = *task.Timeout
	}
	chain := timeoutchain.Chain{
		Job:        timeoutchain.Of(job),
		RetryAfter: timeoutchain.Of(wire.RetryAfterSeconds),
	}
	if wire.CallSeconds > 0 {
		chain.HTTP = timeoutchain.Of(wire.CallSeconds)
	}
	if job <= 0 && wire.RetryAfterSeconds > 0 {
		// No limit of its own: only the reservation ends it.
		chain.HTTP = timeoutchain.Value{}
	}
	if job <= 0 && wire.RetryAfterSeconds <= 0 {
		return 0
	}
	return time.Duration(chain.Watchdog()) * time.Second
}

// Overdue says whether a worker must be killed at this reading of the monotonic
// clock, and whether it takes a job with it.
func Overdue(wire timeoutchain.Wire, w workerstate.State, clock int64) (overdue, inJob bool) {
	switch w.Phase {
	case workerstate.Job:
		bound := Bound(wire, w.Job)
		return bound > 0 && w.Age(clock) >= bound, true
	case workerstate.Stopping:
		return w.Age(clock) >= stoppingLimit, false
	default:
		return false, false
	}
}
