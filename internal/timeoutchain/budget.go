// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "math"

const (
	// Margin is the least distance, in seconds, between two links that is not
	// reported as thin: clocks differ, queues truncate to whole seconds, a
	// process takes time to start.
	Margin = 5

	// graceReserve is added to a derived grace.
	graceReserve = 10

	// WatchdogLead is how long before the reservation's end an overrunning job
	// must be dead: the database driver can hand a job out up to a second early
	// and looking once a second costs another.
	WatchdogLead = 3

	// watchdogMargin is the time a job may take past J + C before the watchdog
	// concludes that the worker's own limit did not work.
	watchdogMargin = 5

	// probeReserve is added to what a worker needs that a probe has given up on.
	probeReserve = 5

	// unboundedCall stands in for C where neither a call limit nor a
	// reservation is declared.
	unboundedCall = 30

	// Unbounded is the retry window of a job that may run for ever.
	Unbounded = math.MaxInt64
)

// Call is C, the longest single blocking call; 0 when not declared.
func (c *Chain) Call() int64 { return c.HTTP.N() }

// TotalHTTP is H, the longest one job can spend on one provider: every attempt
// in full and the pauses between them. 0 when C is not declared.
func (c *Chain) TotalHTTP() int64 {
	if !c.HTTP.Declared() {
		return 0
	}
	return add(mul(c.HTTP.N(), c.attempts()), c.pauses())
}

// attempts is how many calls one job makes to one provider, at least 1.
func (c *Chain) attempts() int64 { return max(c.HTTPAttempts.N(), 1) }

// pauses is the time between those calls, all together.
func (c *Chain) pauses() int64 { return mul(c.attempts()-1, c.HTTPRetryDelay.N()) }

// processes is how many workers run in one pod.
func (c *Chain) processes() int64 {
	if c.Runtime != Horizon {
		return 1
	}
	return max(c.Worker.Processes.N(), 1)
}

// Pop is P, how long a pop can be under way when the drain begins. Older
// workers block on each queue in turn, and the server answers up to a second
// late.
func (c *Chain) Pop() int64 {
	if !c.BlockFor.Positive() {
		return 0
	}
	return mul(add(c.BlockFor.N(), 1), max(c.Queues, 1))
}

// DrainTime is D + P + J: the longest a worker needs from the stop request to
// its end, when every call in it keeps to its own limit.
func (c *Chain) DrainTime() int64 {
	return sum(c.BeforeStop.N(), c.Pop(), c.Job.N())
}

// FenceStop is how long the fence may need after the worker has ended: a call
// whose worker is gone is still finished and written down. 0 without a fence.
func (c *Chain) FenceStop() int64 {
	if !c.fenced() {
		return 0
	}
	return c.Call()
}

// DerivedGrace is the grace used where none is declared:
// max(R, D + P + J + C) + 10, or D + P + J + C + 10 where the grace need only
// outlast the job. Behind a fence C counts twice, see [Chain.FenceStop].
func (c *Chain) DerivedGrace() int64 {
	need := sum(c.DrainTime(), c.Call(), c.FenceStop())
	if c.GraceOutlasts != OutlastsJob {
		need = max(need, c.RetryAfter.N())
	}
	return add(need, graceReserve)
}

// GracePeriod is G, declared or derived.
func (c *Chain) GracePeriod() int64 { return c.Grace.Or(c.DerivedGrace()) }

// graceKnown says whether the grace is declared or can be derived.
func (c *Chain) graceKnown() bool { return c.Grace.Declared() || c.Job.Positive() }

// ProbeGrace is how long a worker gets that a probe has given up on: what its
// job may still need, D + P + J + C + 5, and never more than G. Without a limit
// for the job it is G.
func (c *Chain) ProbeGrace() int64 {
	if !c.Job.Positive() {
		return c.GracePeriod()
	}
	return min(sum(c.DrainTime(), c.Call(), probeReserve), c.GracePeriod())
}

// Watchdog is the age at which a running job is killed because its own limit
// did not end it: min(J + C + 5, R - 3). It makes J a bound even while PHP waits
// for a blocking call, and ends the job before it is handed out again. 0 means
// no watchdog: the job may run for ever and nothing hands it out again.
func (c *Chain) Watchdog() int64 {
	if !c.RetryAfter.Positive() {
		return c.watchdogWithoutReservation()
	}
	lead := max(add(c.RetryAfter.N(), -WatchdogLead), 1)
	if !c.HTTP.Declared() {
		return lead
	}
	return min(sum(c.Job.N(), c.Call(), watchdogMargin), lead)
}

func (c *Chain) watchdogWithoutReservation() int64 {
	switch {
	case !c.Job.Positive():
		return 0
	case !c.HTTP.Declared():
		return add(c.Job.N(), unboundedCall)
	default:
		return sum(c.Job.N(), c.Call(), watchdogMargin)
	}
}

// RetryWindow is the time from the first start of a job to the latest end of
// its last run: for each of the tries - 1 gaps the reservation and the gap's
// backoff, then J. It has no bound where nothing limits the runs, and where their
// number is not declared here; it is then [Unbounded] or 0.
func (c *Chain) RetryWindow() (window int64, bounded bool) {
	switch {
	case c.RetryUntil.Positive():
		return add(c.RetryUntil.N(), c.Job.N()), true
	case !c.Tries.Declared():
		return 0, false
	case c.Tries.Zero():
		return Unbounded, false
	}
	gaps := c.Tries.N() - 1
	window = add(mul(gaps, c.RetryAfter.N()), c.Job.N())
	steps := int64(len(c.Backoff))
	for i := range min(gaps, steps) {
		window = add(window, c.Backoff[i])
	}
	if steps > 0 && gaps > steps {
		window = add(window, mul(gaps-steps, c.Backoff[steps-1]))
	}
	return window, true
}

// longestBackoff is the longest pause between two runs; 0 without any.
func (c *Chain) longestBackoff() int64 {
	var longest int64
	for _, b := range c.Backoff {
		longest = max(longest, b)
	}
	return longest
}

// backoffGrows says whether any pause is longer than the one before it.
func (c *Chain) backoffGrows() bool {
	for i := 1; i < len(c.Backoff); i++ {
		if c.Backoff[i] > c.Backoff[i-1] {
			return true
		}
	}
	return false
}
