// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"math"
	"slices"
	"testing"
)

// textbook is a chain that holds with room everywhere: no finding at all.
func textbook() Chain {
	return Chain{
		Runtime: Laravel, Driver: Redis, Queues: 1,
		HTTPConnect: Of(5), HTTP: Of(20), Job: Of(30), RetryAfter: Of(90), Grace: Of(120),
		GraceOutlasts: OutlastsReservation,
		Tries:         Of(3), Backoff: []int64{10, 60},
		Fence:  FenceNone,
		Worker: Worker{Sleep: Of(3), MemoryMegabytes: Of(128)},
	}
}

// horizonChain and genericChain hold as well, under their own runtimes.
func horizonChain() Chain {
	c := textbook()
	c.Runtime = Horizon
	c.Worker = Worker{}
	return c
}

func genericChain() Chain {
	c := textbook()
	c.Runtime = Generic
	c.Driver = Other
	c.Worker = Worker{}
	return c
}

// fenced holds behind a sidecar: 1 + 17 + 2 = 20.
func fenced() Chain {
	return with(textbook(), func(c *Chain) {
		c.Fence, c.FenceStore, c.Providers = FenceProxy, true, []Provider{{Name: "stripe", Timeout: Of(17)}}
	})
}

func with(base Chain, changes ...func(*Chain)) Chain {
	for _, change := range changes {
		change(&base)
	}
	return base
}

type edge struct {
	name  string
	rule  string
	chain Chain
	want  Severity // empty: the rule must be silent
}

