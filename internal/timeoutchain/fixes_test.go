// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// onSQS is a chain whose reservation may not be raised above 43200.
func onSQS(change func(*Chain)) Chain {
	return with(textbook(), func(c *Chain) { c.Driver, c.Grace, c.GraceCap = SQS, Value{}, Of(MaxSeconds) }, change)
}

// Where the usual fix does not do, the next one is told.
func TestNextFix(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, rule string
		chain      Chain
		want       string
	}{
		{"a job of its own number", "job-timeout-unbounded", with(genericChain(), func(c *Chain) { c.Driver, c.Job, c.RetryAfter = SQS, Of(0), Value{} }), "set jobSeconds to 60"},
		{"a job that outlasts the calls", "job-timeout-unbounded", with(genericChain(), func(c *Chain) { c.Driver, c.Job, c.RetryAfter, c.HTTP = SQS, Of(0), Value{}, Of(70) }), "set jobSeconds to 75 and terminationGracePeriodSeconds to 146"},
		{"a job that outlasts the sleep", "job-timeout-unbounded", with(textbook(), func(c *Chain) { c.Job, c.Worker.Sleep = Of(0), Of(100) }), "set jobSeconds to 101 and retryAfterSeconds to 124 and terminationGracePeriodSeconds to 129"},
		{"a job that outlasts the rest", "job-timeout-unbounded", with(textbook(), func(c *Chain) { c.Job, c.Worker.Rest = Of(0), Of(100) }), "set jobSeconds to 101 and retryAfterSeconds to 124 and terminationGracePeriodSeconds to 129"},

		{"past a call", "retry-after-missing", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43170), Value{} }), "set retryAfterSeconds to 43193"},
		{"past a call that is too long for SQS", "retry-after-missing", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43180), Value{} }), "set retryAfterSeconds to 43200"},
		{"as close to SQS's limit as it goes", "retry-after-missing", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43199), Value{} }), "set retryAfterSeconds to 43200"},
		{"no number does", "retry-after-missing", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43200), Value{} }), retryAfterMissing.Doc.Remedy},

		{"a long hook", "grace-missing", with(genericChain(), func(c *Chain) { c.Job, c.RetryAfter, c.Grace, c.BeforeStop = Of(0), Value{}, Value{}, Of(5000) }), "set terminationGracePeriodSeconds to 5021"},

		{"G follows J", "http-not-below-job", with(textbook(), func(c *Chain) { c.GraceOutlasts, c.HTTP, c.Grace = OutlastsJob, Of(40), Of(45) }), "set jobSeconds to 45 and terminationGracePeriodSeconds to 86"},
		{"another fault stays", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP, c.Worker.Sleep = Of(30), Of(100) }), "set jobSeconds to 35"},
		{"R cannot go up", "http-not-below-job", onSQS(func(c *Chain) { c.HTTP, c.Job, c.RetryAfter = Of(43198), Of(43190), Of(43200) }), "set httpSeconds to 43185"},
		{"a shorter call", "http-not-below-job", onSQS(func(c *Chain) { c.HTTP, c.Job, c.RetryAfter = Of(43199), Of(43190), Of(43200) }), "set httpSeconds to 43185"},
		{"a shorter call of several", "http-not-below-job", onSQS(func(c *Chain) {
			c.HTTP, c.HTTPAttempts, c.HTTPRetryDelay, c.Job, c.RetryAfter = Of(21600), Of(2), Of(3), Of(43190), Of(43200)
		}), "set httpSeconds to 21591"},
		{"a shorter call, no connect limit", "http-not-below-job", onSQS(func(c *Chain) {
			c.HTTP, c.HTTPConnect, c.Job, c.RetryAfter = Of(43199), Of(43186), Of(43190), Of(43200)
		}), "set httpSeconds to 43185 and leave httpConnectSeconds out"},

		{"G follows R", "job-not-below-retry-after", with(textbook(), func(c *Chain) {
			c.Job, c.RetryAfter, c.Grace, c.HTTP, c.HTTPConnect = Of(60), Of(50), Of(65), Value{}, Value{}
		}), "set retryAfterSeconds to 65 and terminationGracePeriodSeconds to 70"},
		{"R past a call", "job-not-below-retry-after", with(textbook(), func(c *Chain) { c.Job, c.RetryAfter, c.Grace = Of(60), Of(30), Value{} }), "set retryAfterSeconds to 83"},
		{"a lock follows", "job-not-below-retry-after", with(textbook(), func(c *Chain) { c.Job, c.RetryAfter, c.Grace, c.UniqueFor = Of(60), Of(30), Value{}, Of(200) }), "set retryAfterSeconds to 83 and uniqueForSeconds to 296"},
		{"R just above J", "job-not-below-retry-after", onSQS(func(c *Chain) { c.Job, c.RetryAfter, c.HTTP = Of(43199), Of(43190), Of(43188) }), "set retryAfterSeconds to 43200"},
		{"a shorter job", "job-not-below-retry-after", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43200), Of(43190) }), "set jobSeconds to 43167"},
		{"a job within the platform's grace", "job-not-below-retry-after", with(textbook(), func(c *Chain) { c.Job, c.RetryAfter, c.Grace = Of(570), Of(90), Value{} }), "set jobSeconds to 67"},
		{"a job just below R", "job-not-below-retry-after", onSQS(func(c *Chain) { c.Job, c.RetryAfter, c.HTTP = Of(43200), Of(43190), Of(43188) }), "set jobSeconds to 43189"},

		{"a grace of more than a year", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.RetryAfter = Of(MaxSeconds) }), "leave terminationGracePeriodSeconds out"},
		{"no grace is long enough", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.RetryAfter, c.GraceOutlasts = Of(MaxSeconds), OutlastsJob }), retryAfterNotBelowGrace.Doc.Remedy},
		{"a drain of more than a year", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.RetryAfter, c.BeforeStop = Of(MaxSeconds-90), Of(MaxSeconds) }), "leave terminationGracePeriodSeconds out"},
		{"the longest grace", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.RetryAfter = Of(MaxSeconds - Margin) }), "set terminationGracePeriodSeconds to 31536000"},
		{"a call is longer than the margin", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.GraceOutlasts, c.Grace = OutlastsJob, Of(30) }), "set terminationGracePeriodSeconds to 51"},
		{"no call", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.GraceOutlasts, c.Grace, c.HTTP = OutlastsJob, Of(30), Value{} }), "set terminationGracePeriodSeconds to 35"},

		{"a grace that passes the reservation", "blocked-call-past-grace", with(textbook(), func(c *Chain) { c.GraceOutlasts, c.RetryAfter, c.Grace = OutlastsJob, Of(50), Of(45) }), "set terminationGracePeriodSeconds to 55"},
		{"a grace that outlasts the job only", "thin-margin", with(textbook(), func(c *Chain) { c.GraceOutlasts, c.Grace, c.HTTP = OutlastsJob, Of(34), Value{} }), "set terminationGracePeriodSeconds to 35"},
		{"J down where R cannot go up", "thin-margin", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43197), Of(43200) }), "set jobSeconds to 43195"},
		{"C down where J cannot go up", "thin-margin", with(onSQS(func(c *Chain) { c.HTTP, c.Job, c.RetryAfter = Of(43192), Of(43195), Of(43200) }), func(c *Chain) { c.HTTPAttempts = Of(1) }), "set httpSeconds to 43190"},

		{"tries for every step", "retries-unbounded", with(textbook(), func(c *Chain) { c.Tries, c.Backoff = Of(0), []int64{1, 2, 3} }), "set tries to 4"},
		{"tries for no step", "retries-unbounded", with(textbook(), func(c *Chain) { c.Tries, c.Backoff = Of(0), nil }), "set tries to 2"},
		{"the key's life allows one run", "retries-unbounded", with(textbook(), func(c *Chain) { c.Tries, c.ProviderKeyTTL = Of(0), Of(100) }), "set tries to 1"},

		{"a pause of a year", "backoff-exceeds-retention", with(textbook(), func(c *Chain) { c.Backoff, c.MessageRetention = []int64{MaxSeconds - 4}, Of(60) }), "leave messageRetentionSeconds out"},
		{"the longest retention", "backoff-exceeds-retention", with(textbook(), func(c *Chain) { c.Backoff, c.MessageRetention = []int64{MaxSeconds - Margin}, Of(60) }), "set messageRetentionSeconds to 31536000"},

		{"a job that is too long for SQS", "driver-limit", onSQS(func(c *Chain) { c.Job, c.RetryAfter = Of(43206), Of(43210) }), "set retryAfterSeconds to 43200 and jobSeconds to 43177"},
		{"a pause that is too long for SQS", "driver-limit", onSQS(func(c *Chain) { c.Backoff = []int64{43201} }), "keep every step of backoffSeconds at or below 43200"},

		{"a window of more than a year", "key-ttl-below-retry-window", with(textbook(), func(c *Chain) { c.RetryUntil, c.ProviderKeyTTL = Of(MaxSeconds), Of(60) }), "leave providerKeyTTLSeconds out"},
		{"stuck after more than a year", "stuck-before-job-ends", with(textbook(), func(c *Chain) {
			c.RetryAfter, c.StuckAfter = Of(MaxSeconds), Of(60)
		}), "leave stuckAfterSeconds out"},
		{"a lock of more than a year", "overlap-lock-shorter-than-job", with(textbook(), func(c *Chain) {
			c.Job, c.RetryAfter, c.Grace, c.OverlapExpireAfter = Of(MaxSeconds), Value{}, Value{}, Of(60)
		}), "set overlapExpireAfterSeconds to 0"},
		{"a unique lock of more than a year", "unique-lock-shorter-than-retries", with(textbook(), func(c *Chain) { c.RetryUntil, c.UniqueFor = Of(MaxSeconds), Of(60) }), "set uniqueForSeconds to 0"},
		{"a probe of more than a year", "liveness-kills-early", with(textbook(), func(c *Chain) { c.Job, c.BeforeStop, c.Pod.LivenessGrace = Of(MaxSeconds), Of(1), Of(60) }), "leave livenessProbe.terminationGracePeriodSeconds out"},

		{"a job below their R", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(30)}), "set jobSeconds to 25"},
		{"a job just below their R", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(22)}), "set jobSeconds to 21"},
		{"no job is short enough", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(21)}), sharedQueueShorterReservation.Doc.Remedy},

		{"no memory is small enough", "memory-over-container-limit", with(textbook(), func(c *Chain) { c.Pod.MemoryLimitBytes = Of(1 << 20) }), memoryOverContainerLimit.Doc.Remedy},
		{"memory of one process", "memory-over-container-limit", with(textbook(), func(c *Chain) { c.Pod.MemoryLimitBytes = Of(2 << 20) }), "raise the memory limit above 128 Mi or set memoryMegabytes to 1"},
		{"memory of two processes", "memory-over-container-limit", with(horizonChain(), func(c *Chain) {
			c.Worker.MemoryMegabytes, c.Worker.Processes, c.Pod.MemoryLimitBytes = Of(64), Of(2), Of(101<<20)
		}), "raise the memory limit above 128 Mi or set memoryMegabytes to 50"},

		{"C as J allows", "http-timeout-missing", with(textbook(), func(c *Chain) { c.HTTP = Value{} }), "set httpSeconds to the longest timeout of any client that the job uses, at most 25"},
		{"C of several attempts", "http-timeout-missing", with(textbook(), func(c *Chain) {
			c.HTTP, c.HTTPConnect, c.HTTPAttempts, c.HTTPRetryDelay = Value{}, Value{}, Of(2), Of(3)
		}), "set httpSeconds to the longest timeout of any client that the job uses, at most 11"},
		{"C of a short job", "http-timeout-missing", with(textbook(), func(c *Chain) { c.HTTP, c.HTTPConnect, c.Job, c.Worker.Sleep = Value{}, Value{}, Of(5), Of(3) }), "set httpSeconds to the longest timeout of any client that the job uses, at most 1"},
		{"C that still ends before R", "http-timeout-missing", with(textbook(), func(c *Chain) { c.HTTP, c.RetryAfter = Value{}, Of(45) }), "set httpSeconds to the longest timeout of any client that the job uses, at most 12"},
		{"C that still ends before G", "http-timeout-missing", with(textbook(), func(c *Chain) { c.HTTP, c.RetryAfter, c.Grace = Value{}, Of(70), Of(50) }), "set httpSeconds to the longest timeout of any client that the job uses, at most 19"},
		{"C that leaves the lock", "http-timeout-missing", with(textbook(), func(c *Chain) { c.HTTP, c.OverlapExpireAfter = Value{}, Of(40) }), "set httpSeconds to the longest timeout of any client that the job uses, at most 9"},
		{"C of a job without a limit", "http-timeout-missing", with(genericChain(), func(c *Chain) { c.HTTP, c.Job, c.RetryAfter = Value{}, Of(0), Value{} }), "set httpSeconds to the longest timeout of any client that the job uses, at most 30"},

		{"a provider that leaves time to answer", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.HTTP, c.HTTPConnect = Of(4), Of(1) }), "set timeoutSeconds of stripe to 1"},
		{"a call that leaves time for the provider", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.HTTP, c.HTTPConnect, c.Providers[0].Timeout = Of(3), Of(1), Of(1) }), "set httpSeconds to 4"},
		{"the statements take it all", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) {
			c.HTTP, c.HTTPConnect, c.Providers[0].Timeout, c.Providers[0].StatementBudget = Of(5), Of(1), Value{}, Of(9)
		}), "set httpSeconds to 20"},
		{"a key for less than a year", "key-ttl-too-short-to-resend", with(fenced(), func(c *Chain) { c.Providers[0].InFlight, c.Providers[0].KeyTTL = Of(MaxSeconds), Of(500) }), "leave keyTTLSeconds of stripe out"},
		{"only the found provider", "in-flight-too-short", with(fenced(), func(c *Chain) {
			c.Providers = append(c.Providers, Provider{Name: "bank", InFlight: Of(46)})
		}), "set maxInFlightSeconds of bank to 47"},
	} {
		t.Run(tc.rule+"/"+tc.name, func(t *testing.T) {
			t.Parallel()
			found := false
			for _, f := range Check(tc.chain) {
				if f.Rule != tc.rule {
					continue
				}
				found = true
				if got := f.Fix.String(); got != tc.want {
					t.Errorf("%s\nis told: %s\nwant:    %s", f.Problem, got, tc.want)
				}
			}
			if !found {
				t.Errorf("no finding; there are %v", ids(Check(tc.chain)))
			}
		})
	}
}

