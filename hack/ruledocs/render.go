// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

//go:embed intro.md
var intro string

// render is the whole manual of the rules.
func render() (string, error) {
	examples, err := loadExamples()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("## All rules\n\nIn the order in which they are reported.\n\n| rule | severity | when |\n|---|---|---|\n")
	for _, rule := range timeoutchain.Declarable() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", rule.ID, rule.ID, severity(rule, examples[rule.ID]), firstSentence(rule.Doc.When))
	}
	for _, rule := range timeoutchain.Declarable() {
		if len(examples[rule.ID]) == 0 {
			return "", fmt.Errorf("rule %s has no sample", rule.ID)
		}
		section(&b, rule, examples[rule.ID])
	}
	return b.String(), nil
}

func severity(rule timeoutchain.Rule, examples []example) string {
	if len(examples) > 1 {
		return "error or warning"
	}
	return string(rule.Severity)
}

func section(b *strings.Builder, rule timeoutchain.Rule, examples []example) {
	fmt.Fprintf(b, "\n## %s\n\n**Severity:** %s.", rule.ID, severity(rule, examples))
	if rule.CrossObject {
		b.WriteString(" Needs to see other QueueWorkers, so the CRD's own rules cannot decide it.")
	}
	if rule.NotInTheCRD {
		b.WriteString(" The CRD's own rules cannot decide it; the webhook and the command line do.")
	}
	fmt.Fprintf(b, "\n\n**When:** %s\n\n**Why:** %s\n\n**What to do:** %s.\n", rule.Doc.When, rule.Doc.Why, capital(rule.Doc.Remedy))
	for _, e := range examples {
		fmt.Fprintf(b, "\n%s, from [%s](../config/samples/%s):\n\n```yaml\n%s```\n\nprints at `%s`:\n\n```text\n%s\n```\n",
			e.outcome, e.path, e.path, essential(e.text, rule.Sections), e.field, e.message)
	}
}

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// example is a sample that breaks a rule, and what is said about it.
type example struct {
	outcome, path, text, field, message string
}

// loadExamples lists, for each rule, the sample that is refused and the one
// that is admitted with a warning.
func loadExamples() (map[string][]example, error) {
	examples := map[string][]example{}
	for _, kind := range []struct{ folder, outcome string }{{samples.Invalid, "Refused"}, {samples.Warned, "Admitted with a warning"}} {
		all, err := samples.Load(kind.folder)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			judged, others := s.Judged()
			result := admission.Validate(judged, admission.Options{Others: others})
			if len(result.Findings) != 1 {
				return nil, fmt.Errorf("%s has %d findings, want one", s.Path, len(result.Findings))
			}
			f := result.Findings[0]
			examples[s.Name()] = append(examples[s.Name()], example{
				outcome: kind.outcome, path: s.Path, text: s.Text,
				field: chainsource.PathOf(judged, f).String(), message: f.Message(),
			})
		}
	}
	return examples, nil
}
