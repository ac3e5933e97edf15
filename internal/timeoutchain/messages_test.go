// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestMessages holds what a user reads on the broken side of every edge, with
// numbers and fix, against testdata/messages.txt.
func TestMessages(t *testing.T) {
	t.Parallel()
	const golden = "testdata/messages.txt"
	var text strings.Builder
	for _, e := range edges {
		for _, f := range Check(e.chain) {
			if f.Rule == e.rule {
				fmt.Fprintf(&text, "%s: %s\n    %s\n    %s\n    %s\n", e.rule, e.name, f.Problem, f.Consequence, f.Fix)
				if f.Fix.Text != "" && len(f.Fix.Set) > 0 {
					fmt.Fprintf(&text, "    %s\n", Fix{Set: f.Fix.Set})
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", golden, &text)
	}
}

// The first broken edge of a rule shows its usual severity.
func TestUsualSeverity(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range edges {
		if e.want == "" || seen[e.rule] {
			continue
		}
		seen[e.rule] = true
		if rule, _ := RuleByID(e.rule); rule.Severity != e.want {
			t.Errorf("%s is usually a %s, but %q is a %s", e.rule, rule.Severity, e.name, e.want)
		}
	}
}
