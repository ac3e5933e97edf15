// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"slices"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/lint"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// The command line reads files as people write them, without the defaults of
// the schema, and must refuse what the API server refuses.
func TestCommandLineRefusesWhatTheCRDRefuses(t *testing.T) {
	s := loadSchema(t)
	seed := fromEnv(t, "PARITY_SEED", 1)
	for i := range fromEnv(t, "PARITY_SPECS", specs) / 5 {
		raw := newGenerator(uint64(seed + i)).object()
		text := yamlOf(raw)
		report := lint.Judge([]lint.Input{lint.Read("random.yaml", strings.NewReader(text))}, lint.Options{})
		if faults := report.Faults(); len(faults) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed+i, faults, text)
		}
		object := &report.Inputs[0].Objects[0]
		var byLint []string
		for _, f := range object.Findings {
			if f.Severity == timeoutchain.Error {
				byLint = append(byLint, f.Rule)
			}
		}
		byCEL := celIDs(celErrors(s, completed(t, s, raw)))
		if byLint = sorted(byLint); !slices.Equal(byCEL, byLint) {
			t.Errorf("seed %d: CEL says %v, the command line %v\n%s", seed+i, byCEL, byLint, text)
		}
		if (object.Verdict() == lint.Reject) != (len(byCEL) > 0) {
			t.Errorf("seed %d: verdict %s, broken are %v", seed+i, object.Verdict(), byCEL)
		}
	}
}
