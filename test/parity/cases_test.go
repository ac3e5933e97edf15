// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"slices"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/schema"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/test/cases"
)

func TestCases(t *testing.T) {
	s := loadSchema(t)
	all, err := cases.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 31 {
		t.Fatalf("only %d cases", len(all))
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			raw, err := schema.Decode(c.Input)
			if err != nil {
				t.Fatal(err)
			}
			object := completed(t, s, raw)
			findings := admission.Validate(typed(t, object), admission.Options{}).Findings
			byCEL, byGo := celIDs(celErrors(s, object)), goIDs(timeoutchain.Blocking(findings))
			if !slices.Equal(byCEL, byGo) {
				t.Errorf("CEL says %v, Go says %v", byCEL, byGo)
			}
			if refused := len(byCEL) > 0; refused != (c.Verdict == cases.Reject) {
				t.Errorf("refused: %v by %v, want %s: %s", refused, byCEL, c.Verdict, c.Why)
			}
			expected := findings
			if c.Verdict == cases.Reject {
				expected = timeoutchain.Blocking(findings)
			}
			for _, id := range c.Rules {
				if !slices.Contains(goIDs(expected), id) {
					t.Errorf("%s is not among %v", id, goIDs(expected))
				}
			}
		})
	}
}

// Every sample is judged by the CRD as its folder says. What only several
// objects together break is not the CRD's business.
func TestSamples(t *testing.T) {
	s := loadSchema(t)
	for _, folder := range []string{samples.Valid, samples.Warned, samples.Invalid} {
		all, err := samples.Load(folder)
		if err != nil || len(all) < 10 {
			t.Fatalf("%s: %d samples, %v", folder, len(all), err)
		}
		for _, sample := range all {
			judged, others := sample.Judged()
			var want []string
			if rule, known := timeoutchain.RuleByID(sample.Name()); folder == samples.Invalid && known && rule.InTheCRD() {
				want = []string{rule.ID}
			}
			if got := celIDs(celErrors(s, completed(t, s, sampleOf(judged)))); !slices.Equal(got, want) {
				t.Errorf("%s: broken are %v, want %v", sample.Path, got, want)
			}
			for i := range others {
				if got := celIDs(celErrors(s, completed(t, s, sampleOf(&others[i])))); len(got) > 0 {
					t.Errorf("%s: %s breaks %v", sample.Path, others[i].Name, got)
				}
			}
		}
	}
}

func sampleOf(qw *v1alpha1.QueueWorker) map[string]any {
	object := toMap(qw)
	delete(object, "status")
	return object
}