// edges holds every rule on both sides of its edge.
var edges = []edge{
	{"call limit set", "http-timeout-missing", textbook(), ""},
	{"no call limit", "http-timeout-missing", with(textbook(), func(c *Chain) { c.HTTP = Value{} }), Warning},

	{"J 1", "job-timeout-unbounded", with(textbook(), func(c *Chain) { c.Job = Of(1) }), ""},
	{"J 0 Laravel", "job-timeout-unbounded", with(textbook(), func(c *Chain) { c.Job = Of(0) }), Error},
	{"J 0 Laravel without R", "job-timeout-unbounded", with(textbook(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{} }), Error},
	{"J 0 Horizon", "job-timeout-unbounded", with(horizonChain(), func(c *Chain) { c.Job = Of(0) }), Error},
	{"J 0 Generic with R", "job-timeout-unbounded", with(genericChain(), func(c *Chain) { c.Job = Of(0) }), Error},
	{"J 0 Generic on SQS", "job-timeout-unbounded", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{}; c.Driver = SQS }), Error},
	{"J 0 Generic without R", "job-timeout-unbounded", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{} }), ""},

	{"R set", "retry-after-missing", textbook(), ""},
	{"R left out, Laravel", "retry-after-missing", with(textbook(), func(c *Chain) { c.RetryAfter = Value{} }), Error},
	{"R left out, Horizon", "retry-after-missing", with(horizonChain(), func(c *Chain) { c.RetryAfter = Value{} }), Error},
	{"R left out, Generic", "retry-after-missing", with(genericChain(), func(c *Chain) { c.RetryAfter = Value{} }), ""},
	{"R left out, Generic on SQS", "retry-after-missing", with(genericChain(), func(c *Chain) { c.RetryAfter = Value{}; c.Driver = SQS }), Error},
	{"R 0, Generic", "retry-after-missing", with(genericChain(), func(c *Chain) { c.RetryAfter = Of(0) }), Error},
	{"R 1, Generic", "retry-after-missing", with(genericChain(), func(c *Chain) { c.RetryAfter = Of(1) }), ""},

	{"J 0 with G", "grace-missing", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{} }), ""},
	{"J 0 without G", "grace-missing", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{}; c.Grace = Value{} }), Error},
	{"J 0 without G, but unbounded is the cause", "grace-missing", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.Grace = Value{} }), ""},
	{"J 1 without G", "grace-missing", with(genericChain(), func(c *Chain) { c.Job = Of(1); c.Grace = Value{} }), ""},

	{"connect = call", "connect-not-below-http", with(textbook(), func(c *Chain) { c.HTTPConnect = Of(20) }), ""},
	{"connect above call", "connect-not-below-http", with(textbook(), func(c *Chain) { c.HTTPConnect = Of(21) }), Error},
	{"connect without call", "connect-not-below-http", with(textbook(), func(c *Chain) { c.HTTPConnect = Of(21); c.HTTP = Value{} }), ""},

	{"H = J - 1", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP = Of(29) }), ""},
	{"H = J", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP = Of(30) }), Error},
	{"H by attempts = J - 1", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP = Of(14); c.HTTPAttempts = Of(2); c.HTTPRetryDelay = Of(1) }), ""},
	{"H by attempts = J", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP, c.HTTPAttempts = Of(15), Of(2) }), Error},
	{"H by attempts and a pause of 1", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP, c.HTTPAttempts, c.HTTPRetryDelay = Of(15), Of(2), Of(1) }), Error},
	{"H by attempts and pause = J", "http-not-below-job", with(textbook(), func(c *Chain) { c.HTTP = Of(14); c.HTTPAttempts = Of(2); c.HTTPRetryDelay = Of(2) }), Error},
	{"J unbounded is another rule", "http-not-below-job", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{} }), ""},

	{"J = R - 1", "job-not-below-retry-after", with(textbook(), func(c *Chain) { c.Job = Of(89) }), ""},
	{"J = R", "job-not-below-retry-after", with(textbook(), func(c *Chain) { c.Job = Of(90) }), Error},
	{"R 0 is another rule", "job-not-below-retry-after", with(textbook(), func(c *Chain) { c.RetryAfter = Of(0) }), ""},

	{"R = G - 1", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.Grace = Of(91) }), ""},
	{"R = G", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.Grace = Of(90) }), Error},
	{"R = G, job outlasted on purpose", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.Grace = Of(90); c.GraceOutlasts = OutlastsJob }), Warning},
	{"derived G", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.Grace = Value{} }), ""},
	{"derived G outlasts the job only", "retry-after-not-below-grace", with(textbook(), func(c *Chain) { c.Grace = Value{}; c.GraceOutlasts = OutlastsJob }), Warning},

	{"D + P + J = G - 1", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.BeforeStop = Of(80); c.BlockFor = Of(8) }), ""},
	{"D + P + J = G", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.BeforeStop = Of(81); c.BlockFor = Of(8) }), Error},
	{"P counts every queue", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.BlockFor = Of(29); c.Queues = 3 }), Error},
	{"block_for 0 counts as 0", "drain-exceeds-grace", with(textbook(), func(c *Chain) { c.BlockFor = Of(0); c.Queues = 32 }), ""},
	{"G 0", "drain-exceeds-grace", with(genericChain(), func(c *Chain) { c.Job = Of(0); c.RetryAfter = Value{}; c.Grace = Of(0) }), Error},

	{"J + C = R - 3", "blocked-call-past-reservation", with(textbook(), func(c *Chain) { c.Job = Of(67) }), ""},
	{"J + C = R - 2", "blocked-call-past-reservation", with(textbook(), func(c *Chain) { c.Job = Of(68) }), Warning},
	{"J = R is another rule", "blocked-call-past-reservation", with(textbook(), func(c *Chain) { c.Job = Of(90) }), ""},
	{"J without a limit", "blocked-call-past-reservation", with(genericChain(), func(c *Chain) { c.Job, c.RetryAfter = Of(0), Of(10) }), ""},
	{"J past R is another rule", "blocked-call-past-reservation", with(textbook(), func(c *Chain) { c.Job = Of(95) }), ""},
	{"C unknown", "blocked-call-past-reservation", with(textbook(), func(c *Chain) { c.Job = Of(89); c.HTTP = Value{} }), ""},

	{"D + J + C = G - 1", "blocked-call-past-grace", with(textbook(), func(c *Chain) { c.BeforeStop = Of(69) }), ""},
	{"D + J + C = G", "blocked-call-past-grace", with(textbook(), func(c *Chain) { c.BeforeStop = Of(70) }), Warning},
	{"drain = G is another rule", "blocked-call-past-grace", with(textbook(), func(c *Chain) { c.BeforeStop = Of(90) }), ""},
	{"J without a limit", "blocked-call-past-grace", with(genericChain(), func(c *Chain) { c.Job, c.RetryAfter, c.Grace = Of(0), Value{}, Of(10) }), ""},
	{"drain past G is another rule", "blocked-call-past-grace", with(textbook(), func(c *Chain) { c.BeforeStop = Of(91) }), ""},

	{"sleep = J - 1", "sleep-not-below-job", with(textbook(), func(c *Chain) { c.Worker.Sleep = Of(29) }), ""},
	{"sleep = J", "sleep-not-below-job", with(textbook(), func(c *Chain) { c.Worker.Sleep = Of(30) }), Error},
	{"rest = J", "sleep-not-below-job", with(textbook(), func(c *Chain) { c.Worker.Rest = Of(30) }), Error},
	{"sleep and rest = J", "sleep-not-below-job", with(textbook(), func(c *Chain) { c.Worker.Sleep, c.Worker.Rest = Of(30), Of(30) }), Error},
	{"sleep under Horizon is not used", "sleep-not-below-job", with(horizonChain(), func(c *Chain) { c.Worker.Sleep = Of(30) }), ""},

	{"J holds by 5", "thin-margin", with(textbook(), func(c *Chain) { c.Job = Of(85); c.HTTP = Of(1); c.HTTPConnect = Of(1) }), ""},
	{"J holds by 4", "thin-margin", with(textbook(), func(c *Chain) { c.Job = Of(86); c.HTTP = Of(1); c.HTTPConnect = Of(1) }), Warning},
	{"J holds by 1", "thin-margin", with(textbook(), func(c *Chain) { c.Job = Of(89); c.HTTP = Of(1); c.HTTPConnect = Of(1) }), Warning},
	{"J does not hold", "thin-margin", with(textbook(), func(c *Chain) { c.Job = Of(90); c.HTTP = Of(1); c.HTTPConnect = Of(1) }), ""},
	{"a short job without calls", "thin-margin", with(textbook(), func(c *Chain) { c.Job = Of(4); c.HTTP = Value{} }), ""},
	{"a short reservation without a limit", "thin-margin", with(textbook(), func(c *Chain) { c.Job, c.RetryAfter = Of(0), Of(4) }), ""},
	{"H holds by 4", "thin-margin", with(textbook(), func(c *Chain) { c.HTTP = Of(26) }), Warning},
	{"R holds by 4", "thin-margin", with(textbook(), func(c *Chain) { c.Grace = Of(94) }), Warning},
	{"drain holds by 4", "thin-margin", with(textbook(), func(c *Chain) { c.BeforeStop = Of(86) }), Warning},
	{"a derived grace has room", "thin-margin", with(textbook(), func(c *Chain) { c.Grace = Value{} }), ""},

	{"block 1", "block-forever", with(textbook(), func(c *Chain) { c.BlockFor = Of(1) }), ""},
	{"block 0", "block-forever", with(textbook(), func(c *Chain) { c.BlockFor = Of(0) }), Warning},
	{"block 0 on beanstalkd", "block-forever", with(textbook(), func(c *Chain) { c.BlockFor = Of(0); c.Driver = Beanstalkd }), ""},
	{"not set", "block-forever", textbook(), ""},

	{"tries 1", "retries-unbounded", with(textbook(), func(c *Chain) { c.Tries = Of(1); c.Backoff = nil }), ""},
	{"tries 0", "retries-unbounded", with(textbook(), func(c *Chain) { c.Tries = Of(0) }), Error},
	{"tries 0 until a time", "retries-unbounded", with(textbook(), func(c *Chain) { c.Tries = Of(0); c.RetryUntil = Of(60) }), ""},
	{"tries 0 Generic", "retries-unbounded", with(genericChain(), func(c *Chain) { c.Tries = Of(0) }), ""},
	{"tries unknown under Horizon", "retries-unbounded", with(horizonChain(), func(c *Chain) { c.Tries = Value{} }), ""},

	{"grows", "backoff-flat", textbook(), ""},
	{"flat", "backoff-flat", with(textbook(), func(c *Chain) { c.Backoff = []int64{10, 10} }), Warning},
	{"falls", "backoff-flat", with(textbook(), func(c *Chain) { c.Backoff = []int64{60, 10} }), Warning},
	{"none", "backoff-flat", with(textbook(), func(c *Chain) { c.Backoff = nil }), Warning},
	{"flat with two tries", "backoff-flat", with(textbook(), func(c *Chain) { c.Backoff = []int64{10}; c.Tries = Of(2) }), ""},
	{"flat until a time", "backoff-flat", with(textbook(), func(c *Chain) { c.Backoff = []int64{10}; c.RetryUntil = Of(600) }), ""},
	{"flat without calls", "backoff-flat", with(textbook(), func(c *Chain) { c.Backoff = []int64{10}; c.HTTP = Value{} }), ""},

	{"as many steps as retries", "backoff-beyond-tries", textbook(), ""},
	{"a step too many", "backoff-beyond-tries", with(textbook(), func(c *Chain) { c.Tries = Of(2) }), Warning},
	{"tries without end", "backoff-beyond-tries", with(textbook(), func(c *Chain) { c.Tries = Of(0) }), ""},
	{"until a time", "backoff-beyond-tries", with(textbook(), func(c *Chain) { c.Tries = Of(2); c.RetryUntil = Of(600) }), ""},

	{"pause = retention - 1", "backoff-exceeds-retention", with(textbook(), func(c *Chain) { c.MessageRetention = Of(61) }), ""},
	{"pause = retention", "backoff-exceeds-retention", with(textbook(), func(c *Chain) { c.MessageRetention = Of(60) }), Error},
	{"a pause of 1", "backoff-exceeds-retention", with(textbook(), func(c *Chain) { c.MessageRetention = Of(1); c.Backoff = []int64{1} }), Error},
	{"no pause", "backoff-exceeds-retention", with(textbook(), func(c *Chain) { c.MessageRetention = Of(1); c.Backoff = nil }), ""},

	{"driver known", "driver-unknown", textbook(), ""},
	{"driver unknown", "driver-unknown", with(textbook(), func(c *Chain) { c.Driver = "" }), Error},
	{"driver unknown, Generic", "driver-unknown", with(genericChain(), func(c *Chain) { c.Driver = "" }), ""},

	{"SQS R at the edge", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.RetryAfter = Of(43200); c.Grace = Value{} }), ""},
	{"SQS R over it", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.RetryAfter = Of(43201); c.Grace = Value{} }), Error},
	{"SQS pause at the edge", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.Backoff = []int64{1, 43200} }), ""},
	{"SQS pause over it", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.Backoff = []int64{1, 43201} }), Error},
	{"SQS retention at the lower edge", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.MessageRetention = Of(60) }), ""},
	{"SQS retention below it", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.MessageRetention = Of(59) }), Error},
	{"SQS retention at the upper edge", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.MessageRetention = Of(1_209_600) }), ""},
	{"SQS retention above it", "driver-limit", with(textbook(), func(c *Chain) { c.Driver = SQS; c.MessageRetention = Of(1_209_601) }), Error},
	{"Redis has none of these", "driver-limit", with(textbook(), func(c *Chain) { c.RetryAfter = Of(50_000); c.Grace = Value{}; c.MessageRetention = Of(1) }), ""},

	{"Horizon on Redis", "horizon-needs-redis", horizonChain(), ""},
	{"Horizon on a database", "horizon-needs-redis", with(horizonChain(), func(c *Chain) { c.Driver = Database }), Error},
	{"Horizon, driver unknown", "horizon-needs-redis", with(horizonChain(), func(c *Chain) { c.Driver = "" }), ""},
	{"Laravel on a database", "horizon-needs-redis", with(textbook(), func(c *Chain) { c.Driver = Database }), ""},

	// The retry window of the textbook chain is 2 x 90 + 10 + 60 + 30 = 280.
	{"key outlives the window", "key-ttl-below-retry-window", with(textbook(), func(c *Chain) { c.ProviderKeyTTL = Of(281) }), ""},
	{"key ends with the window", "key-ttl-below-retry-window", with(textbook(), func(c *Chain) { c.ProviderKeyTTL = Of(280) }), Error},
	{"key ends, fence table", "key-ttl-below-retry-window", with(textbook(), func(c *Chain) { c.ProviderKeyTTL = Of(280); c.Fence = FenceTable }), Warning},
	{"unlimited tries are another rule", "key-ttl-below-retry-window", with(textbook(), func(c *Chain) { c.ProviderKeyTTL = Of(280); c.Tries = Of(0) }), ""},
	{"tries unknown", "key-ttl-below-retry-window", with(horizonChain(), func(c *Chain) { c.ProviderKeyTTL = Of(1); c.Tries = Value{} }), ""},

	{"key ends, fence proxy", "key-ttl-below-retry-window", with(fenced(), func(c *Chain) { c.ProviderKeyTTL = Of(280) }), ""},

	{"a store and a provider", "fence-incomplete", fenced(), ""},
	{"no store", "fence-incomplete", with(fenced(), func(c *Chain) { c.FenceStore = false }), Error},
	{"no provider", "fence-incomplete", with(fenced(), func(c *Chain) { c.Providers = nil }), Error},
	{"claims only", "fence-incomplete", with(fenced(), func(c *Chain) { c.Providers, c.Claims = nil, true }), ""},
	{"neither, no proxy", "fence-incomplete", textbook(), ""},
	{"a table's name that the sidecar takes", "fence-table-name", fenced(), ""},
	{"one that it does not", "fence-table-name", with(fenced(), func(c *Chain) { c.WrongTable = "Shop.Charges" }), Error},
	{"one that is no sidecar's", "fence-table-name", with(textbook(), func(c *Chain) { c.Fence, c.WrongTable = FenceTable, "Shop.Charges" }), ""},
	{"an expression that compiles", "fence-expression", fenced(), ""},
	{"one that does not", "fence-expression", with(fenced(), func(c *Chain) { c.Providers[0].Fault, c.Providers[0].FaultField = "line 1", LinkProviderKey }), Error},
	{"one that nobody evaluates", "fence-expression", with(fenced(), func(c *Chain) {
		c.Fence, c.Providers[0].Fault, c.Providers[0].FaultField = FenceTable, "line 1", LinkProviderKey
	}), ""},
	{"providers of no proxy", "field-ignored", with(textbook(), func(c *Chain) { c.FenceDeclared = []Link{LinkProviders} }), Warning},
	{"providers of a proxy", "field-ignored", with(fenced(), func(c *Chain) { c.FenceDeclared = []Link{LinkFenceStore, LinkProviders, LinkFenceRetention} }), ""},
	{"the key's life beside a proxy", "field-ignored", with(fenced(), func(c *Chain) { c.FenceDeclared = []Link{LinkProviderKeyTTL} }), Warning},
	{"the key's life without one", "field-ignored", with(textbook(), func(c *Chain) { c.FenceDeclared = []Link{LinkProviderKeyTTL} }), ""},

	{"no call limit, fence proxy", "http-timeout-missing", with(fenced(), func(c *Chain) { c.HTTP = Value{} }), Error},

	{"fence = C", "provider-timeout-not-below-http", fenced(), ""},
	{"only a first run could send", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers[0].Timeout = Of(18) }), Error},
	{"fence above C", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers[0].Timeout = Of(19) }), Error},
	{"the second provider", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers = append(c.Providers, Provider{Name: "bank", Timeout: Of(18)}) }), Error},
	{"a longer send window", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers[0].SendWindow = Of(2) }), Error},
	{"a longer statement budget", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers[0].StatementBudget = Of(2) }), Error},
	{"derived timeout of 1", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers[0].Timeout = Value{}; c.HTTP, c.HTTPConnect = Of(4), Of(1) }), ""},
	{"nothing left for the provider", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Providers[0].Timeout = Value{}; c.HTTP, c.HTTPConnect = Of(3), Of(1) }), Error},
	{"C unset is another rule", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.HTTP = Value{} }), ""},
	{"no proxy", "provider-timeout-not-below-http", with(fenced(), func(c *Chain) { c.Fence = FenceTable; c.Providers[0].Timeout = Of(19) }), ""},

	{"X = provider timeout + 30", "in-flight-too-short", with(fenced(), func(c *Chain) { c.Providers[0].InFlight = Of(47) }), ""},
	{"X below it", "in-flight-too-short", with(fenced(), func(c *Chain) { c.Providers[0].InFlight = Of(46) }), Error},
	{"default X at the edge", "in-flight-too-short", with(fenced(), func(c *Chain) { c.Providers[0].Timeout = Of(270) }), ""},
	{"default X below it", "in-flight-too-short", with(fenced(), func(c *Chain) { c.Providers[0].Timeout = Of(271) }), Error},
	{"X, no proxy", "in-flight-too-short", with(fenced(), func(c *Chain) { c.Fence = FenceNone; c.Providers[0].InFlight = Of(1) }), ""},

	// The last run of the textbook chain starts after 2 x 90 + 10 + 60 = 250.
	{"quiet before the last run", "quiet-past-retries", with(fenced(), func(c *Chain) { c.Providers[0].InFlight, c.Providers[0].LookupLag = Of(188), Of(60) }), ""},
	{"quiet with the last run", "quiet-past-retries", with(fenced(), func(c *Chain) { c.Providers[0].InFlight, c.Providers[0].LookupLag = Of(189), Of(60) }), Warning},
	{"quiet by default", "quiet-past-retries", with(fenced(), func(c *Chain) { c.Providers[0].LookupLag = Of(0) }), Warning},
	{"no lookup", "quiet-past-retries", fenced(), ""},
	{"tries without end", "quiet-past-retries", with(fenced(), func(c *Chain) { c.Providers[0].LookupLag, c.Tries = Of(0), Of(0) }), ""},
	{"tries unknown, lookup", "quiet-past-retries", with(fenced(), func(c *Chain) { c.Providers[0].LookupLag, c.Runtime, c.Tries = Of(0), Horizon, Value{} }), ""},
	{"lookup, no proxy", "quiet-past-retries", with(fenced(), func(c *Chain) { c.Providers[0].LookupLag, c.Fence = Of(0), FenceNone }), ""},

	// R + S + X is 90 + 1 + 300.
	{"T above R + S + X", "key-ttl-too-short-to-resend", with(fenced(), func(c *Chain) { c.Providers[0].KeyTTL = Of(392) }), ""},
	{"T = R + S + X", "key-ttl-too-short-to-resend", with(fenced(), func(c *Chain) { c.Providers[0].KeyTTL = Of(391) }), Warning},
	{"T above S + X", "key-ttl-too-short-to-resend", with(fenced(), func(c *Chain) { c.Providers[0].KeyTTL = Of(302) }), Warning},
	{"T = S + X", "key-ttl-too-short-to-resend", with(fenced(), func(c *Chain) { c.Providers[0].KeyTTL = Of(301) }), Error},
	{"keys ignored", "key-ttl-too-short-to-resend", fenced(), ""},
	{"T, no proxy", "key-ttl-too-short-to-resend", with(fenced(), func(c *Chain) { c.Providers[0].KeyTTL, c.Fence = Of(301), FenceTable }), ""},

	// 280 + 30 + 20, and a week of failed jobs.
	{"kept long enough", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone = Of(330) }), ""},
	{"kept a second less", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone = Of(329) }), Error},
	{"kept past failed jobs", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone, c.FailedJobsKept = Of(605_130), Of(604_800) }), ""},
	{"failed jobs live longer", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone, c.FailedJobsKept = Of(605_129), Of(604_800) }), Error},
	{"kept, tries without end", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone, c.Tries = Of(1), Of(0) }), ""},
	{"kept, tries unknown", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone, c.Runtime, c.Tries = Of(1), Horizon, Value{} }), ""},
	{"kept, no proxy", "retention-below-retry-window", with(fenced(), func(c *Chain) { c.KeepDone, c.Fence = Of(1), FenceNone }), ""},

	{"stuck after R + 1", "stuck-before-job-ends", with(textbook(), func(c *Chain) { c.StuckAfter = Of(91) }), ""},
	{"stuck after R", "stuck-before-job-ends", with(textbook(), func(c *Chain) { c.StuckAfter = Of(90) }), Warning},
	{"stuck after J, no reservation", "stuck-before-job-ends", with(genericChain(), func(c *Chain) { c.Job, c.RetryAfter, c.StuckAfter = Of(600), Value{}, Of(600) }), Warning},
	{"stuck after J + 1, no reservation", "stuck-before-job-ends", with(genericChain(), func(c *Chain) { c.Job, c.RetryAfter, c.StuckAfter = Of(600), Value{}, Of(601) }), ""},
	{"stuck after the default", "stuck-before-job-ends", textbook(), ""},
	{"overlap lock = J + C + 1", "overlap-lock-shorter-than-job", with(textbook(), func(c *Chain) { c.OverlapExpireAfter = Of(51) }), ""},
	{"overlap lock = J + C", "overlap-lock-shorter-than-job", with(textbook(), func(c *Chain) { c.OverlapExpireAfter = Of(50) }), Warning},
	{"overlap lock, J without a limit", "overlap-lock-shorter-than-job", with(genericChain(), func(c *Chain) { c.Job, c.RetryAfter, c.OverlapExpireAfter = Of(0), Value{}, Of(10) }), ""},
	{"overlap lock without end", "overlap-lock-shorter-than-job", with(textbook(), func(c *Chain) { c.OverlapExpireAfter = Of(0) }), ""},

	{"unique lock = window", "unique-lock-shorter-than-retries", with(textbook(), func(c *Chain) { c.UniqueFor = Of(280) }), ""},
	{"unique lock = window - 1", "unique-lock-shorter-than-retries", with(textbook(), func(c *Chain) { c.UniqueFor = Of(279) }), Warning},
	{"unique lock, tries without end", "unique-lock-shorter-than-retries", with(textbook(), func(c *Chain) { c.UniqueFor, c.Tries = Of(10), Of(0) }), ""},
	{"unique lock without end", "unique-lock-shorter-than-retries", with(textbook(), func(c *Chain) { c.UniqueFor = Of(0) }), ""},

	{"G = cap", "grace-over-platform-cap", with(textbook(), func(c *Chain) { c.Grace = Of(600) }), ""},
	{"G above the default cap", "grace-over-platform-cap", with(textbook(), func(c *Chain) { c.Grace = Of(601) }), Warning},
	{"G above a lower cap", "grace-over-platform-cap", with(textbook(), func(c *Chain) { c.GraceCap = Of(119) }), Warning},
	{"derived G above the cap", "grace-over-platform-cap", with(textbook(), func(c *Chain) { c.RetryAfter = Of(591); c.Grace = Value{} }), Warning},
	{"derived G at the cap", "grace-over-platform-cap", with(textbook(), func(c *Chain) { c.RetryAfter = Of(590); c.Grace = Value{} }), ""},

	{"memory below the limit", "memory-over-container-limit", with(textbook(), func(c *Chain) { c.Pod.MemoryLimitBytes = Of(128<<20 + 1) }), ""},
	{"memory at the limit", "memory-over-container-limit", with(textbook(), func(c *Chain) { c.Pod.MemoryLimitBytes = Of(128 << 20) }), Warning},
	{"memory of all Horizon processes", "memory-over-container-limit", with(horizonChain(), func(c *Chain) {
		c.Worker.MemoryMegabytes, c.Worker.Processes = Of(64), Of(4)
		c.Pod.MemoryLimitBytes = Of(256 << 20)
	}), Warning},
	{"memory of one process less", "memory-over-container-limit", with(horizonChain(), func(c *Chain) {
		c.Worker.MemoryMegabytes, c.Worker.Processes = Of(64), Of(3)
		c.Pod.MemoryLimitBytes = Of(256 << 20)
	}), ""},
	{"memory of a command of one's own", "memory-over-container-limit", with(genericChain(), func(c *Chain) {
		c.Worker.MemoryMegabytes, c.Pod.MemoryLimitBytes = Of(128), Of(1<<20)
	}), ""},
	{"no limit", "memory-over-container-limit", textbook(), ""},

	{"probe grace = D + J", "liveness-kills-early", with(textbook(), func(c *Chain) { c.Pod.LivenessGrace = Of(35); c.BeforeStop = Of(5) }), ""},
	{"probe grace below it", "liveness-kills-early", with(textbook(), func(c *Chain) { c.Pod.LivenessGrace = Of(34); c.BeforeStop = Of(5) }), Error},

	{"startup probe's grace = D + J", "liveness-kills-early", with(textbook(), func(c *Chain) { c.Pod.StartupGrace = Of(35); c.BeforeStop = Of(5) }), ""},
	{"startup probe's grace below it", "liveness-kills-early", with(textbook(), func(c *Chain) { c.Pod.StartupGrace = Of(34); c.BeforeStop = Of(5) }), Error},

	{"no deadline", "deadline-kills-early", textbook(), ""},
	{"deadline", "deadline-kills-early", with(textbook(), func(c *Chain) { c.Pod.ActiveDeadline = Of(86400) }), Error},

	{"worker there", "template-worker-missing", textbook(), ""},
	{"worker missing", "template-worker-missing", with(textbook(), func(c *Chain) { c.Pod.WorkerMissing = true }), Error},
	{"own command, Laravel", "template-command", with(textbook(), func(c *Chain) { c.Pod.Command = true }), Error},
	{"own command, Generic", "template-command", with(genericChain(), func(c *Chain) { c.Pod.Command = true }), ""},
	{"no command, Generic", "template-command-missing", with(genericChain(), func(c *Chain) { c.Pod.CommandMissing = true }), Error},
	{"no command, Laravel", "template-command-missing", with(textbook(), func(c *Chain) { c.Pod.CommandMissing = true }), ""},
	{"no worker is another rule", "template-command-missing", with(genericChain(), func(c *Chain) { c.Pod.CommandMissing, c.Pod.WorkerMissing = true, true }), ""},
	{"queue:work, Generic", "command-not-compared", with(genericChain(), func(c *Chain) { c.Pod.RunsArtisan = true }), Warning},
	{"queue:work, Laravel, is another rule", "command-not-compared", with(textbook(), func(c *Chain) { c.Pod.RunsArtisan = true }), ""},
	{"no queue:work", "command-not-compared", genericChain(), ""},
	{"second container", "sidecar-stops-first", with(textbook(), func(c *Chain) { c.Pod.Sidecars = []string{"proxy"} }), Warning},
	{"the worker alone", "sidecar-stops-first", textbook(), ""},
	{"grace in the template", "template-grace", with(textbook(), func(c *Chain) { c.Pod.Grace = Of(120) }), Error},
	{"none in the template", "template-grace", textbook(), ""},
	{"own preStop", "template-pre-stop", with(textbook(), func(c *Chain) { c.Pod.PreStop = true }), Error},
	{"no preStop", "template-pre-stop", textbook(), ""},
	{"Always", "template-restart-policy", with(textbook(), func(c *Chain) { c.Pod.RestartPolicy = "Always" }), ""},
	{"OnFailure", "template-restart-policy", with(textbook(), func(c *Chain) { c.Pod.RestartPolicy = "OnFailure" }), Error},
	{"reserved volume", "template-owned-name", with(textbook(), func(c *Chain) { c.Pod.OwnedNames = []string{"volume queueworker"} }), Error},
	{"no reserved name", "template-owned-name", textbook(), ""},
	{"own variable", "env-owned", with(textbook(), func(c *Chain) { c.Pod.OwnedEnv = []string{"REDIS_QUEUE_RETRY_AFTER"} }), Error},
	{"no own variable", "env-owned", textbook(), ""},

	{"--force", "args-owned", with(textbook(), func(c *Chain) { c.Worker.ExtraArgs = []string{"--force", "--timeouts=1", "timeout"} }), ""},
	{"--timeout=900", "args-owned", with(textbook(), func(c *Chain) { c.Worker.ExtraArgs = []string{"--timeout=900"} }), Error},
	{"--once", "args-owned", with(textbook(), func(c *Chain) { c.Worker.ExtraArgs = []string{"--once"} }), Error},

	{"sleep under Laravel", "field-ignored", with(textbook(), func(c *Chain) { c.Worker.Declared = []Link{LinkSleep} }), ""},
	{"processes under Laravel", "field-ignored", with(textbook(), func(c *Chain) { c.Worker.Declared = []Link{LinkProcesses} }), Warning},
	{"sleep under Horizon", "field-ignored", with(horizonChain(), func(c *Chain) { c.Worker.Declared = []Link{LinkSleep} }), Warning},
	{"memory under Horizon", "field-ignored", with(horizonChain(), func(c *Chain) {
		c.Worker.Declared = []Link{LinkPHP, LinkArtisan, LinkMemory, LinkProcesses, LinkExtraArgs}
	}), ""},
	{"wrapper and supervision under Laravel", "field-ignored", with(textbook(), func(c *Chain) { c.Worker.Declared = []Link{LinkWrapper, LinkSupervision} }), ""},
	{"wrapper and supervision under Horizon", "field-ignored", with(horizonChain(), func(c *Chain) { c.Worker.Declared = []Link{LinkWrapper, LinkSupervision} }), ""},
	{"wrapper under Generic", "field-ignored", with(genericChain(), func(c *Chain) { c.Worker.Declared = []Link{LinkWrapper} }), Warning},
	{"supervision under Generic", "field-ignored", with(genericChain(), func(c *Chain) { c.Worker.Declared = []Link{LinkSupervision} }), Warning},
	{"php under Generic", "field-ignored", with(genericChain(), func(c *Chain) { c.Worker.Declared = []Link{LinkPHP} }), Warning},
	{"block_for on a database", "field-ignored", with(textbook(), func(c *Chain) { c.Driver = Database; c.BlockFor = Of(5) }), Warning},
	{"no block_for on a database", "field-ignored", with(textbook(), func(c *Chain) { c.Driver = Database }), ""},
	{"block_for on SQS", "field-ignored", with(textbook(), func(c *Chain) { c.Driver = SQS; c.BlockFor = Of(5) }), Warning},
	{"block_for on Redis", "field-ignored", with(textbook(), func(c *Chain) { c.BlockFor = Of(5) }), ""},

	{"takes a worker first", "strategy-overridden", rolling("25%", ""), Warning},
	{"takes none", "strategy-overridden", rolling("0", "1"), ""},
	{"takes none of a hundred", "strategy-overridden", rolling("0%", "1%"), ""},
	{"adds none", "strategy-overridden", rolling("", "0%"), Warning},
	{"one for one", "strategy-overridden", rolling("1", "0"), Warning},
	{"nothing declared", "strategy-overridden", rolling("", ""), ""},
	{"not enforced", "strategy-overridden", with(rolling("1", "0"), func(c *Chain) { c.Strategy.PreflightFirst = false }), ""},
	{"their R = our J + 1", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(31)}), ""},
	{"their R = our J, same store", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(30), SameStore: true}), Error},
	{"their R = our J", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(30)}), Warning},
	{"their R is not known", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(5)}), ""},
	{"our R is not known", "shared-queue-shorter-reservation", with(sharing(Poller{Name: "b", Job: Of(5), RetryAfter: Of(100)}), func(c *Chain) { c.RetryAfter = Value{} }), ""},
	{"our R = their J + 1", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(89), RetryAfter: Of(100)}), ""},
	{"our R = their J", "shared-queue-shorter-reservation", sharing(Poller{Name: "b", Job: Of(90), RetryAfter: Of(100), SameStore: true}), Error},
}

