// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"fmt"
	"slices"
)

// The rules of this file judge a fence that stands between the worker and its
// providers.

// Provider is what the fence's sidecar is told of one provider.
type Provider struct {
	Name            string
	SendWindow      Value  // S: from a claim to the first byte sent; DefaultSendWindow when not declared
	Timeout         Value  // hp: the sidecar's own limit for one reply; what C leaves when not declared
	StatementBudget Value  // c: what one round of the sidecar's statements may take; DefaultStatementBudget when not declared
	InFlight        Value  // X: how long a request may still act after its start; DefaultInFlight when not declared
	LookupLag       Value  // V: from an effect to a lookup that shows it; not declared = a lookup never proves absence
	KeyTTL          Value  // T: how long a key is remembered; not declared = it is not relied on
	Fault           string // why one of its expressions or its lookup cannot serve
	FaultField      Link   // the field that holds it
}

// The defaults of the fence's times, in seconds. InFlight also covers what no
// timeout bounds: a proxy's or the provider's own queue, a frozen process.
const (
	DefaultSendWindow      = 1
	DefaultStatementBudget = 1
	DefaultInFlight        = 300

	// LeastInFlight is how far the in-flight time must exceed the sidecar's own
	// limit: a request does not end at the provider when nobody waits for it.
	LeastInFlight = 30
)

func (p *Provider) sendWindow() int64      { return p.SendWindow.Or(DefaultSendWindow) }
func (p *Provider) statementBudget() int64 { return p.StatementBudget.Or(DefaultStatementBudget) }
func (p *Provider) inFlight() int64        { return p.InFlight.Or(DefaultInFlight) }

// margin is how long after its claim a request may still act.
func (p *Provider) margin() int64 { return add(p.sendWindow(), p.inFlight()) }

// around is what a call through the fence takes beside the provider's reply:
// the send window, and two rounds of statements. A copy that finds the key free
// or unknown asks the database once before it claims.
func (p *Provider) around() int64 {
	return sum(p.sendWindow(), p.statementBudget(), p.statementBudget())
}

// replyLimit is what the client's limit leaves where none is declared.
func (c *Chain) replyLimit(p *Provider) int64 {
	return p.Timeout.Or(max(add(c.Call(), -p.around()), 1))
}

// fencedCall is the longest that a call through the fence takes.
func (c *Chain) fencedCall(p *Provider) int64 { return add(c.replyLimit(p), p.around()) }

// fenced reports whether a sidecar calls the providers.
func (c *Chain) fenced() bool { return c.Fence == FenceProxy }

func (c *Chain) provider(name string) (int, bool) {
	i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == name })
	return i, i >= 0
}

// perProvider judges each provider and names it in what is found.
func perProvider(check func(*Chain, *Provider) []Finding) func(*Chain) []Finding {
	return func(c *Chain) []Finding {
		if !c.fenced() {
			return nil
		}
		var findings []Finding
		for i := range c.Providers {
			for _, f := range check(c, &c.Providers[i]) {
				f.Subject = c.Providers[i].Name
				findings = append(findings, f)
			}
		}
		return findings
	}
}

// setProvider is the repair that gives a link of the found provider a value.
func setProvider(f Finding, l Link, n int64) Fix {
	return Fix{Set: []Assignment{{Link: l, Subject: f.Subject, Value: Of(n)}}}
}

var fenceIncomplete = Rule{
	ID:       "fence-incomplete",
	Severity: Error,
	Sections: SectionFence,
	Doc: Doc{
		When:   "`fence.mode` is Proxy, and `fence.store` is missing, or `fence.providers` and `fence.claims` both are.",
		Why:    "The sidecar keeps its keys in the store and calls the providers, or lets the application claim keys. Without either it cannot start, and no worker beside it.",
		Remedy: "declare the store and at least one provider or claim, or set fence.mode to Table or None",
	},
	check: func(c *Chain) []Finding {
		served := len(c.Providers) > 0 || c.Claims
		if !c.fenced() || c.FenceStore && served {
			return nil
		}
		link, missing := LinkFenceStore, "store"
		switch {
		case c.FenceStore:
			link, missing = LinkProviders, "providers"
		case !served:
			missing = "store and providers"
		}
		return []Finding{{
			Link:        link,
			Problem:     "fence.mode is Proxy without " + missing,
			Consequence: "the sidecar cannot start, and no worker beside it",
		}}
	},
}

