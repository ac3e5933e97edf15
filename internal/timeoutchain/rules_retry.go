// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "fmt"

var retriesUnbounded = Rule{
	ID:       "retries-unbounded",
	Severity: Error,
	Sections: SectionRetries | SectionRuntime,
	Doc: Doc{
		When:   "Laravel or Horizon: `retries.tries` is 0 and `retries.retryUntilSeconds` is not set.",
		Why:    "0 means unlimited. A job that kills its own process (memory, a broken extension) comes back for ever and takes a worker down each time.",
		Remedy: "set tries to the number of runs a job may have, or retryUntilSeconds",
	},
	check: func(c *Chain) []Finding {
		if c.Runtime == Generic || !c.Tries.Zero() || c.RetryUntil.Declared() {
			return nil
		}
		return []Finding{{
			Link:        LinkTries,
			Problem:     "tries 0 means unlimited, and retryUntilSeconds is not set",
			Consequence: "a job that kills its process is run again for ever",
		}}
	},
	repair: func(c *Chain, _ Finding) []Fix {
		return []Fix{setTo(LinkTries, max(3, int64(len(c.Backoff))+1)), setTo(LinkTries, 2), setTo(LinkTries, 1)}
	},
}

var backoffFlat = Rule{
	ID:       "backoff-flat",
	Severity: Warning,
	Sections: SectionRetries | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "`tries` is above 2, no step of `backoffSeconds` is longer than the one before, and `httpSeconds` is set.",
		Why:    "A job that calls a provider fails when the provider is down. Three tries in half a minute do not outlast an outage; the job ends in failed_jobs while the provider recovers.",
		Remedy: "give backoffSeconds growing steps, such as [10, 60]",
	},
	check: func(c *Chain) []Finding {
		if c.Tries.N() <= 2 || c.RetryUntil.Declared() || !c.HTTP.Declared() || c.backoffGrows() {
			return nil
		}
		return []Finding{{
			Link: LinkBackoff, Against: LinkTries, Got: c.longestBackoff(), Need: c.Tries.N(),
			Problem:     fmt.Sprintf("tries %d with a backoff that never grows (%d s)", c.Tries.N(), c.longestBackoff()),
			Consequence: "all tries are spent within one short outage of the provider",
		}}
	},
}

