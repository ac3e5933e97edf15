// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func load(t *testing.T, folder string) []samples.Sample {
	t.Helper()
	all, err := samples.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// judge returns the findings about the file's last QueueWorker, after making
// sure that those before it are clean: they must be there when it arrives.
func judge(t *testing.T, s samples.Sample) []timeoutchain.Finding {
	t.Helper()
	judged, others := s.Judged()
	if judged == nil {
		t.Fatal("no QueueWorker in the file")
	}
	for i := range others {
		expectNone(t, &others[i], others[:i])
	}
	return admission.Validate(judged, admission.Options{Others: others}).Findings
}

func expectNone(t *testing.T, qw *v1alpha1.QueueWorker, others []v1alpha1.QueueWorker) {
	t.Helper()
	for _, f := range admission.Validate(qw, admission.Options{Others: others}).Findings {
		t.Errorf("%s: unexpected %s %s", qw.Name, f.Severity, f.Message())
	}
}

func TestValidSamplesYieldNoFinding(t *testing.T) {
	valid := load(t, samples.Valid)
	if len(valid) < 10 {
		t.Errorf("%d valid samples, want at least 10", len(valid))
	}
	// Together, as `kubectl apply -f config/samples` would create them.
	var present []v1alpha1.QueueWorker
	for _, s := range valid {
		for _, object := range s.Objects {
			qw, ok := object.(*v1alpha1.QueueWorker)
			if !ok {
				continue
			}
			expectNone(t, qw, present)
			if slices.ContainsFunc(present, func(p v1alpha1.QueueWorker) bool { return p.Name == qw.Name }) {
				t.Errorf("%s: another sample has the name %s too", s.Path, qw.Name)
			}
			present = append(present, *qw)
		}
	}
}

func TestInvalidSamplesAreRefusedByTheirRule(t *testing.T) {
	for _, s := range load(t, samples.Invalid) {
		t.Run(s.Name(), func(t *testing.T) { expectOne(t, s, timeoutchain.Error) })
	}
}

func TestWarnedSamplesAreAdmittedWithTheirWarning(t *testing.T) {
	for _, s := range load(t, samples.Warned) {
		t.Run(s.Name(), func(t *testing.T) { expectOne(t, s, timeoutchain.Warning) })
	}
}

func expectOne(t *testing.T, s samples.Sample, severity timeoutchain.Severity) {
	t.Helper()
	findings := judge(t, s)
	if len(findings) != 1 {
		t.Errorf("%d findings, want exactly one", len(findings))
	}
	for _, f := range findings {
		if f.Rule != s.Name() || f.Severity != severity {
			t.Errorf("got %s %s, want %s %s", f.Severity, f.Message(), severity, s.Name())
		}
	}
}

func TestEveryRuleHasItsSample(t *testing.T) {
	invalid, warned := names(load(t, samples.Invalid)), names(load(t, samples.Warned))
	for _, rule := range timeoutchain.Declarable() {
		// A rule whose documentation speaks of both severities shows both.
		if (rule.Severity == timeoutchain.Error || rule.SometimesError) && !slices.Contains(invalid, rule.ID) {
			t.Errorf("rule %s has no file invalid/%s.yaml", rule.ID, rule.ID)
		}
		if (rule.Severity == timeoutchain.Warning || strings.Contains(rule.Doc.When, "warning")) && !slices.Contains(warned, rule.ID) {
			t.Errorf("rule %s has no file warned/%s.yaml", rule.ID, rule.ID)
		}
	}
	for _, name := range append(invalid, warned...) {
		if _, known := timeoutchain.RuleByID(name); !known {
			t.Errorf("the file %s.yaml is named after no rule", name)
		}
	}
}

func names(all []samples.Sample) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.Name())
	}
	return out
}

func TestEverySampleStartsWithTwoLinesOfComment(t *testing.T) {
	for _, folder := range []string{samples.Valid, samples.Invalid, samples.Warned} {
		for _, s := range load(t, folder) {
			lines := strings.SplitN(s.Text, "\n", 4)
			if len(lines) < 4 || !strings.HasPrefix(lines[0], "# ") || !strings.HasPrefix(lines[1], "# ") || strings.HasPrefix(lines[2], "#") {
				t.Errorf("%s does not start with exactly two lines of comment", s.Path)
			}
		}
	}
}

func TestSamplesAreReadStrictly(t *testing.T) {
	text := load(t, samples.Valid)[0].Text
	broken := strings.Replace(text, "jobSeconds", "jobSecond", 1)
	if broken == text {
		t.Fatal("the sample has no jobSeconds")
	}
	if _, err := samples.Decode([]byte(broken)); err == nil {
		t.Error("a misspelt field was accepted")
	}
}