var fenceTableName = Rule{
	ID:       "fence-table-name",
	Severity: Error,
	Sections: SectionFence,
	Doc: Doc{
		When:   "`fence.table.name`, with `fence.mode: Proxy`, is not TABLE or SCHEMA.TABLE, each of at most 48 lower-case letters, digits and underscores that do not begin with a digit.",
		Why:    "The sidecar takes only names that every database reads alike, with or without quotes, and leaves room for the names that it derives. It does not start with another one. An application's own table, of mode Table, may have any name.",
		Remedy: "name it TABLE or SCHEMA.TABLE, each of at most 48 lower-case letters, digits and underscores that do not begin with a digit",
	},
	check: func(c *Chain) []Finding {
		if !c.fenced() || c.WrongTable == "" {
			return nil
		}
		return []Finding{{
			Link: LinkFenceTable, Subject: c.WrongTable,
			Problem:     "the sidecar's table cannot be named " + c.WrongTable,
			Consequence: "the sidecar does not start with it, and no worker beside it",
		}}
	},
}

var fenceExpression = Rule{
	ID:          "fence-expression",
	Severity:    Error,
	Sections:    SectionFence,
	NotInTheCRD: true,
	Doc: Doc{
		When:   "A CEL expression of a provider does not compile, or its lookup could not tell one key from another.",
		Why:    "The sidecar judges both when it starts, and does not start with what could not work. The CRD's own rules cannot judge an expression: this one is refused by the webhook and the command line.",
		Remedy: "correct the field at the place that the message names",
	},
	check: perProvider(func(_ *Chain, p *Provider) []Finding {
		if p.Fault == "" {
			return nil
		}
		return []Finding{{
			Link:        p.FaultField,
			Problem:     fmt.Sprintf("%s of provider %s cannot serve: %s", p.FaultField, p.Name, p.Fault),
			Consequence: "the sidecar does not start with it, and no worker beside it",
		}}
	}),
}

var providerTimeoutNotBelowHTTP = Rule{
	ID:       "provider-timeout-not-below-http",
	Severity: Error,
	Sections: SectionFence | SectionTimeouts,
	Doc: Doc{
		When:   "A provider's `timeoutSeconds` + 3 (the fence's send window and two rounds of its statements) is above `httpSeconds`. With `timeoutSeconds` left out: `httpSeconds` is below 4.",
		Why:    "The client gives up before the fence can answer. The call goes on, the job fails, and its next run meets a key that is still claimed. One second less still leaves time for the first run, but not for a later one, which asks the database once more: its key could never be sent again.",
		Remedy: "shorten the provider's timeoutSeconds, or raise httpSeconds",
	},
	check: perProvider(func(c *Chain, p *Provider) []Finding {
		if !c.HTTP.Declared() || c.fencedCall(p) <= c.HTTP.N() {
			return nil
		}
		return []Finding{{
			Link: LinkProviderTimeout, Against: LinkHTTP, Got: c.fencedCall(p), Need: c.HTTP.N(),
			Problem: fmt.Sprintf("a call of provider %s may take %d s (send window %d + timeout %d + statements %d), but httpSeconds is %d",
				p.Name, c.fencedCall(p), p.sendWindow(), c.replyLimit(p), add(p.statementBudget(), p.statementBudget()), c.HTTP.N()),
			Consequence: "the client gives up while the call goes on, or a later run of the job has no time left to send",
		}}
	}),
	repair: func(c *Chain, f Finding) []Fix {
		i, ok := c.provider(f.Subject)
		if !ok {
			return nil
		}
		raise := setTo(LinkHTTP, f.Got)
		if fits := add(c.HTTP.N(), -c.Providers[i].around()); fits >= 1 {
			return []Fix{setProvider(f, LinkProviderTimeout, fits), raise}
		}
		return []Fix{raise}
	},
}

var inFlightTooShort = Rule{
	ID:       "in-flight-too-short",
	Severity: Error,
	Sections: SectionFence | SectionTimeouts,
	Doc: Doc{
		When:   "A provider's `maxInFlightSeconds` is below its `timeoutSeconds` plus 30.",
		Why:    "A request does not end at the provider when nobody waits for it any longer. Until it is dead, a lookup that finds nothing proves nothing; freed too early, the key is sent a second time and both requests act.",
		Remedy: "raise maxInFlightSeconds to how long a request may still act, proxies and the provider's own queue included",
	},
	check: perProvider(func(c *Chain, p *Provider) []Finding {
		need := add(c.replyLimit(p), LeastInFlight)
		if p.inFlight() >= need {
			return nil
		}
		return []Finding{{
			Link: LinkInFlight, Against: LinkProviderTimeout, Got: p.inFlight(), Need: need,
			Problem:     fmt.Sprintf("maxInFlightSeconds %d of provider %s must be at least %d, its timeout plus %d", p.inFlight(), p.Name, need, LeastInFlight),
			Consequence: "a key is taken for free while its request may still act, and the effect happens twice",
		}}
	}),
	repair: func(_ *Chain, f Finding) []Fix { return []Fix{setProvider(f, LinkInFlight, f.Need)} },
}