var backoffBeyondTries = Rule{
	ID:       "backoff-beyond-tries",
	Severity: Warning,
	Sections: SectionRetries | SectionRuntime,
	Doc: Doc{
		When:   "`backoffSeconds` has more steps than there are retries (`tries` - 1).",
		Why:    "The last steps are never used: whoever wrote them expects more tries than there are.",
		Remedy: "raise tries to the number of steps plus one, or remove the steps that are never used",
	},
	check: func(c *Chain) []Finding {
		steps := int64(len(c.Backoff))
		if !c.Tries.Positive() || c.RetryUntil.Declared() || steps <= c.Tries.N()-1 {
			return nil
		}
		return []Finding{{
			Link: LinkBackoff, Against: LinkTries, Got: steps, Need: c.Tries.N(),
			Problem:     fmt.Sprintf("backoffSeconds has %d steps, but tries %d leaves %d retries", steps, c.Tries.N(), c.Tries.N()-1),
			Consequence: "the last steps are never used",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix { return []Fix{setTo(LinkTries, add(f.Got, 1))} },
}

var backoffExceedsRetention = Rule{
	ID:       "backoff-exceeds-retention",
	Severity: Error,
	Sections: SectionRetries | SectionQueue | SectionRuntime,
	Doc: Doc{
		When:   "The longest step of `backoffSeconds` is not below `queue.messageRetentionSeconds`.",
		Why:    "The queue deletes the message before its pause is over. The job is neither run again nor in failed_jobs: it is gone.",
		Remedy: "raise messageRetentionSeconds (and the queue's own setting) or shorten the backoff",
	},
	check: func(c *Chain) []Finding {
		longest := c.longestBackoff()
		if !c.MessageRetention.Declared() || longest < c.MessageRetention.N() {
			return nil
		}
		return []Finding{{
			Link: LinkBackoff, Against: LinkRetention, Got: longest, Need: c.MessageRetention.N(),
			Problem:     fmt.Sprintf("backoffSeconds %d must be below messageRetentionSeconds %d", longest, c.MessageRetention.N()),
			Consequence: "the queue deletes the message while it waits for its next try, and the job is lost without a trace",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix {
		return []Fix{setTo(LinkRetention, add(f.Got, Margin)), leaveOut(LinkRetention)}
	},
}

var keyTTLBelowRetryWindow = Rule{
	ID:       "key-ttl-below-retry-window",
	Severity: Error,
	Sections: SectionFence | SectionRetries | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "`fence.providerKeyTTLSeconds` is not above the retry window: for each of the tries - 1 gaps `retryAfterSeconds` and its backoff, then `jobSeconds`. A warning with `fence.mode: Table`; not judged with Proxy, which never sends a key that may be forgotten.",
		Why:    "The provider forgets the idempotency key before the last run. That run is a new charge to it. With no fence of your own the provider's key is the only guard.",
		Remedy: "shorten the retries so that the window stays below the provider's key lifetime, or keep a fence table and declare fence.mode: Table",
	},
	check: func(c *Chain) []Finding {
		window, bounded := c.RetryWindow()
		if c.fenced() || !bounded || !c.ProviderKeyTTL.Declared() || c.ProviderKeyTTL.N() > window {
			return nil
		}
		severity := Error
		if c.Fence != FenceNone {
			severity = Warning
		}
		return []Finding{{
			Severity: severity,
			Link:     LinkProviderKeyTTL, Against: LinkRetryWindow, Got: c.ProviderKeyTTL.N(), Need: window,
			Problem:     fmt.Sprintf("providerKeyTTLSeconds %d must be above the retry window %d", c.ProviderKeyTTL.N(), window),
			Consequence: "the last run carries a key that the provider no longer knows, so its effect is made a second time",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix {
		fixes := []Fix{setTo(LinkProviderKeyTTL, add(f.Need, 1))}
		fixes[0].Text = fmt.Sprintf("shorten the retries, keep a fence table (fence.mode: Table), or set providerKeyTTLSeconds to %d if the provider really remembers that long", add(f.Need, 1))
		return append(fixes, leaveOut(LinkProviderKeyTTL))
	},
}

var overlapLockShorterThanJob = Rule{
	ID:       "overlap-lock-shorter-than-job",
	Severity: Warning,
	Sections: SectionLocks | SectionTimeouts,
	Doc: Doc{
		When:   "`locks.overlapExpireAfterSeconds` is above 0 and not above `jobSeconds` + `httpSeconds`.",
		Why:    "WithoutOverlapping holds its lock that long. When it expires under a running job, a second copy enters. 0 never expires.",
		Remedy: "raise overlapExpireAfterSeconds above jobSeconds + httpSeconds",
	},
	check: func(c *Chain) []Finding {
		longest := add(c.Job.N(), c.Call())
		if !c.OverlapExpireAfter.Positive() || !c.Job.Positive() || c.OverlapExpireAfter.N() > longest {
			return nil
		}
		return []Finding{{
			Link: LinkOverlap, Against: LinkBlockedCall, Got: c.OverlapExpireAfter.N(), Need: longest,
			Problem:     fmt.Sprintf("overlapExpireAfterSeconds %d must be above %d, jobSeconds plus one call", c.OverlapExpireAfter.N(), longest),
			Consequence: "the lock expires under a running job and a second copy enters",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix {
		return []Fix{setTo(LinkOverlap, add(f.Need, 1)), setTo(LinkOverlap, 0)}
	},
}

var uniqueLockShorterThanRetries = Rule{
	ID:       "unique-lock-shorter-than-retries",
	Severity: Warning,
	Sections: SectionLocks | SectionRetries | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "`locks.uniqueForSeconds` is above 0 and below the retry window.",
		Why:    "ShouldBeUnique takes its lock at dispatch. When it expires before the last retry, the same work is dispatched again beside the job that still retries. 0 never expires.",
		Remedy: "raise uniqueForSeconds to the retry window, or set it to 0",
	},
	check: func(c *Chain) []Finding {
		window, bounded := c.RetryWindow()
		if !bounded || !c.UniqueFor.Positive() || c.UniqueFor.N() >= window {
			return nil
		}
		return []Finding{{
			Link: LinkUniqueFor, Against: LinkRetryWindow, Got: c.UniqueFor.N(), Need: window,
			Problem:     fmt.Sprintf("uniqueForSeconds %d is below the retry window %d", c.UniqueFor.N(), window),
			Consequence: "the lock expires while the job still retries, and a second copy is dispatched",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix { return []Fix{setTo(LinkUniqueFor, f.Need), setTo(LinkUniqueFor, 0)} },
}
