// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// parts are the fields of spec that a change can touch.
var parts = []string{"runtime", "queue", "timeouts", "retries", "locks", "worker", "drain", "fence", "template", "replicas"}

// A change is refused for the same rules by both, whatever was wrong before:
// only rules that read a changed part may refuse it.
func TestRandomChangesAreJudgedAlike(t *testing.T) {
	s := loadSchema(t)
	seed := fromEnv(t, "PARITY_SEED", 1)
	var total, brokenBefore, passed, refused int
	for i := range fromEnv(t, "PARITY_SPECS", specs) / 2 {
		old, now := change(newGenerator(uint64(seed + i)))
		old, now = completed(t, s, old), completed(t, s, now)
		byCEL := celIDs(s.ValidateRulesUpdate(context.Background(), now, old))
		byGo := goIDs(timeoutchain.Blocking(admission.ValidateUpdate(typed(t, old), typed(t, now), admission.Options{}).Findings))
		if !slices.Equal(byCEL, byGo) {
			t.Fatalf("seed %d: CEL says %v, Go says %v\nold\n%s\nnew\n%s", seed+i, byCEL, byGo, yamlOf(old["spec"]), yamlOf(now["spec"]))
		}
		total++
		if len(celErrors(s, old)) == 0 {
			continue
		}
		brokenBefore++
		if len(byCEL) > 0 {
			refused++
		} else if len(celErrors(s, now)) > 0 {
			passed++
		}
	}
	t.Logf("%d changes; %d objects were broken before, %d of those stay broken and pass, %d are refused", total, brokenBefore, passed, refused)
	if passed*20 < total || refused*20 < total {
		t.Error("the changes show too little")
	}
}

// change returns a random object and what is left of it after up to three parts
// were replaced by those of another one. Parts that say the same in another way,
// such as an empty list for none, are not among them: for Go they are equal.
func change(g *generator) (old, now map[string]any) {
	old = g.plain()
	now = runtime.DeepCopyJSON(old)
	other := (&generator{Rand: g.Rand, careful: !g.careful}).plain()
	for range g.IntN(4) {
		name := pick(g, parts...)
		from, to := other["spec"].(map[string]any), now["spec"].(map[string]any)
		if value, set := from[name]; set {
			to[name] = value
		} else {
			delete(to, name)
		}
	}
	if g.chance(20) {
		now["metadata"].(map[string]any)["labels"] = map[string]any{"team": "shop"}
	}
	return old, now
}
