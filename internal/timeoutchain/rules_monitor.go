// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "fmt"

var stuckBeforeJobEnds = Rule{
	ID:       "stuck-before-job-ends",
	Severity: Warning,
	Sections: SectionMonitor | SectionTimeouts,
	Doc: Doc{
		When:   "`monitor.stuckAfterSeconds` is not above the longer of `jobSeconds` and `retryAfterSeconds`.",
		Why:    "With a few workers, nothing moves while each runs one long job, or until the reservation of a lost one is over. That is no stuck queue, and an alert that fires then is one that is muted. Left out, it is three times the longer of the two.",
		Remedy: "raise stuckAfterSeconds above both, or leave it out",
	},
	check: func(c *Chain) []Finding {
		longest := max(c.Job.N(), c.RetryAfter.N())
		if !c.StuckAfter.Declared() || c.StuckAfter.N() > longest {
			return nil
		}
		link := LinkRetryAfter
		if c.Job.N() > c.RetryAfter.N() {
			link = LinkJob
		}
		return []Finding{{
			Link: LinkStuckAfter, Against: link, Got: c.StuckAfter.N(), Need: longest,
			Problem:     fmt.Sprintf("stuckAfterSeconds %d is not above %s %d", c.StuckAfter.N(), link, longest),
			Consequence: "one long job, or one lost reservation, looks like a stuck queue",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix {
		return []Fix{setTo(LinkStuckAfter, add(f.Need, 1)), leaveOut(LinkStuckAfter)}
	},
}
