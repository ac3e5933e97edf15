// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

func TestDocumentIsCurrent(t *testing.T) {
	have, err := os.ReadFile("../../docs/preflight.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != render() {
		t.Error("docs/preflight.md is not what the rules say: run make generate")
	}
}

func TestEveryRuleIsExplained(t *testing.T) {
	text := render()
	if len(named()) < 30 {
		t.Fatalf("only %d rules", len(named()))
	}
	for _, rule := range named() {
		if strings.Count(text, "\n### "+rule.ID+"\n") != 1 {
			t.Errorf("not exactly one section for %s", rule.ID)
		}
		for what, part := range map[string]string{"When": rule.Doc.When, "Why": rule.Doc.Why, "Remedy": rule.Doc.Remedy} {
			if part == "" {
				t.Errorf("%s has no %s", rule.ID, what)
			}
		}
	}
}