var quietPastRetries = Rule{
	ID:       "quiet-past-retries",
	Severity: Warning,
	Sections: SectionFence | SectionRetries | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "A lookup lag is declared, and send window + `maxInFlightSeconds` + lookup lag is not below the time from the first run of a job to its last (`retryAfterSeconds` and backoff of each gap).",
		Why:    "A lookup that finds nothing frees a key only when the row is quiet. The last run starts before that: the fence settles the key later by itself, but the job is in failed_jobs by then.",
		Remedy: "give the job more tries or a longer last backoff, or shorten maxInFlightSeconds if the provider allows it",
	},
	check: perProvider(func(c *Chain, p *Provider) []Finding {
		window, bounded := c.RetryWindow()
		quiet := add(p.margin(), p.LookupLag.N())
		lastStart := add(window, -c.Job.N())
		if !p.LookupLag.Declared() || !bounded || quiet < lastStart {
			return nil
		}
		return []Finding{{
			Link: LinkInFlight, Against: LinkLastStart, Got: quiet, Need: lastStart,
			Problem:     fmt.Sprintf("a lookup at %s can conclude after %d s, but the last run starts after %d s", p.Name, quiet, lastStart),
			Consequence: "a job whose outcome is unknown fails before it can be known; its key is settled without it",
		}}
	}),
}

var keyTTLTooShortToResend = Rule{
	ID:             "key-ttl-too-short-to-resend",
	Severity:       Warning,
	SometimesError: true,
	Sections:       SectionFence | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "The `keyTTLSeconds` of a provider whose keys protect is not above `retryAfterSeconds` + send window + `maxInFlightSeconds`. An error where it is not above send window + `maxInFlightSeconds`.",
		Why:    "The fence sends a key again only while the provider is sure to remember it until that request is dead. With a shorter life the first redelivery comes too late, and every unknown outcome waits for a person.",
		Remedy: "declare how long the provider really remembers a key, or shorten retryAfterSeconds",
	},
	check: perProvider(func(c *Chain, p *Provider) []Finding {
		life, never := p.KeyTTL.N(), p.margin()
		need := add(c.RetryAfter.N(), never)
		if !p.KeyTTL.Declared() || life > need {
			return nil
		}
		severity, consequence := Warning, "the first redelivery comes too late to send the key again, and every unknown outcome waits for a person"
		if life <= never {
			severity, consequence = Error, "no key can ever be sent again, and every unknown outcome waits for a person"
		}
		return []Finding{{
			Severity: severity,
			Link:     LinkKeyTTL, Against: LinkInFlight, Got: life, Need: need,
			Problem:     fmt.Sprintf("keyTTLSeconds %d of provider %s must be above %d, retryAfterSeconds plus send window plus in-flight time", life, p.Name, need),
			Consequence: consequence,
		}}
	}),
	repair: func(_ *Chain, f Finding) []Fix {
		fix := setProvider(f, LinkKeyTTL, add(f.Need, 1))
		fix.Text = fmt.Sprintf("set keyTTLSeconds of %s to %d if the provider really remembers that long, else leave it out", f.Subject, add(f.Need, 1))
		return []Fix{fix, {Set: []Assignment{{Link: LinkKeyTTL, Subject: f.Subject}}}}
	},
}

var retentionBelowRetryWindow = Rule{
	ID:       "retention-below-retry-window",
	Severity: Error,
	Sections: SectionFence | SectionRetries | SectionTimeouts | SectionRuntime,
	Doc: Doc{
		When:   "`fence.retention.doneSeconds` is below the retry window + `jobSeconds` + `httpSeconds` + `failedJobsSeconds`, with `fence.mode: Proxy`.",
		Why:    "A copy that starts inside the window may still claim at its end, and queue:retry brings a job back days later with the same key. Where the fence has forgotten, that copy finds a free key and the effect happens again.",
		Remedy: "keep done keys longer, or prune failed jobs earlier",
	},
	check: func(c *Chain) []Finding {
		window, bounded := c.RetryWindow()
		need := sum(window, c.Job.N(), c.Call(), c.FailedJobsKept.N())
		if !c.fenced() || !c.KeepDone.Declared() || !bounded || c.KeepDone.N() >= need {
			return nil
		}
		return []Finding{{
			Link: LinkKeepDone, Against: LinkRetryWindow, Got: c.KeepDone.N(), Need: need,
			Problem:     fmt.Sprintf("done keys are kept %d s, but a copy may come for %d s (retry window, one more run, failed jobs retried by hand)", c.KeepDone.N(), need),
			Consequence: "a late copy finds a forgotten key, and the effect happens again",
		}}
	},
	repair: func(_ *Chain, f Finding) []Fix { return []Fix{setTo(LinkKeepDone, f.Need)} },
}
