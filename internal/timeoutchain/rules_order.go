// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "fmt"

var connectNotBelowHTTP = Rule{
	ID:       "connect-not-below-http",
	Severity: Error,
	Sections: SectionTimeouts,
	Doc: Doc{
		When:   "`httpConnectSeconds` is above `httpSeconds`.",
		Why:    "The connect time is part of the call. A larger number never applies, and whoever wrote it believes in a limit that does not exist.",
		Remedy: "set httpConnectSeconds to at most httpSeconds",
	},
	check: func(c *Chain) []Finding {
		connect, call := c.HTTPConnect.N(), c.HTTP.N()
		if !c.HTTP.Declared() || connect <= call {
			return nil
		}
		return []Finding{{
			Link: LinkHTTPConnect, Against: LinkHTTP, Got: connect, Need: call,
			Problem:     fmt.Sprintf("httpConnectSeconds %d must not be above httpSeconds %d", connect, call),
			Consequence: "connecting is part of the call, so the larger limit never applies",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix {
		return []Fix{setTo(LinkHTTPConnect, f.Need), leaveOut(LinkHTTPConnect)}
	},
}

var httpNotBelowJob = Rule{
	ID:       "http-not-below-job",
	Severity: Error,
	Sections: SectionTimeouts,
	Doc: Doc{
		When:   "H = `httpSeconds` x `httpAttempts` + `httpRetryDelaySeconds` between them is not below `jobSeconds`.",
		Why:    "The job is killed while the provider is still answering. Whether the customer was charged is then unknown.",
		Remedy: "raise jobSeconds above the total, or lower httpSeconds or httpAttempts",
	},
	check: func(c *Chain) []Finding {
		total, job := c.TotalHTTP(), c.Job.N()
		if !c.HTTP.Declared() || !c.Job.Positive() || total < job {
			return nil
		}
		return []Finding{{
			Link: LinkHTTP, Against: LinkJob, Got: total, Need: job,
			Problem:     fmt.Sprintf("%s must be below jobSeconds %d", totalHTTPText(c), job),
			Consequence: "the job is killed while the provider is still answering, and nobody knows whether the call took effect",
		}}
	},
	repair: func(c *Chain, f Finding) []Fix {
		lower := longestCall(c, f.Need)
		return []Fix{
			setTo(LinkJob, add(f.Got, Margin)),
			setTo(LinkJob, add(f.Got, 1)),
			setTo(LinkHTTP, lower),
			{Set: []Assignment{{Link: LinkHTTP, Value: Of(lower)}, {Link: LinkHTTPConnect}}},
		}
	},
}

func totalHTTPText(c *Chain) string {
	attempts := c.attempts()
	switch delay := c.HTTPRetryDelay.N(); {
	case attempts == 1:
		return fmt.Sprintf("httpSeconds %d", c.HTTP.N())
	case delay == 0:
		return fmt.Sprintf("httpSeconds %d x httpAttempts %d = %d", c.HTTP.N(), attempts, c.TotalHTTP())
	default:
		return fmt.Sprintf("httpSeconds %d x httpAttempts %d + %d x httpRetryDelaySeconds %d = %d",
			c.HTTP.N(), attempts, attempts-1, delay, c.TotalHTTP())
	}
}

var jobNotBelowRetryAfter = Rule{
	ID:       "job-not-below-retry-after",
	Severity: Error,
	Sections: SectionTimeouts,
	Doc: Doc{
		When:   "`jobSeconds` is not below `retryAfterSeconds`.",
		Why:    "When the reservation ends the queue hands the job to another worker, whatever the first one is doing. Both run it to the end, and both effects count. Equal is not below: the kill and the redelivery race.",
		Remedy: "raise retryAfterSeconds above jobSeconds, here and where the queue takes it from (config/queue.php, the visibility timeout, consumer_timeout), or lower jobSeconds",
	},
	check: func(c *Chain) []Finding {
		job, reservation := c.Job.N(), c.RetryAfter.N()
		if !jobOutlasts(c) {
			return nil
		}
		return []Finding{{
			Link: LinkJob, Against: LinkRetryAfter, Got: job, Need: reservation,
			Problem:     fmt.Sprintf("jobSeconds %d must be below retryAfterSeconds %d", job, reservation),
			Consequence: fmt.Sprintf("from second %d on a second worker runs the same job while the first still does", reservation),
		}}
	},
	repair: func(c *Chain, f Finding) []Fix {
		return []Fix{
			setTo(LinkRetryAfter, leastReservation(c)),
			setTo(LinkJob, add(f.Need, -afterJob(c))),
			setTo(LinkJob, add(f.Need, -Margin)),
			setTo(LinkJob, add(f.Need, -1)),
		}
	},
}

var retryAfterNotBelowGrace = Rule{
	ID:       "retry-after-not-below-grace",
	Severity: Error,
	Sections: SectionTimeouts | SectionDrain,
	Doc: Doc{
		When:   "`retryAfterSeconds` is not below `terminationGracePeriodSeconds`. A warning where `drain.graceOutlasts: Job` records that the grace need only outlast the job.",
		Why:    "The last link of the chain: a worker that is still busy when the grace ends is killed while its reservation may have hours to go, and the job is handed out again only then. A long grace costs nothing while workers are healthy, since a drained pod leaves at once.",
		Remedy: "leave terminationGracePeriodSeconds out (it is derived), raise it above retryAfterSeconds, or record the choice with drain.graceOutlasts: Job",
	},
	check: func(c *Chain) []Finding {
		reservation, grace := c.RetryAfter.N(), c.GracePeriod()
		if !c.RetryAfter.Positive() || reservation < grace {
			return nil
		}
		severity := Error
		if c.GraceOutlasts == OutlastsJob {
			severity = Warning
		}
		return []Finding{{
			Severity: severity,
			Link:     LinkRetryAfter, Against: LinkGrace, Got: reservation, Need: grace,
			Problem:     fmt.Sprintf("retryAfterSeconds %d must be below terminationGracePeriodSeconds %d", reservation, grace),
			Consequence: "a job killed at the end of the grace stays reserved and comes back only when the reservation ends",
		}}
	},
	repair: func(c *Chain, f Finding) []Fix {
		return []Fix{setTo(LinkGrace, leastGraceOverReservation(c, f.Got)), leaveOut(LinkGrace)}
	},
}

func leastGraceOverReservation(c *Chain, reservation int64) int64 {
	return max(add(reservation, Margin), leastGrace(c))
}

var drainExceedsGrace = Rule{
	ID:       "drain-exceeds-grace",
	Severity: Error,
	Sections: SectionTimeouts | SectionDrain | SectionQueue,
	Doc: Doc{
		When:   "D + P + J is not below `terminationGracePeriodSeconds`, where D is `drain.beforeStop.timeoutSeconds` and P is (`blockForSeconds` + 1) x the number of queues.",
		Why:    "A deploy at the wrong moment asks a worker to stop just as it starts a job. It needs the hook, the pop that was under way and the whole job; the grace ends before, and the job is killed in the middle.",
		Remedy: "leave terminationGracePeriodSeconds out (it is derived) or raise it above beforeStop + pop + jobSeconds",
	},
	check: func(c *Chain) []Finding {
		if !c.Grace.Declared() || c.DrainTime() < c.Grace.N() {
			return nil
		}
		return []Finding{{
			Link: LinkGrace, Against: LinkDrain, Got: c.Grace.N(), Need: c.DrainTime(),
			Problem:     fmt.Sprintf("terminationGracePeriodSeconds %d must be above %s", c.Grace.N(), drainText(c)),
			Consequence: "a deploy, scale-down or node drain kills a job in the middle",
		}}
	},
	repair: func(c *Chain, _ Finding) []Fix { return []Fix{setTo(LinkGrace, leastGrace(c)), leaveOut(LinkGrace)} },
}

func drainText(c *Chain) string {
	if c.BeforeStop.N() == 0 && c.Pop() == 0 {
		return fmt.Sprintf("jobSeconds %d", c.Job.N())
	}
	return fmt.Sprintf("beforeStop %d + pop %d + jobSeconds %d = %d", c.BeforeStop.N(), c.Pop(), c.Job.N(), c.DrainTime())
}

var blockedCallPastReservation = Rule{
	ID:       "blocked-call-past-reservation",
	Severity: Warning,
	Sections: SectionTimeouts,
	Doc: Doc{
		When:   "`jobSeconds` + `httpSeconds` is above `retryAfterSeconds` - 3.",
		Why:    "The worker's limit waits for a blocking call to return, so a job ends by J + C at the latest. Where that lies past the reservation, only a kill from outside ends the job before it is handed out again. Behind a fence such a call still owns its key by then, and the next copy uses up a try.",
		Remedy: "raise retryAfterSeconds above jobSeconds + httpSeconds + 3",
	},
	check: func(c *Chain) []Finding {
		if !c.HTTP.Declared() || !c.Job.Positive() || c.Job.N() >= c.RetryAfter.N() {
			return nil
		}
		latest := add(c.Job.N(), c.Call())
		if latest <= add(c.RetryAfter.N(), -WatchdogLead) {
			return nil
		}
		return []Finding{{
			Link: LinkRetryAfter, Against: LinkBlockedCall, Got: c.RetryAfter.N(), Need: latest,
			Problem:     fmt.Sprintf("jobSeconds %d + httpSeconds %d = %d is past retryAfterSeconds %d - %d", c.Job.N(), c.Call(), latest, c.RetryAfter.N(), WatchdogLead),
			Consequence: "a job caught in a call at its limit can still run when the queue hands it out again",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix { return []Fix{setTo(LinkRetryAfter, add(f.Need, WatchdogLead))} },
}

var blockedCallPastGrace = Rule{
	ID:       "blocked-call-past-grace",
	Severity: Warning,
	Sections: SectionTimeouts | SectionDrain | SectionQueue,
	Doc: Doc{
		When:   "D + P + `jobSeconds` + `httpSeconds` is not below `terminationGracePeriodSeconds`.",
		Why:    "As above: a job caught in a call at its limit ends by J + C. Where the grace ends earlier, that job is killed in the middle of the call.",
		Remedy: "leave terminationGracePeriodSeconds out (it is derived) or raise it",
	},
	check: func(c *Chain) []Finding {
		latest := add(c.DrainTime(), c.Call())
		if !c.Job.Positive() || c.DrainTime() >= c.Grace.N() || latest < c.Grace.N() {
			return nil
		}
		return []Finding{{
			Link: LinkGrace, Against: LinkBlockedCall, Got: c.Grace.N(), Need: latest,
			Problem:     fmt.Sprintf("terminationGracePeriodSeconds %d is not above %s plus httpSeconds %d = %d", c.Grace.N(), drainText(c), c.Call(), latest),
			Consequence: "a job caught in a call at its limit is killed in the middle of that call",
		}}
	},
	repair: func(c *Chain, _ Finding) []Fix { return []Fix{setTo(LinkGrace, leastGrace(c))} },
}

var thinMargin = Rule{
	ID:       "thin-margin",
	Severity: Warning,
	Sections: SectionTimeouts | SectionDrain | SectionQueue,
	Doc: Doc{
		When:   "A link of the chain holds by less than 5 seconds.",
		Why:    "The database driver truncates to whole seconds and can hand a job out a second early; clocks of different machines differ; a process needs time to start and to stop.",
		Remedy: "widen the gap to at least 5 seconds",
	},
	check: func(c *Chain) []Finding {
		var thin []Finding
		note := func(inner Link, innerValue int64, outer Link, outerValue int64) {
			gap := add(outerValue, -innerValue)
			if gap <= 0 || gap >= Margin {
				return
			}
			thin = append(thin, Finding{
				Link: inner, Against: outer, Got: innerValue, Need: outerValue,
				Problem:     fmt.Sprintf("%s %d is below %s %d by only %d s", inner, innerValue, outer, outerValue, gap),
				Consequence: "clock differences and whole-second rounding can turn the order around",
			})
		}
		if c.HTTP.Declared() && c.Job.Positive() {
			note(LinkTotalHTTP, c.TotalHTTP(), LinkJob, c.Job.N())
		}
		if c.Job.Positive() && c.RetryAfter.Positive() {
			note(LinkJob, c.Job.N(), LinkRetryAfter, c.RetryAfter.N())
		}
		if c.Grace.Declared() {
			if c.RetryAfter.Positive() {
				note(LinkRetryAfter, c.RetryAfter.N(), LinkGrace, c.Grace.N())
			}
			note(LinkDrain, c.DrainTime(), LinkGrace, c.Grace.N())
		}
		return thin
	},
	repair: func(c *Chain, f Finding) []Fix {
		outer := setTo(f.Against, add(f.Got, Margin))
		if f.Against == LinkGrace {
			outer = setTo(LinkGrace, max(add(f.Got, Margin), leastGrace(c)))
		}
		switch f.Link {
		case LinkJob:
			return []Fix{outer, setTo(LinkJob, add(f.Need, -Margin))}
		case LinkTotalHTTP:
			return []Fix{outer, setTo(LinkHTTP, longestCall(c, f.Need))}
		default:
			return []Fix{outer}
		}
	},
}
