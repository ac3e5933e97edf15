// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// maybe draws a number that is often absent and often close to an edge.
func maybe(t *rapid.T, label string, near ...int64) Value {
	switch rapid.IntRange(0, 9).Draw(t, label+" kind") {
	case 0, 1, 2:
		return Value{}
	case 3:
		return Of(0)
	case 4:
		return Of(rapid.Int64Range(0, MaxSeconds).Draw(t, label+" wide"))
	case 5, 6, 7:
		if len(near) > 0 {
			base := rapid.SampledFrom(near).Draw(t, label+" near")
			return Of(min(max(base+rapid.Int64Range(-6, 6).Draw(t, label+" off"), 0), MaxSeconds))
		}
	}
	return Of(rapid.Int64Range(0, 300).Draw(t, label))
}

// anyChain draws chains that the schema would accept.
func anyChain(t *rapid.T) Chain {
	c := Chain{
		Runtime:       rapid.SampledFrom([]Runtime{Laravel, Horizon, Generic}).Draw(t, "runtime"),
		Driver:        rapid.SampledFrom([]Driver{Redis, Database, SQS, Beanstalkd, RabbitMQ, Other, ""}).Draw(t, "driver"),
		GraceOutlasts: rapid.SampledFrom([]Outlasts{OutlastsReservation, OutlastsJob}).Draw(t, "outlasts"),
		Fence:         rapid.SampledFrom([]FenceMode{FenceNone, FenceTable, FenceProxy}).Draw(t, "fence"),
		Queues:        rapid.Int64Range(1, 32).Draw(t, "queues"),
	}
	c.HTTP = positive(maybe(t, "http"))
	c.HTTPConnect = positive(maybe(t, "connect", c.HTTP.N()))
	c.HTTPAttempts = positive(maybe(t, "attempts"))
	c.HTTPRetryDelay = maybe(t, "delay")
	c.Job = Of(maybe(t, "job", c.TotalHTTP()).Or(30))
	c.RetryAfter = maybe(t, "reservation", c.Job.N(), c.Job.N()+c.Call())
	c.BeforeStop = positive(maybe(t, "beforeStop"))
	c.BlockFor = maybe(t, "blockFor")
	c.Grace = maybe(t, "grace", c.RetryAfter.N(), c.DrainTime(), c.DrainTime()+c.Call())
	c.Tries = maybe(t, "tries")
	c.RetryUntil = positive(maybe(t, "until"))
	c.Backoff = rapid.SliceOfN(rapid.Int64Range(0, MaxSeconds), 0, 4).Draw(t, "backoff")
	c.MessageRetention = positive(maybe(t, "retention", c.longestBackoff()))
	c.UniqueFor = maybe(t, "unique")
	c.OverlapExpireAfter = maybe(t, "overlap", c.Job.N()+c.Call())
	c.StuckAfter = maybe(t, "stuck after", max(c.Job.N(), c.RetryAfter.N()))
	c.ProviderKeyTTL = positive(maybe(t, "key"))
	c.FenceStore, c.KeepDone, c.FailedJobsKept = rapid.Bool().Draw(t, "store"), maybe(t, "keep"), maybe(t, "failed")
	c.WrongTable = rapid.SampledFrom([]string{"", "Charges"}).Draw(t, "table")
	for _, name := range []string{"stripe", "bank"}[:rapid.IntRange(0, 2).Draw(t, "providers")] {
		c.Providers = append(c.Providers, Provider{
			Name: name, Timeout: positive(maybe(t, "provider timeout", c.Call()-3)), InFlight: positive(maybe(t, "in flight", c.Call()+27)),
			SendWindow: positive(maybe(t, "send window")), StatementBudget: positive(maybe(t, "statements")),
			LookupLag: maybe(t, "lag"), KeyTTL: positive(maybe(t, "key life", c.RetryAfter.N()+301)),
		})
	}
	c.Worker.Sleep = maybe(t, "sleep", c.Job.N())
	c.Worker.Rest = maybe(t, "rest", c.Job.N())
	c.Worker.MemoryMegabytes = positive(maybe(t, "memory"))
	c.Worker.Processes = positive(maybe(t, "processes"))
	c.Pod.LivenessGrace = positive(maybe(t, "liveness", c.DrainTime()))
	c.Pod.StartupGrace = positive(maybe(t, "startup", c.DrainTime()))
	c.Pod.MemoryLimitBytes = positive(maybe(t, "limit"))
	c.Pod.Command = rapid.Bool().Draw(t, "command")
	return c
}

func positive(v Value) Value {
	if v.Zero() {
		return Of(1)
	}
	return v
}

