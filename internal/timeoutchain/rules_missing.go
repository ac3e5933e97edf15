// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"fmt"
	"math"
)

var httpTimeoutMissing = Rule{
	ID:             "http-timeout-missing",
	Severity:       Warning,
	SometimesError: true,
	Sections:       SectionTimeouts | SectionFence,
	Doc: Doc{
		When:   "`httpSeconds` is not set. An error with `fence.mode: Proxy`, whose times all follow from it.",
		Why:    "PHP's alarm waits until a blocking call returns: a job with a limit of 2 s inside a curl call of 7 s was killed after 7 s, with the effect made and the answer lost. Without a limit on the call the job has none either.",
		Remedy: "give every client the job uses a timeout, and declare the longest one as httpSeconds",
	},
	check: func(c *Chain) []Finding {
		if c.HTTP.Declared() {
			return nil
		}
		severity := Warning
		if c.fenced() { // its lease and every later time follow from this one
			severity = Error
		}
		return []Finding{{
			Severity: severity,
			Link:     LinkHTTP, Against: LinkJob, Need: c.Job.N(),
			Problem:     fmt.Sprintf("httpSeconds is not set, while jobSeconds is %d", c.Job.N()),
			Consequence: "a call without a timeout can hold a job past every limit declared here",
		}}
	},
	repair: func(c *Chain, _ Finding) []Fix {
		most := int64(unboundedCall)
		if c.Job.Positive() {
			most = longestCall(c, c.Job.N())
		}
		return []Fix{callOf(min(most, max(longestQuietCall(c), 1))), callOf(most)}
	},
}

func callOf(most int64) Fix {
	fix := setTo(LinkHTTP, most)
	fix.Text = fmt.Sprintf("set httpSeconds to the longest timeout of any client that the job uses, at most %d", most)
	return fix
}

var jobTimeoutUnbounded = Rule{
	ID:       "job-timeout-unbounded",
	Severity: Error,
	Sections: SectionTimeouts | SectionRuntime | SectionQueue,
	Doc: Doc{
		When:   "`jobSeconds` is 0 under Laravel or Horizon, or while the queue has a reservation (`retryAfterSeconds`, or any queue on SQS).",
		Why:    "0 switches the worker's own limit off. A job without a limit outlives any reservation, and a second worker starts it while the first still runs.",
		Remedy: "set jobSeconds to the longest a job may take, below retryAfterSeconds",
	},
	check: func(c *Chain) []Finding {
		if !unbounded(c) {
			return nil
		}
		return []Finding{{
			Link: LinkJob, Against: LinkRetryAfter, Got: c.Job.N(), Need: c.RetryAfter.N(),
			Problem:     fmt.Sprintf("jobSeconds %d means no limit, while retryAfterSeconds is %s", c.Job.N(), orUnset(c.RetryAfter)),
			Consequence: "a job that runs longer than the reservation is run a second time beside itself",
		}}
	},
	repair: func(c *Chain, _ Finding) []Fix {
		usual := int64(60)
		if c.RetryAfter.Positive() {
			usual = add(c.RetryAfter.N(), -afterJob(c))
		}
		return []Fix{setTo(LinkJob, max(usual, c.LeastJob()))}
	},
}

var retryAfterMissing = Rule{
	ID:       "retry-after-missing",
	Severity: Error,
	Sections: SectionTimeouts | SectionRuntime | SectionQueue,
	Doc: Doc{
		When:   "`retryAfterSeconds` is left out for Laravel or Horizon, or for any runtime on SQS, or is 0.",
		Why:    "Left out, the connector's own fallback applies: 60 s on Redis, database and beanstalkd, the queue's visibility timeout on SQS; nobody who reads the YAML knows it. 0 does not switch the reservation off: the job is handed out again at once.",
		Remedy: "set retryAfterSeconds above jobSeconds, to what the connection really uses",
	},
	check: func(c *Chain) []Finding {
		switch {
		case c.RetryAfter.Zero():
			return []Finding{{
				Link: LinkRetryAfter, Against: LinkJob, Got: c.RetryAfter.N(), Need: c.Job.N(),
				Problem:     fmt.Sprintf("retryAfterSeconds is %d, while jobSeconds is %d", c.RetryAfter.N(), c.Job.N()),
				Consequence: "0 does not switch the reservation off: a job is handed to a second worker at once",
			}}
		case c.RetryAfter.Declared() || (c.Runtime == Generic && c.Driver != SQS):
			return nil
		default:
			return []Finding{{
				Link: LinkRetryAfter, Against: LinkJob, Need: c.Job.N(),
				Problem:     fmt.Sprintf("retryAfterSeconds is not set, while jobSeconds is %d", c.Job.N()),
				Consequence: "the queue's own fallback decides when a job is run again (60 s on Redis, database and beanstalkd; the queue's visibility timeout on SQS)",
			}}
		}
	},
	repair: func(c *Chain, _ Finding) []Fix { return []Fix{setTo(LinkRetryAfter, leastReservation(c))} },
}

var graceMissing = Rule{
	ID:       "grace-missing",
	Severity: Error,
	Sections: SectionTimeouts | SectionRuntime | SectionQueue,
	Doc: Doc{
		When:   "`jobSeconds` is 0 (Generic, no reservation) and `terminationGracePeriodSeconds` is not set.",
		Why:    "The grace is derived from the job's limit. Without a limit there is nothing to derive it from, and Kubernetes' own 30 s would be a guess.",
		Remedy: "set terminationGracePeriodSeconds to the longest a job may need to finish",
	},
	check: func(c *Chain) []Finding {
		if !c.Job.Zero() || unbounded(c) || c.Grace.Declared() {
			return nil
		}
		return []Finding{{
			Link: LinkGrace, Against: LinkJob,
			Problem:     "terminationGracePeriodSeconds is not set and jobSeconds 0 means no limit",
			Consequence: "nothing says how long a worker may need to finish its job before it is killed",
		}}
	},
	repair: func(c *Chain, _ Finding) []Fix {
		return []Fix{setTo(LinkGrace, max(3600, leastGrace(c)))}
	},
}

// unbounded says whether a job without a limit can be handed out twice.
func unbounded(c *Chain) bool {
	return c.Job.Zero() && (c.Runtime != Generic || c.RetryAfter.Positive() || c.Driver == SQS)
}

// LeastJob is the smallest job limit that leaves no finding between it and the
// links inside of it.
func (c *Chain) LeastJob() int64 {
	return max(add(c.TotalHTTP(), Margin), add(max(c.Worker.Sleep.N(), c.Worker.Rest.N()), 1))
}

func orUnset(v Value) string {
	if !v.Declared() {
		return "not set"
	}
	return fmt.Sprint(v.N())
}

// longestCall is the longest httpSeconds, at least 1, whose attempts all fit
// into a job with a margin.
func longestCall(c *Chain, job int64) int64 {
	return max(sum(job, -c.pauses(), -Margin)/c.attempts(), 1)
}

// longestQuietCall is the longest httpSeconds with which a job that is caught in
// a call at its limit still ends inside the links outside of it.
func longestQuietCall(c *Chain) int64 {
	longest := int64(math.MaxInt64)
	if c.RetryAfter.Positive() {
		longest = sum(c.RetryAfter.N(), -WatchdogLead, -c.Job.N())
	}
	if c.Grace.Declared() {
		longest = min(longest, sum(c.Grace.N(), -1, -c.DrainTime()))
	}
	if c.OverlapExpireAfter.Positive() {
		longest = min(longest, sum(c.OverlapExpireAfter.N(), -1, -c.Job.N()))
	}
	return longest
}
