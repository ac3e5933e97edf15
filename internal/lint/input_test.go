// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/lint"
)

const worker = `apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata: {name: payments}
spec:
  queue: {connection: redis}
  timeouts: {httpSeconds: 20, jobSeconds: 30, retryAfterSeconds: 90}
  template: {spec: {containers: [{name: worker}]}}
`

// TestUnreadableInput has one fault each, on one line, and no QueueWorker.
func TestUnreadableInput(t *testing.T) {
	for _, tc := range []struct{ name, input, want string }{
		{"empty", "", "file: holds no object: expected YAML or JSON with QueueWorkers"},
		{"only comments", "# a\n\n  # b\n", "file: holds no object"},
		{"only separators", "---\n--- \n---\r\n", "file: holds no object"},
		{"only null", "~\n", "file: holds no object"},
		{"an empty list", "apiVersion: v1\nkind: List\nitems: []\n", "file: holds no object"},
		{"a zero byte", "a: 1\nb: \x00\n", "file: is not text: line 2 holds a zero byte"},
		{"not UTF-8", "a: 1\n\nb: caf\xe9\n", "file: is not text: line 3 is not UTF-8"},
		{"UTF-16", "\xff\xfea\x00", "file: is UTF-16: save it as UTF-8"},
		{"text", "hello\n", "file:1: is not a Kubernetes object: expected a mapping with apiVersion and kind, found the text \"hello\""},
		{"a list", "\n\n- a\n", "file:3: is not a Kubernetes object: expected a mapping with apiVersion and kind, found a list"},
		{"a number", "3\n", "found the number 3"},
		{"broken YAML", "a: 1\nb: [\n", "file:2: is not YAML: did not find expected node content"},
		{"a tab", "a:\n\tb: 1\n", "file:2: is not YAML: found character that cannot start any token"},
		{"an unknown anchor", "a: *b\n", "is not YAML: unknown anchor 'b' referenced"},
		{"broken JSON", "{\"a\": 1,\n \"b\": ]\n}", "file:2: is not JSON: invalid character ']'"},
		{"cut JSON", "{\"a\": [1,\n 2", "file:2: is not JSON: unexpected end of the input"},
		{"text behind JSON", "{\"a\": 1}\nx", "file:2: is not JSON: invalid character 'x'"},
		{"a separator with text", "a: 1\n--- b\n", "file:2: a document separator must stand alone on its line, found \"--- b\""},
		{"a chart", "{{- if .Values.on }}\na: 1\n", "line 1 holds the placeholder {{: templates must be rendered first, as in: helm template . | kubectl queueworker lint -"},
		{"a chart's value", "a: 1\nb: {{ .Values.b }}\n", "file:2: a key must be a word, found a mapping or a list; line 2 holds the placeholder {{: templates must be rendered first"},
		{"a shell's value", "a: {b: ${B}}\n", "line 1 holds the placeholder ${: templates must be rendered first"},
		{"deep YAML", "a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "file:1: nested deeper than 200 levels"},
		{"very deep YAML", "a: " + strings.Repeat("[", 100_000), "file:1: is not YAML: exceeded max depth of 10000"},
		{"deep JSON", `{"a": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", "is not JSON: nested deeper than 200 levels"},
		{"an anchor that contains itself", "a: 1\nb: &b [*b]\n", "file:2: anchor b contains itself"},
		{"items that are no list", "apiVersion: v1\nkind: List\nitems: {a: 1}\n", "file:3: items: expected a list, found a mapping"},
		{"two kinds", "apiVersion: v1\nkind: QueueWorker\nkind: Secret\n", "file:3: kind: is set twice, first on line 2: expected one value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := lint.Read("file", strings.NewReader(tc.input))
			if len(in.Faults) == 0 {
				t.Fatal("no fault")
			}
			got := in.Faults[0].String()
			if !strings.Contains(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if strings.Contains(got, "\n") || len(got) > 400 {
				t.Errorf("not one short line: %q", got)
			}
			if len(in.Objects) > 0 {
				t.Errorf("%d QueueWorkers, want none", len(in.Objects))
			}
		})
	}
}

// TestHostileInput would take gigabytes, or the whole stack, if it were expanded.
func TestHostileInput(t *testing.T) {
	if testing.Short() {
		t.Skip("parses large inputs")
	}
	var bomb, ladder strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	ladder.WriteString("- &a0 [x]\n")
	for i := 1; i < 100_000; i++ {
		fmt.Fprintf(&ladder, "- &a%d [*a%d]\n", i, i-1)
	}
	long := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", 10_000), ",") + "]\n"
	for _, tc := range []struct{ name, input, want string }{
		{"a bomb of lists", bomb.String(), "file:1: is larger than 32 MiB with its aliases written out"},
		{"a bomb of one text", long, "file:1: is larger than 32 MiB with its aliases written out"},
		{"a ladder of anchors", ladder.String(), "nested deeper than 200 levels"},
		{"too many values", "a: [" + strings.Repeat("1,", 3_000_000) + "1]", "may hold more than 2000000 values in one document: split it"},
		{"too many values in JSON", `{"a": [` + strings.Repeat("1,", 3_000_000) + "1]}", "may hold more than 2000000 values in one document: split it"},
		{"too many keys without values", strings.Repeat("? ", 3_000_000), "may hold more than 2000000 values in one document: split it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			in := lint.Read("file", strings.NewReader(tc.input))
			runtime.ReadMemStats(&after)
			if len(in.Faults) != 1 || !strings.Contains(in.Faults[0].String(), tc.want) {
				t.Errorf("faults are %v, want %s", in.Faults, tc.want)
			}
			if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 512 {
				t.Errorf("allocated %d MiB", spent)
			}
		})
	}
}

func TestLargeInputIsNotRead(t *testing.T) {
	endless := &counting{}
	in := lint.Read("file", endless)
	if len(in.Faults) != 1 || in.Faults[0].String() != "file: is larger than 16 MiB: split it" {
		t.Errorf("faults are %v", in.Faults)
	}
	if endless.read > 17<<20 {
		t.Errorf("read %d bytes", endless.read)
	}
}

// counting is a reader without an end.
type counting struct{ read int }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	c.read += len(p)
	return len(p), nil
}

func TestReaderThatFails(t *testing.T) {
	in := lint.Read("file", io.MultiReader(strings.NewReader(worker), failing{}))
	if len(in.Faults) != 1 || in.Faults[0].String() != "file: cannot be read: disk on fire" {
		t.Errorf("faults are %v", in.Faults)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("disk\non fire") }

// TestReadableInput is read as if it were plain.
func TestReadableInput(t *testing.T) {
	for _, tc := range []struct {
		name, input         string
		workers, passedOver int
	}{
		{"plain", worker, 1, 0},
		{"no line end at the end", strings.TrimSuffix(worker, "\n"), 1, 0},
		{"Windows line ends", strings.ReplaceAll(worker+"---\n"+worker, "\n", "\r\n"), 2, 0},
		{"a byte order mark", "\ufeff" + worker, 1, 0},
		{"a byte order mark before JSON", "\ufeff{\"apiVersion\": \"v1\",\n\t\"kind\": \"Secret\", \"a\": \"\\ud83d\\ude00\"}", 0, 1},
		{"a directive", "%YAML 1.1\n---\n" + worker, 1, 0},
		{"end marks", worker + "...\n" + worker + "... \n", 2, 0},
		{"comments at separators", "--- # one\n" + worker + "--- # two\n# three\n" + worker + "---\n# nothing\n", 2, 0},
		{"separators in a block", worker + "---\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    ---\n    b\n", 1, 1},
		{"other kinds", worker + "---\napiVersion: v1\nkind: Secret\n---\nreplicas: 3\n", 1, 2},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(worker, "\n"), "\n", "\n  ") + "\n- {apiVersion: v1, kind: Secret}\n", 1, 1},
		{"our list", "apiVersion: queueworker.dev/v1alpha1\nkind: QueueWorkerList\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(worker, "\n"), "\n", "\n  ") + "\n", 1, 0},
		{"items by alias", "apiVersion: v1\nkind: List\nx: &x\n- {apiVersion: v1, kind: Secret}\nitems: *x\n", 0, 1},
		{"two merges", strings.Replace(worker, "timeouts: {", "timeouts: {<<: {httpAttempts: 1}, <<: {httpConnectSeconds: 1}, ", 1), 1, 0},
		{"flow style", "{apiVersion: v1, kind: Secret}\n", 0, 1},
		{"a name left to the server", strings.Replace(worker, "name: payments", "generateName: payments-", 1), 1, 0},
		{"a placeholder in an argument", strings.Replace(worker, "{name: worker}", `{name: worker, env: [{name: A, value: "{{ b }} ${C}"}]}`, 1), 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := lint.Read("file", strings.NewReader(tc.input))
			for _, f := range (lint.Report{Inputs: []lint.Input{in}}).Faults() {
				t.Errorf("fault: %s", f)
			}
			if len(in.Objects) != tc.workers || in.PassedOver != tc.passedOver {
				t.Errorf("%d QueueWorkers and %d passed over, want %d and %d", len(in.Objects), in.PassedOver, tc.workers, tc.passedOver)
			}
		})
	}
}

// TestSchemaFaults says what was found and what was expected.
func TestSchemaFaults(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{"a misspelt field", "jobSeconds: 30", "jobSeconds: 30, jobSecond: 3", "file:6: spec.timeouts.jobSecond: unknown field: did you mean jobSeconds?"},
		{"an unknown field", "spec:", "spec:\n  drain: {hurry: 1}", "file:5: spec.drain.hurry: unknown field: expected one of beforeStop, graceOutlasts"},
		{"a field of another place", "metadata:", "timeouts: {}\nmetadata:", "file:3: timeouts: unknown field: expected one of apiVersion, kind, metadata, spec, status"},
		{"a misspelt field of the pod", "{name: worker}", "{name: worker, imge: a}", "file:7: spec.template.spec.containers[0].imge: unknown field: did you mean image?"},
		{"text for a number", "jobSeconds: 30", "jobSeconds: \"30\"", "file:6: spec.timeouts.jobSeconds: is the text \"30\": expected a whole number"},
		{"a fraction", "jobSeconds: 30", "jobSeconds: 30.5", "file:6: spec.timeouts.jobSeconds: is the number 30.5: expected a whole number"},
		{"yes", "jobSeconds: 30", "jobSeconds: yes", "file:6: spec.timeouts.jobSeconds: is the word true: expected a whole number"},
		{"a list for a number", "jobSeconds: 30", "jobSeconds: [30]", "file:6: spec.timeouts.jobSeconds: is a list: expected a whole number"},
		{"a number for a list", "queue: {", "queue: {names: 3, ", "file:5: spec.queue.names: is the number 3: expected a list"},
		{"a number for text", "connection: redis", "connection: 3", "file:5: spec.queue.connection: is the number 3: expected text"},
		{"another word", "spec:", "spec:\n  runtime: laravel", "file:5: spec.runtime: is the text \"laravel\": expected Laravel, Horizon, Generic"},
		{"too large", "jobSeconds: 30", "jobSeconds: 31536001", "file:6: spec.timeouts.jobSeconds: is the number 31536001: expected at most 31536000"},
		{"too large for the type", "spec:", "spec:\n  replicas: 3000000000", "file:5: spec.replicas: is the number 3000000000: expected a whole number of at most 2147483647"},
		{"too small", "jobSeconds: 30", "jobSeconds: -1", "file:6: spec.timeouts.jobSeconds: is the number -1: expected at least 0"},
		{"missing", "jobSeconds: 30, ", "", "file:6: spec.timeouts.jobSeconds: is missing: a value is required"},
		{"null is missing", "jobSeconds: 30", "jobSeconds: ", "file:6: spec.timeouts.jobSeconds: is missing: a value is required"},
		{"a pattern", "queue: {", "queue: {names: [a b], ", "file:5: spec.queue.names[0]: is the text \"a b\": should match"},
		{"twice in a list", "[{name: worker}]", "[{name: worker}, {name: worker}]", "file:7: spec.template.spec.containers[1]: is there twice: {\"name\":\"worker\"}"},
		{"a key twice", "jobSeconds: 30", "jobSeconds: 30, jobSeconds: 30", "file:6: spec.timeouts.jobSeconds: is set twice, first on line 6: expected one value"},
		{"no name", "name: payments", "", "file:3: metadata.name: is missing: name or generateName is required"},
		{"a bad name", "name: payments", "name: Pay_ments", "file:3: metadata.name: is the text \"Pay_ments\": a lowercase RFC 1123 subdomain must consist of"},
		{"a long name", "name: payments", "name: " + strings.Repeat("a", 64), "file:1: metadata.name has 64 characters, at most 63 are allowed"},
		{"two budgets", "spec:", "spec:\n  podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}", "file:5: spec.podDisruptionBudget: is a mapping: exactly one of the fields in [maxUnavailable minAvailable] must be set"},
		{"a chart's value", "jobSeconds: 30", "jobSeconds: \"{{ .Values.job }}\"", "expected a whole number; it holds a placeholder: templates must be rendered first"},
		{"metadata that is no mapping", "{name: payments}", "[]", "file:3: metadata: is a list: expected a mapping"},
		{"no spec", worker[strings.Index(worker, "spec:"):], "spec:\n", "file:4: spec: is missing: a value is required"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			input := strings.Replace(worker, tc.old, tc.new, 1)
			if input == worker {
				t.Fatal("the input was not changed")
			}
			report := judge(t, "file", []byte(input))
			faults := report.Faults()
			if len(faults) != 1 || !strings.Contains(faults[0].String(), tc.want) {
				t.Errorf("faults are %v\nwant     %s", faults, tc.want)
			}
			if c := report.Counts(); c.Unreadable != 1 || c.Accepted+c.Refused != 0 {
				t.Errorf("counts are %+v, want one unreadable QueueWorker", c)
			}
		})
	}
}

// A fault hides neither the other faults of its file nor the other objects.
func TestEveryFaultIsReported(t *testing.T) {
	broken := strings.NewReplacer("jobSeconds: 30", "jobSeconds: \"30\"", "connection: redis", "conection: redis").Replace(worker)
	input := broken + "---\na: [\n---\n" + strings.Replace(worker, "jobSeconds: 30", "jobSeconds: 95", 1) + "---\nkind: QueueWorker\n"
	report := judge(t, "file", []byte(input))
	var got []string
	for _, f := range report.Faults() {
		got = append(got, fmt.Sprintf("%d %s", f.Line, f.Field))
	}
	want := "[5 spec.queue.conection 5 spec.queue.connection 6 spec.timeouts.jobSeconds 9  19 apiVersion]"
	if fmt.Sprint(got) != want {
		t.Errorf("faults at %v, want %s", got, want)
	}
	if c := report.Counts(); c.Refused != 1 || c.Unreadable != 1 || c.Workers != 2 {
		t.Errorf("counts are %+v", c)
	}
}

// No file can steer the terminal, and no name is garbled in JSON.
func TestNamesArePrintedSafely(t *testing.T) {
	report := judge(t, "<stdin>", []byte(strings.Replace(worker, "name: payments", `name: "a\e[31m<b>\nc"`, 1)))
	if text := printed(t, report); strings.Contains(text, "\x1b") || !strings.Contains(text, "default/a?[31m<b>?c not readable\n") {
		t.Errorf("the name is printed as\n%q", text)
	}
	if out := asJSON(t, report); !strings.Contains(out, `"file": "<stdin>"`) || !strings.Contains(out, `"object": "default/a\u001b[31m<b>\nc"`) {
		t.Errorf("the names are not as they were: %s", out)
	}
}

func FuzzLint(f *testing.F) {
	for _, path := range inputs(f) {
		f.Add(readFile(f, path))
	}
	f.Add([]byte(worker))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("\ufeff---\r\n{\"apiVersion\": \"v1\"}\r\n...\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		report := judge(t, "file", data)
		lines := bytes.Count(data, []byte("\n")) + 1
		checkLines(t, report, lines)
		if asJSON(t, report) != asJSON(t, judge(t, "file", data)) {
			t.Error("two runs differ")
		}
		if text := printed(t, report); strings.ContainsAny(text, "\x1b\x00\r") {
			t.Errorf("control characters reach the terminal: %q", text)
		}
		if c := report.Counts(); c.Workers != c.Accepted+c.Refused+c.Unreadable || c.Workers+c.PassedOver+c.Faults == 0 {
			t.Errorf("counts do not add up: %+v", c)
		}
	})
}

func checkLines(t *testing.T, report lint.Report, lines int) {
	t.Helper()
	for _, fault := range report.Faults() {
		if fault.Line < 0 || fault.Line > lines+1 || fault.Message == "" || strings.Contains(fault.Message, "\n") {
			t.Errorf("fault %+v in a file of %d lines", fault, lines)
		}
	}
	for _, in := range report.Inputs {
		for _, o := range in.Objects {
			for _, finding := range o.Findings {
				if finding.Line < 1 || finding.Line > lines { // an alias may lead to a line before the object
					t.Errorf("%s shows line %d in a file of %d lines", finding.Rule, finding.Line, lines)
				}
			}
		}
	}
}