func rolling(unavailable, surge string) Chain {
	return with(textbook(), func(c *Chain) {
		c.Strategy = Strategy{PreflightFirst: true, MaxUnavailable: unavailable, MaxSurge: surge}
	})
}

func sharing(p Poller) Chain {
	return with(textbook(), func(c *Chain) { c.Driver = Database; c.Pollers = []Poller{p} })
}

func TestEdges(t *testing.T) {
	t.Parallel()
	for _, e := range edges {
		t.Run(e.rule+"/"+e.name, func(t *testing.T) {
			t.Parallel()
			var got Severity
			for _, f := range Check(e.chain) {
				if f.Rule == e.rule {
					got = f.Severity
				}
			}
			if got != e.want {
				t.Errorf("severity %q, want %q\nall: %v", got, e.want, ids(Check(e.chain)))
			}
		})
	}
}

func TestEveryRuleHasBothSidesOfItsEdge(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules() {
		var fires, silent bool
		for _, e := range edges {
			if e.rule == rule.ID {
				fires = fires || e.want != ""
				silent = silent || e.want == ""
			}
		}
		if !fires || !silent {
			t.Errorf("%s: fires %v, silent %v; both must be tested", rule.ID, fires, silent)
		}
	}
}

func TestChainsThatHoldYieldNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Chain{"laravel": textbook(), "horizon": horizonChain(), "generic": genericChain(), "fenced": fenced()} {
		if findings := Check(c); len(findings) > 0 {
			t.Errorf("%s: %v", name, ids(findings))
		}
	}
}