// A suggested fix removes its finding and adds no error.
func TestFixesHelp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { fixesHelp(t, anyChain(t), isError) })
}

// Where the numbers have room, it adds no warning either.
func TestFixesAddNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { fixesHelp(t, roomyChain(t), anyFinding) })
}

// roomyChain draws chains that no limit from outside (the platform's, the
// driver's, a provider's, the year) keeps from being mended.
func roomyChain(t *rapid.T) Chain {
	c := anyChain(t)
	c.GraceCap, c.ProviderKeyTTL = Of(MaxSeconds), Value{}
	if c.Driver == SQS {
		c.Driver = Redis
	}
	numbers := []*Value{
		&c.HTTPConnect, &c.HTTP, &c.HTTPAttempts, &c.HTTPRetryDelay, &c.Job, &c.RetryAfter, &c.Grace, &c.BeforeStop, &c.BlockFor,
		&c.Tries, &c.RetryUntil, &c.MessageRetention, &c.Worker.Sleep, &c.Worker.Rest,
	}
	for i := range c.Providers {
		p := &c.Providers[i]
		p.KeyTTL, p.LookupLag = Value{}, Value{}
		numbers = append(numbers, &p.SendWindow, &p.Timeout, &p.StatementBudget, &p.InFlight)
	}
	for _, v := range numbers {
		if v.N() > 500 {
			*v = Of(500)
		}
	}
	for i := range c.Backoff {
		c.Backoff[i] %= 500
	}
	return c
}

