// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

var written = []string{"README.md", "docs/queueworker.md"}

// TestExamples judges every marked example, and compares the refusal shown
// below one with what admission says.
func TestExamples(t *testing.T) {
	for _, document := range written {
		var last []timeoutchain.Finding
		judged := 0
		for _, b := range blocksOf(t, document) {
			kind, detail, _ := strings.Cut(b.mark, ": ")
			outcome, _, _ := strings.Cut(detail, ",")
			switch {
			case kind == "example" && outcome == "clean":
				last = findings(t, b.text)
				if len(last) > 0 {
					t.Errorf("%s: an example that is said to be clean has %s", document, last[0].Message())
				}
				judged++
			case kind == "example":
				last = findings(t, b.text)
				if rule := strings.TrimPrefix(outcome, "refused "); len(last) != 1 || last[0].Rule != rule {
					t.Errorf("%s: want exactly %s, got %v", document, rule, last)
				}
				judged++
			case kind == "output" && outcome == "refusal":
				if len(last) != 1 || b.text != last[0].Message()+"\n" {
					t.Errorf("%s shows\n%swhile admission says\n%v", document, b.text, last)
				}
				judged++
			case strings.Contains(b.text, "kind: QueueWorker\nmetadata"):
				t.Errorf("%s: an example is not marked, so nothing judges it:\n%s", document, b.text)
			}
		}
		if judged == 0 {
			t.Errorf("%s has no marked example", document)
		}
	}
}

func findings(t *testing.T, text string) []timeoutchain.Finding {
	t.Helper()
	return admission.Validate(decode(t, text), admission.Options{}).Findings
}

func decode(t *testing.T, text string) *v1alpha1.QueueWorker {
	t.Helper()
	objects, err := samples.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	qw, _ := samples.Sample{Objects: objects}.Judged()
	if qw == nil {
		t.Fatalf("no QueueWorker in\n%s", text)
	}
	return qw
}

// TestREADMEExampleIsTheSample keeps the first thing that people copy the same
// as the file that the demo applies.
func TestREADMEExampleIsTheSample(t *testing.T) {
	example := blockWith(t, "README.md", "example: clean, config/samples/payments.yaml").text
	var sample strings.Builder
	for line := range strings.Lines(read(t, "config/samples/payments.yaml")) {
		if !strings.HasPrefix(line, "#") {
			sample.WriteString(line)
		}
	}
	if example != sample.String() {
		t.Error("the example of README.md is not config/samples/payments.yaml")
	}
	if lines := strings.Count(example, "\n"); lines != 25 {
		t.Errorf("the example has %d lines, want 25", lines)
	}
}

// TestREADMERefusal composes what kubectl prints; the demo compares the same
// text with what a real API server answers.
func TestREADMERefusal(t *testing.T) {
	const sample = "config/samples/invalid/job-not-below-retry-after.yaml"
	qw := decode(t, read(t, sample))
	found := admission.Validate(qw, admission.Options{}).Findings
	if len(found) != 1 {
		t.Fatalf("%d findings, want one", len(found))
	}
	want := fmt.Sprintf("The QueueWorker %q is invalid: %s: Invalid value: %s\n",
		qw.Name, chainsource.PathOf(qw, found[0]), found[0].Message())
	if have := blockWith(t, "README.md", "output: kubectl apply -f "+sample).text; have != want {
		t.Errorf("README.md shows\n%swhile the answer is\n%s", have, want)
	}
}

// TestColumns compares the columns that the documents print with what the
// status of that example says.
func TestColumns(t *testing.T) {
	qw := decode(t, blockWith(t, "README.md", "example: clean").text)
	chain := chainsource.FromQueueWorker(qw, chainsource.Options{})
	row := []string{qw.Name, "3/3", string(v1alpha1.StateBusy), "12", "3", "0", chain.Summary(), qw.Spec.QueuesText()}
	for _, document := range written {
		lines := strings.Split(blockWith(t, document, "columns").text, "\n")
		header, shown := strings.Fields(lines[1]), strings.Fields(lines[2])
		if strings.Join(header, " ") != "NAME READY STATE DEPTH OLDEST FAILED CHAIN QUEUES AGE" {
			t.Errorf("%s prints the columns %v", document, header)
		}
		if strings.Join(shown[:len(row)], " ") != strings.Join(row, " ") {
			t.Errorf("%s prints %v, want %v", document, shown, row)
		}
	}
}
