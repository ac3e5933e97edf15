// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "fmt"

// Limits of Amazon SQS, in seconds.
const (
	SQSMaxVisibility = 43_200 // also the longest release delay
	SQSMinRetention  = 60
	SQSMaxRetention  = 1_209_600
)

var driverUnknown = Rule{
	ID:       "driver-unknown",
	Severity: Error,
	Sections: SectionQueue | SectionRuntime,
	Doc: Doc{
		When:   "Laravel: `queue.driver` is not set and the connection's name is not one of redis, database, sqs, beanstalkd, rabbitmq.",
		Why:    "Connection names are free. Without the driver no rule about its limits can be judged, and a rollout cannot know whether the smallest reservation of all workers rules.",
		Remedy: "set queue.driver to the connection's driver: Redis, Database, SQS, Beanstalkd, RabbitMQ or Other",
	},
	check: func(c *Chain) []Finding {
		if c.Runtime != Laravel || c.Driver != "" {
			return nil
		}
		return []Finding{{
			Link: LinkDriver, Against: LinkConnection,
			Problem:     "driver is not set and the connection's name does not say it",
			Consequence: "no rule about the driver's own limits can be judged",
		}}
	},
}

var driverLimit = Rule{
	ID:       "driver-limit",
	Severity: Error,
	Sections: SectionQueue | SectionTimeouts | SectionRetries | SectionRuntime,
	Doc: Doc{
		When:   "SQS: `retryAfterSeconds` or a step of `backoffSeconds` is above 43200 (12 hours), or `queue.messageRetentionSeconds` is not between 60 and 1209600 (14 days).",
		Why:    "SQS refuses the call. A release with a longer delay fails inside the worker, and the job comes back at the end of its visibility timeout instead.",
		Remedy: "stay within what the driver accepts",
	},
	check: func(c *Chain) []Finding {
		if c.Driver != SQS {
			return nil
		}
		var findings []Finding
		refuse := func(l Link, got, limit int64, relation string) {
			findings = append(findings, Finding{
				Link: l, Against: LinkDriver, Subject: string(SQS), Got: got, Need: limit,
				Problem:     fmt.Sprintf("%s %d must be %s %d on SQS", l, got, relation, limit),
				Consequence: "SQS refuses the number, so another one applies than the one declared",
			})
		}
		if r := c.RetryAfter.N(); r > SQSMaxVisibility {
			refuse(LinkRetryAfter, r, SQSMaxVisibility, "at most")
		}
		if b := c.longestBackoff(); b > SQSMaxVisibility {
			refuse(LinkBackoff, b, SQSMaxVisibility, "at most")
		}
		if m := c.MessageRetention; m.Declared() && m.N() < SQSMinRetention {
			refuse(LinkRetention, m.N(), SQSMinRetention, "at least")
		} else if m.N() > SQSMaxRetention {
			refuse(LinkRetention, m.N(), SQSMaxRetention, "at most")
		}
		return findings
	},
	repair: func(c *Chain, f Finding) []Fix {
		switch f.Link {
		case LinkRetryAfter:
			job := min(c.Job.N(), add(f.Need, -afterJob(c)))
			return []Fix{
				setTo(LinkRetryAfter, f.Need),
				{Set: []Assignment{{Link: LinkRetryAfter, Value: Of(f.Need)}, {Link: LinkJob, Value: Of(job)}}},
			}
		case LinkRetention:
			return []Fix{setTo(LinkRetention, f.Need)}
		default:
			return []Fix{{Text: fmt.Sprintf("keep every step of backoffSeconds at or below %d", f.Need)}}
		}
	},
}

var horizonNeedsRedis = Rule{
	ID:       "horizon-needs-redis",
	Severity: Error,
	Sections: SectionQueue | SectionRuntime,
	Doc: Doc{
		When:   "Horizon on a driver other than Redis.",
		Why:    "Horizon keeps its state in Redis and supervises Redis queues only.",
		Remedy: "use a Redis connection, or runtime: Laravel",
	},
	check: func(c *Chain) []Finding {
		if c.Runtime != Horizon || c.Driver == Redis || c.Driver == "" {
			return nil
		}
		return []Finding{{
			Link: LinkDriver, Subject: string(c.Driver),
			Problem:     fmt.Sprintf("runtime Horizon cannot use driver %s", c.Driver),
			Consequence: "Horizon supervises Redis queues only, so no job of this connection would ever run",
		}}
	},
}

var sharedQueueShorterReservation = Rule{
	ID:          "shared-queue-shorter-reservation",
	Severity:    Error,
	CrossObject: true,
	Sections:    SectionQueue | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "Another QueueWorker in the namespace polls one of the same queues of the same Database connection, and its `retryAfterSeconds` is not above this `jobSeconds`, or the reverse. An error where both declare the same `queue.store`, else a warning.",
		Why:    "On the database driver the reader decides when a reservation is over: the smallest retry_after among all workers that poll the table rules for every job in it.",
		Remedy: "give all workers of the queue a retryAfterSeconds above the longest jobSeconds among them, or separate queues",
	},
	check: func(c *Chain) []Finding {
		var findings []Finding
		for _, p := range c.Pollers {
			severity := Warning
			if p.SameStore {
				severity = Error
			}
			switch {
			case c.Job.Positive() && p.RetryAfter.Declared() && p.RetryAfter.N() <= c.Job.N():
				findings = append(findings, Finding{
					Severity: severity, Subject: p.Name,
					Link: LinkJob, Against: LinkOtherWorker, Got: c.Job.N(), Need: p.RetryAfter.N(),
					Problem:     fmt.Sprintf("jobSeconds %d must be below retryAfterSeconds %d of QueueWorker %s, which polls the same queue", c.Job.N(), p.RetryAfter.N(), p.Name),
					Consequence: fmt.Sprintf("from second %d on its workers take jobs that still run here", p.RetryAfter.N()),
				})
			case c.RetryAfter.Declared() && p.Job.Positive() && c.RetryAfter.N() <= p.Job.N():
				findings = append(findings, Finding{
					Severity: severity, Subject: p.Name,
					Link: LinkRetryAfter, Against: LinkOtherWorker, Got: c.RetryAfter.N(), Need: p.Job.N(),
					Problem:     fmt.Sprintf("retryAfterSeconds %d must be above jobSeconds %d of QueueWorker %s, which polls the same queue", c.RetryAfter.N(), p.Job.N(), p.Name),
					Consequence: fmt.Sprintf("from second %d on these workers take jobs that still run there", c.RetryAfter.N()),
				})
			}
		}
		return findings
	},
	repair: func(_ *Chain, f Finding) []Fix {
		if f.Link == LinkRetryAfter {
			return []Fix{setTo(LinkRetryAfter, add(f.Need, Margin))}
		}
		return []Fix{setTo(LinkJob, add(f.Need, -Margin)), setTo(LinkJob, add(f.Need, -1))}
	},
}