// fixesHelp applies each fix of a chain and fails where its finding is still
// there, or one that counts came up.
func fixesHelp(t *rapid.T, c Chain, counts func(Finding) bool) {
	findings := Check(c)
	for _, f := range findings {
		if f.Fix.String() == "" {
			t.Fatalf("%s has no fix", f.Rule)
		}
		fixed := c
		if !apply(&fixed, f.Fix.Set) {
			t.Fatalf("%s: fix %v cannot be applied", f.Rule, f.Fix.Set)
		}
		if !inRange(f.Fix.Set) {
			t.Fatalf("%s: fix %v is outside of what the API takes", f.Rule, f.Fix.Set)
		}
		if len(f.Fix.Set) == 0 {
			continue
		}
		for _, g := range evaluate(&fixed) {
			if f.sameAs(g) {
				t.Fatalf("%s: still there after %v: %s", f.Rule, f.Fix, g.Problem)
			}
			known := slices.ContainsFunc(findings, g.sameAs)
			if counts(g) && !accepted(&c, findings, f, g) && (!known || isError(g) && !blockedBy(findings, g.Rule)) {
				t.Fatalf("%s: %s\n%v adds %s: %s", f.Rule, f.Problem, f.Fix, g.Rule, g.Problem)
			}
		}
	}
}