func TestDerivedGraceKeepsTheChain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t)
		c.Grace = Value{}
		g := c.GracePeriod()
		if c.DrainTime()+c.Call() >= g {
			t.Fatalf("D+P+J+C = %d is not below the derived grace %d", c.DrainTime()+c.Call(), g)
		}
		if c.GraceOutlasts == OutlastsReservation && c.RetryAfter.N() >= g {
			t.Fatalf("R = %d is not below the derived grace %d", c.RetryAfter.N(), g)
		}
	})
}

// A probe's grace is neither below D + J nor above G.
func TestProbeGraceKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t)
		if before := evaluate(&c); blockedBy(before, "drain-exceeds-grace") || blockedBy(before, "grace-missing") {
			return
		}
		grace := c.ProbeGrace()
		if grace > c.GracePeriod() {
			t.Fatalf("a probe gives %d, the pod %d", grace, c.GracePeriod())
		}
		c.Pod.LivenessGrace, c.Pod.StartupGrace = Of(grace), Value{}
		if blockedBy(evaluate(&c), "liveness-kills-early") {
			t.Fatalf("a probe gives %d, and that breaks liveness-kills-early", grace)
		}
	})
}

// Raising an outer limit never breaks its relation to the next inner one.
func TestRaisingAnOuterLimitNeverAddsAnError(t *testing.T) {
	t.Parallel()
	outer := []struct {
		link Link
		rule string
	}{
		{LinkHTTP, "connect-not-below-http"},
		{LinkJob, "http-not-below-job"},
		{LinkRetryAfter, "job-not-below-retry-after"},
		{LinkGrace, "retry-after-not-below-grace"},
		{LinkGrace, "drain-exceeds-grace"},
		{LinkRetention, "backoff-exceeds-retention"},
		{LinkProviderKeyTTL, "key-ttl-below-retry-window"},
		{LinkLivenessGrace, "liveness-kills-early"},
		{LinkStartupGrace, "liveness-kills-early"},
	}
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t)
		pick := rapid.SampledFrom(outer).Draw(t, "link")
		target, _ := c.field(pick.link)
		if !target.Declared() || target.Zero() {
			return // 0 means unlimited or at once: raising it is another rule's matter
		}
		before := blockedBy(evaluate(&c), pick.rule)
		*target = Of(target.N() + rapid.Int64Range(1, 1000).Draw(t, "by"))
		if !before && blockedBy(evaluate(&c), pick.rule) {
			t.Fatalf("raising %s broke %s", pick.link, pick.rule)
		}
	})
}

func TestNoInputPanicsOrOverflows(t *testing.T) {
	t.Parallel()
	extreme := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, MaxSeconds, math.MaxInt64 - 1, math.MaxInt64}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Value {
			if rapid.Bool().Draw(t, label+" set") {
				return Of(rapid.SampledFrom(extreme).Draw(t, label))
			}
			return Value{}
		}
		c := anyChain(t)
		for _, link := range []Link{
			LinkHTTPConnect, LinkHTTP, LinkHTTPAttempts, LinkJob, LinkRetryAfter, LinkGrace, LinkBeforeStop, LinkBlockFor,
			LinkTries, LinkRetention, LinkUniqueFor, LinkOverlap, LinkStuckAfter, LinkProviderKeyTTL, LinkSleep, LinkRest, LinkMemory,
			LinkKeepDone,
		} {
			c.assign(Assignment{Link: link, Value: draw(string(link))})
		}
		c.FailedJobsKept = draw("failed")
		for i := range c.Providers {
			c.Providers[i] = Provider{
				Name: "p", SendWindow: draw("send window"), Timeout: draw("timeout"), StatementBudget: draw("statements"),
				InFlight: draw("in flight"), LookupLag: draw("lag"), KeyTTL: draw("key life"),
			}
		}
		c.HTTPRetryDelay, c.Queues = draw("delay"), rapid.SampledFrom(extreme).Draw(t, "queues")
		c.Backoff = rapid.SliceOfN(rapid.SampledFrom(extreme), 0, 3).Draw(t, "backoff")
		for _, f := range Check(c) {
			_ = f.Message()
		}
		_ = c.Summary()
		_ = c.ToWire().Encode()
		if c.HTTP.Positive() && c.HTTPAttempts.Or(1) > 0 && c.HTTPRetryDelay.N() >= 0 && c.TotalHTTP() < 0 {
			t.Fatal("total HTTP time overflowed")
		}
	})
}

func TestWireRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyChain(t)
		w := c.ToWire()
		back, err := DecodeWire(w.Encode())
		if err != nil || back != w {
			t.Fatalf("%+v became %+v, %v", w, back, err)
		}
	})
}

