// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestDocumentIsCurrent(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Error("docs/rules.md is not what the registry and the samples say: run make generate")
	}
}

func TestDocumentIsTheSameEachTime(t *testing.T) {
	first, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, _ := render(); again != first {
			t.Fatal("two runs differ")
		}
	}
}

func TestEveryRuleHasASection(t *testing.T) {
	text, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range timeoutchain.Declarable() {
		if strings.Count(text, "\n## "+rule.ID+"\n") != 1 {
			t.Errorf("not exactly one section for %s", rule.ID)
		}
		if !strings.Contains(text, rule.ID+": ") {
			t.Errorf("no message of %s", rule.ID)
		}
	}
}

func TestEssentialKeepsWhatTheRuleReads(t *testing.T) {
	sample := `# wrong
# consequence
apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata:
  name: a
spec:
  queue:
    connection: redis
  timeouts:
    jobSeconds: 60
    retryAfterSeconds: 30
  template:
    spec: {}
`
	want := "spec:\n  timeouts:\n    jobSeconds: 60\n    retryAfterSeconds: 30\n"
	if have := essential(sample, timeoutchain.SectionTimeouts); have != want {
		t.Errorf("got\n%s\nwant\n%s", have, want)
	}
	two := essential(sample+"---\n"+sample, timeoutchain.SectionQueue)
	part := "metadata:\n  name: a\nspec:\n  queue:\n    connection: redis\n"
	if two != part+"---\n"+part {
		t.Errorf("got\n%s", two)
	}
}