// accepted says whether a warning may come with a fix: one that no number here
// mends, where no other repair keeps it away.
func accepted(c *Chain, had []Finding, mended, added Finding) bool {
	steps := added.Rule == "backoff-flat" || added.Rule == "backoff-beyond-tries"
	noRoom := mended.Rule == "http-timeout-missing" // a call takes a second at least, behind a fence more
	if isError(added) || !noRoom && !steps {
		return false
	}
	rule, _ := RuleByID(mended.Rule)
	return !slices.ContainsFunc(rule.repair(c, mended), func(fix Fix) bool {
		settled, ok := settle(c, fix, had, addsNothing)
		return ok && removes(c, settled, mended)
	})
}

func blockedBy(findings []Finding, rule string) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == rule && f.Severity == Error })
}

// A rule with repairs has a number that works in the usual range, so that the
// search for a fix cannot quietly give up.
func TestFixesAreNumbersWhereNumbersHelp(t *testing.T) {
	t.Parallel()
	for _, e := range edges {
		rule, _ := RuleByID(e.rule)
		if e.want == "" || rule.repair == nil {
			continue
		}
		for _, f := range Check(e.chain) {
			if f.Rule == e.rule && len(f.Fix.Set) == 0 && f.Link != LinkBackoff {
				t.Errorf("%s/%s: no number in %q", e.rule, e.name, f.Fix)
			}
		}
	}
}