func FuzzDecodeWire(f *testing.F) {
	c := textbook()
	f.Add(c.ToWire().Encode())
	for _, bad := range badWires {
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := DecodeWire(text)
		if err != nil {
			return
		}
		if back, err := DecodeWire(w.Encode()); err != nil || back != w {
			t.Errorf("%q decodes to %+v, which encodes to %+v, %v", text, w, back, err)
		}
	})
}

var badWires = []string{
	``, `{}`, `null`, `[]`, `{"v":2,"runtime":"Laravel","grace":1}`, `{"v":1,"runtime":"Php","grace":1}`,
	`{"v":1,"runtime":"Laravel","grace":1,"jobs":3}`, `{"v":1,"runtime":"Laravel","grace":-1}`,
	`{"v":1,"runtime":"Laravel","grace":1}{}`, `{"v":1,"runtime":"Laravel","grace":1.5}`,
	`{"v":1,"runtime":"Laravel","grace":9223372036854775807}`, `{"v":1,"runtime":"Laravel","grace":"1"}`,
}

func TestDecodeWireIsStrict(t *testing.T) {
	t.Parallel()
	for _, text := range badWires {
		if w, err := DecodeWire(text); err == nil {
			t.Errorf("%s was read as %+v", text, w)
		}
	}
}

// Only what the pod acts on may change the wire form; everything else may be
// edited without restarting a worker.
func TestWireHoldsOnlyWhatThePodActsOn(t *testing.T) {
	t.Parallel()
	c := textbook()
	before := c.ToWire()
	c.Tries, c.Backoff, c.UniqueFor, c.OverlapExpireAfter, c.StuckAfter = Of(7), []int64{1}, Of(9), Of(9), Of(9)
	c.ProviderKeyTTL, c.Fence, c.HTTPConnect, c.MessageRetention, c.GraceCap = Of(1), FenceTable, Of(1), Of(5), Of(1)
	if c.ToWire() != before {
		t.Errorf("%+v, want %+v", c.ToWire(), before)
	}
	c.Job = Of(31)
	if c.ToWire() == before {
		t.Error("jobSeconds does not reach the pod")
	}
}

func TestAChainThatHoldsCostsFewAllocations(t *testing.T) {
	c := textbook()
	if n := testing.AllocsPerRun(100, func() { Check(c) }); n > 5 {
		t.Errorf("%v allocations", n)
	}
}

func TestSaturation(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ got, want int64 }{
		{add(math.MaxInt64, 1), math.MaxInt64},
		{add(math.MinInt64, -1), math.MinInt64},
		{add(2, 3), 5},
		{add(5, -3), 2},
		{mul(7, 1), 7},
		{mul(1, 7), 7},
		{mul(5, 0), 0},
		{mul(5, -1), -5},
		{mul(math.MaxInt64, 2), math.MaxInt64},
		{mul(math.MinInt64, 2), math.MinInt64},
		{mul(math.MinInt64, -1), math.MaxInt64},
		{mul(-1, math.MinInt64), math.MaxInt64},
		{mul(-3, 4), -12},
		{mul(0, math.MaxInt64), 0},
	} {
		if tc.got != tc.want {
			t.Errorf("%d, want %d", tc.got, tc.want)
		}
	}
}

func TestZeroAndPositive(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		value          Value
		zero, positive bool
	}{{Value{}, false, false}, {Of(-1), true, false}, {Of(0), true, false}, {Of(1), false, true}} {
		if tc.value.Zero() != tc.zero || tc.value.Positive() != tc.positive {
			t.Errorf("%v: zero %v, positive %v", tc.value, tc.value.Zero(), tc.value.Positive())
		}
	}
}

// What one version wrote, the same version reads for ever.
func TestWireVersionOne(t *testing.T) {
	t.Parallel()
	for text, reads := range map[string]bool{
		`{"v":1,"runtime":"Laravel","grace":31536000000}`: true,
		`{"v":1,"runtime":"Laravel","grace":31536000001}`: false,
	} {
		if w, err := DecodeWire(text); (err == nil) != reads {
			t.Errorf("%s: %+v, %v", text, w, err)
		}
	}
}

func TestBlockingAndRisks(t *testing.T) {
	t.Parallel()
	findings := Check(with(textbook(), func(c *Chain) { c.HTTP = Value{}; c.Job = Of(95) }))
	if !slices.Equal(ids(Blocking(findings)), []string{"job-not-below-retry-after"}) ||
		!slices.Equal(ids(Risks(findings)), []string{"http-timeout-missing"}) {
		t.Errorf("%v", ids(findings))
	}
}