func TestEveryRuleIsDocumented(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] {
			t.Errorf("%s is registered twice", r.ID)
		}
		seen[r.ID] = true
		if r.Doc.When == "" || r.Doc.Why == "" || r.Doc.Remedy == "" || r.Sections == 0 {
			t.Errorf("%s lacks a condition, a reason, a remedy or its sections", r.ID)
		}
	}
}

func TestOneCauseOneFinding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		chain Chain
		want  []string
	}{
		"R missing":         {with(textbook(), func(c *Chain) { c.RetryAfter = Value{} }), []string{"retry-after-missing"}},
		"R zero":            {with(textbook(), func(c *Chain) { c.RetryAfter = Of(0) }), []string{"retry-after-missing"}},
		"J zero":            {with(textbook(), func(c *Chain) { c.Job = Of(0) }), []string{"job-timeout-unbounded"}},
		"J past R":          {with(textbook(), func(c *Chain) { c.Job = Of(95) }), []string{"job-not-below-retry-after"}},
		"several faults":    {with(textbook(), func(c *Chain) { c.HTTP = Of(100); c.Job = Of(95); c.Grace = Of(80) }), []string{"http-not-below-job", "job-not-below-retry-after", "retry-after-not-below-grace", "drain-exceeds-grace"}},
		"no worker, G none": {with(genericChain(), func(c *Chain) { c.Pod.WorkerMissing, c.Pod.CommandMissing = true, true }), []string{"template-worker-missing"}},
	} {
		if got := ids(Blocking(Check(tc.chain))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestMessageSaysItAll(t *testing.T) {
	t.Parallel()
	c := with(textbook(), func(c *Chain) { c.Job = Of(60); c.RetryAfter = Of(30); c.Grace = Value{} })
	for _, f := range Check(c) {
		if f.Rule != "job-not-below-retry-after" {
			continue
		}
		const want = "job-not-below-retry-after: jobSeconds 60 must be below retryAfterSeconds 30: " +
			"from second 30 on a second worker runs the same job while the first still does; set retryAfterSeconds to 83"
		if f.Message() != want {
			t.Errorf("got  %s\nwant %s", f.Message(), want)
		}
		return
	}
	t.Error("no finding")
}

func TestFixesOfOneChainFitTogether(t *testing.T) {
	t.Parallel()
	c := with(textbook(), func(c *Chain) { c.Job, c.RetryAfter, c.Grace = Of(300), Of(90), Of(10) })
	fixed := c
	for _, f := range Blocking(Check(c)) {
		if !apply(&fixed, f.Fix.Set) {
			t.Fatalf("%s: %v", f.Rule, f.Fix)
		}
	}
	if left := ids(Blocking(Check(fixed))); len(left) > 0 {
		t.Errorf("after all fixes: %v", left)
	}
}

func TestFixRaisesWhatLiesOutside(t *testing.T) {
	t.Parallel()
	c := with(textbook(), func(c *Chain) {
		c.Job = Of(60)
		c.RetryAfter = Of(50)
		c.Grace = Of(63)
		c.HTTP = Value{}
		c.HTTPConnect = Value{}
	})
	for _, f := range Check(c) {
		if f.Rule == "job-not-below-retry-after" {
			if got := f.Fix.String(); got != "set retryAfterSeconds to 65 and terminationGracePeriodSeconds to 70" {
				t.Error(got)
			}
			return
		}
	}
	t.Error("no finding")
}

func TestDerived(t *testing.T) {
	t.Parallel()
	base := with(textbook(), func(c *Chain) { c.Grace = Value{} })
	for name, tc := range map[string]struct{ got, want int64 }{
		"grace from R":                 {ptr(base).GracePeriod(), 100},
		"grace from the drain":         {ptr(with(base, func(c *Chain) { c.BeforeStop = Of(50); c.BlockFor = Of(5); c.Queues = 2 })).GracePeriod(), 50 + 12 + 30 + 20 + 10},
		"grace that outlasts the job":  {ptr(with(base, func(c *Chain) { c.GraceOutlasts = OutlastsJob })).GracePeriod(), 60},
		"declared grace":               {ptr(textbook()).GracePeriod(), 120},
		"watchdog J + C + 5":           {ptr(base).Watchdog(), 55},
		"watchdog R - 3":               {ptr(with(base, func(c *Chain) { c.RetryAfter = Of(50) })).Watchdog(), 47},
		"watchdog without C":           {ptr(with(base, func(c *Chain) { c.HTTP = Value{} })).Watchdog(), 87},
		"watchdog without R":           {ptr(with(base, func(c *Chain) { c.RetryAfter = Value{} })).Watchdog(), 55},
		"watchdog without either":      {ptr(with(base, func(c *Chain) { c.RetryAfter, c.HTTP = Value{}, Value{} })).Watchdog(), 60},
		"no watchdog for unlimited":    {ptr(with(base, func(c *Chain) { c.RetryAfter, c.Job = Value{}, Of(0) })).Watchdog(), 0},
		"watchdog is never 0 by R":     {ptr(with(base, func(c *Chain) { c.RetryAfter = Of(2) })).Watchdog(), 1},
		"watchdog of a short R":        {ptr(with(base, func(c *Chain) { c.RetryAfter, c.HTTP = Of(5), Value{} })).Watchdog(), 2},
		"probe D + P + J + C + 5":      {ptr(with(base, func(c *Chain) { c.BeforeStop, c.BlockFor = Of(7), Of(4) })).ProbeGrace(), 7 + 5 + 30 + 20 + 5},
		"probe at most G":              {ptr(with(base, func(c *Chain) { c.Grace = Of(54) })).ProbeGrace(), 54},
		"probe of an unlimited job":    {ptr(with(base, func(c *Chain) { c.RetryAfter, c.Job, c.Grace = Value{}, Of(0), Of(300) })).ProbeGrace(), 300},
		"no pop to wait for":           {ptr(base).Pop(), 0},
		"pop that waits for a job":     {ptr(with(base, func(c *Chain) { c.BlockFor = Of(0) })).Pop(), 0},
		"pop of the one queue":         {ptr(with(base, func(c *Chain) { c.BlockFor, c.Queues = Of(5), 0 })).Pop(), 6},
		"pop of three queues":          {ptr(with(base, func(c *Chain) { c.BlockFor, c.Queues = Of(5), 3 })).Pop(), 18},
		"no call":                      {ptr(with(base, func(c *Chain) { c.HTTP = Value{} })).TotalHTTP(), 0},
		"attempts without a number":    {ptr(with(base, func(c *Chain) { c.HTTPAttempts, c.HTTPRetryDelay = Of(0), Of(9) })).TotalHTTP(), 20},
		"processes without a number":   {ptr(horizonChain()).processes(), 1},
		"processes of a master":        {ptr(with(horizonChain(), func(c *Chain) { c.Worker.Processes = Of(4) })).processes(), 4},
		"processes of Laravel":         {ptr(with(base, func(c *Chain) { c.Worker.Processes = Of(4) })).processes(), 1},
		"total of attempts and pauses": {ptr(with(base, func(c *Chain) { c.HTTPAttempts, c.HTTPRetryDelay = Of(3), Of(2) })).TotalHTTP(), 64},
		"window":                       {window(base), 280},
		"window of the only step":      {window(with(base, func(c *Chain) { c.Tries, c.Backoff = Of(5), []int64{10} })), 4*90 + 4*10 + 30},
		"window of unknown tries":      {window(with(base, func(c *Chain) { c.Tries = Value{} })), 0},
		"window, last step repeats":    {window(with(base, func(c *Chain) { c.Tries = Of(5) })), 4*90 + 10 + 60 + 60 + 60 + 30},
		"window, steps to spare":       {window(with(base, func(c *Chain) { c.Tries = Of(2) })), 90 + 10 + 30},
		"window of one try":            {window(with(base, func(c *Chain) { c.Tries = Of(1) })), 30},
		"window until a time":          {window(with(base, func(c *Chain) { c.RetryUntil = Of(600) })), 630},
		"window without end":           {window(with(base, func(c *Chain) { c.Tries = Of(0) })), math.MaxInt64},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, want %d", name, tc.got, tc.want)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Chain{
		"20<30<90<120":    textbook(),
		"20<30<90<100":    with(textbook(), func(c *Chain) { c.Grace = Value{} }),
		"20<30<90>=60":    with(textbook(), func(c *Chain) { c.Grace = Of(60) }),
		"20<90>=90<120":   with(textbook(), func(c *Chain) { c.Job = Of(90) }),
		"20<95>=90<120":   with(textbook(), func(c *Chain) { c.Job = Of(95) }),
		"?<30<90<120":     with(textbook(), func(c *Chain) { c.HTTP = Value{} }),
		"20<30<?<120":     with(textbook(), func(c *Chain) { c.RetryAfter = Value{} }),
		"20<30<-<120":     with(genericChain(), func(c *Chain) { c.RetryAfter = Value{} }),
		"20<-<-<120":      with(genericChain(), func(c *Chain) { c.RetryAfter, c.Job = Value{}, Of(0) }),
		"20<-<-<?":        with(genericChain(), func(c *Chain) { c.RetryAfter, c.Job, c.Grace = Value{}, Of(0), Value{} }),
		"20<30<900~100":   with(textbook(), func(c *Chain) { c.RetryAfter, c.Grace, c.GraceOutlasts = Of(900), Of(100), OutlastsJob }),
		"20<30<900>=30":   with(textbook(), func(c *Chain) { c.RetryAfter, c.Grace, c.GraceOutlasts = Of(900), Of(30), OutlastsJob }),
		"45>=30<90<120":   with(textbook(), func(c *Chain) { c.HTTP, c.HTTPAttempts = Of(15), Of(3) }),
		"20<30<90<120000": with(textbook(), func(c *Chain) { c.Grace = Of(120000) }),
	} {
		if got := c.Summary(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func ptr(c Chain) *Chain { return &c }

func window(c Chain) int64 {
	w, _ := c.RetryWindow()
	return w
}

func ids(findings []Finding) []string {
	out := make([]string, len(findings))
	for i, f := range findings {
		out[i] = f.Rule
	}
	return out
}
