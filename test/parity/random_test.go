// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// specs is the number of random objects. PARITY_SPECS asks for more, and
// PARITY_SEED for other ones.
const specs = 2000

func fromEnv(t testing.TB, name string, fallback int) int {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, a number is wanted", name, text)
	}
	return n
}

func TestRandomObjectsAreJudgedAlike(t *testing.T) {
	s := loadSchema(t)
	seed := fromEnv(t, "PARITY_SEED", 1)
	count := newHistogram()
	failures := 0
	for i := range fromEnv(t, "PARITY_SPECS", specs) {
		raw := newGenerator(uint64(seed + i)).object()
		object := completed(t, s, raw)
		cel, findings := celErrors(s, object), goErrors(t, object)
		byCEL, byGo := celIDs(cel), goIDs(findings)
		if !slices.Equal(byCEL, byGo) {
			t.Errorf("seed %d: CEL says %v, Go says %v\n%s", seed+i, byCEL, byGo, yamlOf(object["spec"]))
			failures++
		}
		if undefaulted := goIDs(goErrors(t, raw)); !slices.Equal(undefaulted, byGo) {
			t.Errorf("seed %d: without the schema's defaults Go says %v, with them %v\n%s", seed+i, undefaulted, byGo, yamlOf(raw["spec"]))
			failures++
		}
		if failures > 5 {
			t.Fatal("too many")
		}
		count.add(chainsource.FromQueueWorker(typed(t, object), chainsource.Options{}), byGo)
	}
	t.Log(count)
	count.expectVariety(t)
}

// histogram shows that the random objects reach the edges of every rule.
type histogram struct {
	total, clean int
	fired, near  map[string]int
}

// sampled is how many objects share one look at what is one step away.
const sampled = 4

func newHistogram() *histogram {
	return &histogram{fired: map[string]int{}, near: map[string]int{}}
}

func (h *histogram) add(c timeoutchain.Chain, ids []string) {
	h.total++
	if len(ids) == 0 {
		h.clean++
	}
	for _, id := range ids {
		h.fired[id]++
	}
	if h.total%sampled != 0 {
		return
	}
	near := map[string]bool{}
	for _, n := range neighbours(c) {
		for _, f := range timeoutchain.Blocking(timeoutchain.Check(n)) {
			near[f.Rule] = true
		}
	}
	for id := range near {
		if !slices.Contains(ids, id) {
			h.near[id] += sampled
		}
	}
}

func errorRules() []string {
	var ids []string
	for _, r := range timeoutchain.Declarable() {
		if r.InTheCRD() {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (h *histogram) String() string {
	text := fmt.Sprintf("%d objects, %d clean (%d %%)\n%-32s %8s %8s\n", h.total, h.clean, 100*h.clean/h.total, "rule", "broken", "one step")
	for _, id := range errorRules() {
		text += fmt.Sprintf("%-32s %8d %8d\n", id, h.fired[id], h.near[id])
	}
	return text
}

// expectVariety fails where the objects stopped to show anything about a rule.
func (h *histogram) expectVariety(t *testing.T) {
	t.Helper()
	if h.clean*100 < h.total*15 {
		t.Errorf("only %d of %d objects are clean", h.clean, h.total)
	}
	for _, id := range errorRules() {
		if h.fired[id]*500 < h.total || h.near[id]*500 < h.total {
			t.Errorf("%s: broken by %d, kept by one step in %d of %d objects", id, h.fired[id], h.near[id], h.total)
		}
	}
}

// firstProvider is one that counts for nothing where there is none.
func firstProvider(c *timeoutchain.Chain) *timeoutchain.Provider {
	if len(c.Providers) == 0 {
		return &timeoutchain.Provider{}
	}
	return &c.Providers[0]
}

// neighbours are the chains that are one step away: a number by one, or one
// yes or no the other way.
func neighbours(c timeoutchain.Chain) []timeoutchain.Chain {
	var all []timeoutchain.Chain
	for _, number := range []func(*timeoutchain.Chain) *timeoutchain.Value{
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.HTTPConnect },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.HTTP },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.Job },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.RetryAfter },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.Grace },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.Tries },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.MessageRetention },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.ProviderKeyTTL },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.KeepDone },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &firstProvider(c).InFlight },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &firstProvider(c).KeyTTL },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.Worker.Sleep },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.Worker.Rest },
		func(c *timeoutchain.Chain) *timeoutchain.Value { return &c.Pod.LivenessGrace },
	} {
		declared := *number(&c)
		if !declared.Declared() {
			continue
		}
		for _, n := range []timeoutchain.Value{timeoutchain.Of(declared.Or(0) - 1), timeoutchain.Of(declared.Or(0) + 1), {}} {
			step := c
			step.Providers = slices.Clone(c.Providers)
			*number(&step) = n
			all = append(all, step)
		}
	}
	for _, other := range []func(*timeoutchain.Chain){
		func(c *timeoutchain.Chain) { c.Driver = "" },
		func(c *timeoutchain.Chain) { c.FenceStore = !c.FenceStore },
		func(c *timeoutchain.Chain) { c.WrongTable = "Charges" },
		func(c *timeoutchain.Chain) { c.Driver = timeoutchain.SQS },
		func(c *timeoutchain.Chain) { c.Job = timeoutchain.Of(0) },
		func(c *timeoutchain.Chain) { c.Runtime = timeoutchain.Generic },
		func(c *timeoutchain.Chain) { c.Pod.WorkerMissing = !c.Pod.WorkerMissing },
		func(c *timeoutchain.Chain) { c.Pod.Command = !c.Pod.Command },
		func(c *timeoutchain.Chain) { c.Pod.PreStop = !c.Pod.PreStop },
		func(c *timeoutchain.Chain) { c.Pod.Grace = timeoutchain.Of(30) },
		func(c *timeoutchain.Chain) { c.Pod.RestartPolicy = "Never" },
		func(c *timeoutchain.Chain) { c.Pod.ActiveDeadline = timeoutchain.Of(30) },
		func(c *timeoutchain.Chain) { c.Pod.OwnedNames = []string{"volume queueworker"} },
		func(c *timeoutchain.Chain) { c.Pod.OwnedEnv = []string{"QUEUEWORKER_X"} },
		func(c *timeoutchain.Chain) { c.Worker.ExtraArgs = []string{"--once"} },
	} {
		step := c
		other(&step)
		all = append(all, step)
	}
	return all
}
