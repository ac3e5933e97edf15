// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"slices"
	"testing"

	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// tweaks change one part of the spec each.
var tweaks = []struct {
	part    string
	section timeoutchain.Section
	values  []any
}{
	{"runtime", timeoutchain.SectionRuntime, []any{"Laravel", "Horizon", "Generic"}},
	{"queue", timeoutchain.SectionQueue, []any{
		map[string]any{"store": "shop"}, map[string]any{"driver": "SQS"}, map[string]any{"driver": "Redis"},
		map[string]any{"driver": "Database"}, map[string]any{"messageRetentionSeconds": int64(20000)},
	}},
	{"timeouts", timeoutchain.SectionTimeouts, []any{
		map[string]any{"httpRetryDelaySeconds": int64(0)}, map[string]any{"jobSeconds": int64(31)}, map[string]any{"retryAfterSeconds": int64(2000)},
	}},
	{"retries", timeoutchain.SectionRetries, []any{map[string]any{"retryUntilSeconds": int64(5)}, map[string]any{"backoffSeconds": []any{int64(1)}}}},
	{"locks", timeoutchain.SectionLocks, []any{map[string]any{"uniqueForSeconds": int64(0)}}},
	{"worker", timeoutchain.SectionWorker, []any{map[string]any{"php": "php8"}}},
	{"drain", timeoutchain.SectionDrain, []any{
		map[string]any{"graceOutlasts": "Job"},
		map[string]any{"beforeStop": map[string]any{"command": []any{"php"}, "timeoutSeconds": int64(1)}},
	}},
	{"fence", timeoutchain.SectionFence, []any{map[string]any{"providerKeyTTLSeconds": int64(31536000)}, map[string]any{"mode": "Table"}}},
	{"template", timeoutchain.SectionTemplate, []any{map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}}},
}

// From each broken object and to it, one part at a time: CEL and Go agree, and
// a rule refuses a change of exactly the parts that it says it reads.
func TestARuleReadsThePartsItNames(t *testing.T) {
	s := loadSchema(t)
	refused := map[string]timeoutchain.Section{}
	for _, edge := range edges {
		broken := completed(t, s, patched(t, edge.breaks))
		for _, tweak := range tweaks {
			for _, value := range tweak.values {
				raw := patched(t, edge.breaks)
				merge(raw["spec"].(map[string]any), tweak.part, value)
				other := completed(t, s, raw)
				for _, change := range []struct{ old, now map[string]any }{{broken, other}, {other, broken}} {
					byCEL := celIDs(s.ValidateRulesUpdate(context.Background(), change.now, change.old))
					byGo := goIDs(timeoutchain.Blocking(admission.ValidateUpdate(typed(t, change.old), typed(t, change.now), admission.Options{}).Findings))
					if !slices.Equal(byCEL, byGo) {
						t.Errorf("%s, %s %v: CEL says %v, Go says %v", edge.rule, tweak.part, value, byCEL, byGo)
					}
					for _, id := range byCEL {
						refused[id] |= tweak.section
					}
				}
			}
		}
	}
	for _, id := range errorRules() {
		rule, _ := timeoutchain.RuleByID(id)
		if refused[id] != rule.Sections {
			t.Errorf("%s: reads %b, refused changes of %b", id, rule.Sections, refused[id])
		}
	}
}

// merge sets a part, or some of its fields.
func merge(spec map[string]any, part string, value any) {
	fields, isMap := value.(map[string]any)
	old, there := spec[part].(map[string]any)
	if !isMap || !there {
		spec[part] = value
		return
	}
	for name, v := range fields {
		old[name] = v
	}
}
