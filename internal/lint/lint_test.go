// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/internal/lint"
	"github.com/queueworker/operator/internal/terminal"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/test/cases"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares all output for each file of testdata with what a person
// has read and found right.
func TestGolden(t *testing.T) {
	for _, path := range inputs(t) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			report := judge(t, name, readFile(t, path))
			compare(t, filepath.Join("testdata", "golden", name+".txt"), printed(t, report))
			compare(t, filepath.Join("testdata", "golden", name+".json"), asJSON(t, report))
		})
	}
}

func inputs(t testing.TB) []string {
	t.Helper()
	yamls, _ := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	jsons, _ := filepath.Glob(filepath.Join("testdata", "*.json"))
	paths := append(yamls, jsons...)
	if len(paths) == 0 {
		t.Fatal("testdata has no inputs")
	}
	return paths
}

func judge(t testing.TB, name string, data []byte) lint.Report {
	t.Helper()
	return lint.Judge([]lint.Input{lint.Read(name, bytes.NewReader(data))}, lint.Options{Namespace: "default"})
}

// printed is what a person sees: the faults, then the report.
func printed(t testing.TB, report lint.Report) string {
	t.Helper()
	var out strings.Builder
	for _, f := range report.Faults() {
		out.WriteString(f.String() + "\n")
	}
	if err := report.Text(&out, terminal.Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func asJSON(t testing.TB, report lint.Report) string {
	t.Helper()
	var out strings.Builder
	if err := report.JSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(readFile(t, path)); got != want {
		t.Errorf("output differs from %s (run the test with -update and read the difference)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCases(t *testing.T) {
	all, err := cases.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			o := onlyObject(t, judge(t, c.Name, c.Input))
			if string(o.Verdict()) != string(c.Verdict) {
				t.Errorf("verdict is %s, want %s: %s", o.Verdict(), c.Verdict, c.Why)
			}
			severity := timeoutchain.Error
			if c.Verdict == cases.Accept {
				severity = timeoutchain.Warning
			}
			for _, rule := range c.Rules {
				if !slices.Contains(rules(o, severity), rule) {
					t.Errorf("%s is not among the findings of severity %s: %v", rule, severity, rules(o, severity))
				}
			}
		})
	}
}

func onlyObject(t *testing.T, report lint.Report) *lint.Object {
	t.Helper()
	if faults := report.Faults(); len(faults) > 0 {
		t.Fatalf("faults: %v", faults)
	}
	objects := report.Inputs[0].Objects
	if len(objects) != 1 {
		t.Fatalf("%d QueueWorkers, want one", len(objects))
	}
	return &objects[0]
}

func rules(o *lint.Object, s timeoutchain.Severity) []string {
	var ids []string
	for _, f := range o.Findings {
		if f.Severity == s {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}

func TestSamples(t *testing.T) {
	for _, folder := range []string{samples.Valid, samples.Invalid, samples.Warned} {
		all, err := samples.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			t.Run(s.Path, func(t *testing.T) {
				report := judge(t, s.Path, []byte(s.Text))
				if faults := report.Faults(); len(faults) > 0 {
					t.Fatalf("faults: %v", faults)
				}
				objects := report.Inputs[0].Objects
				last := &objects[len(objects)-1]
				errors, warnings := rules(last, timeoutchain.Error), rules(last, timeoutchain.Warning)
				switch folder {
				case samples.Invalid:
					if !slices.Equal(errors, []string{s.Name()}) {
						t.Errorf("refused by %v, want exactly %s", errors, s.Name())
					}
				case samples.Warned:
					if len(errors) > 0 || !slices.Equal(warnings, []string{s.Name()}) {
						t.Errorf("errors %v, warnings %v, want exactly the warning %s", errors, warnings, s.Name())
					}
				default:
					if len(errors)+len(warnings) > 0 {
						t.Errorf("a valid sample has errors %v and warnings %v", errors, warnings)
					}
				}
			})
		}
	}
}

func TestWorkersOfOneQueueAreJudgedAcrossFiles(t *testing.T) {
	documents := bytes.Split(readFile(t, filepath.Join("testdata", "shared.yaml")), []byte("---\n"))
	var inputs []lint.Input
	for _, name := range []int{0, 1, 2} {
		inputs = append(inputs, lint.Read("file", bytes.NewReader(documents[name])))
	}
	report := lint.Judge(inputs, lint.Options{Namespace: "default"})
	for i, want := range [][]string{{"shared-queue-shorter-reservation"}, {"shared-queue-shorter-reservation"}, nil} {
		if got := rules(&report.Inputs[i].Objects[0], timeoutchain.Error); !slices.Equal(got, want) {
			t.Errorf("file %d: errors %v, want %v", i, got, want)
		}
	}
}

func TestGraceCap(t *testing.T) {
	const worker = `{"apiVersion": "queueworker.dev/v1alpha1", "kind": "QueueWorker", "metadata": {"name": "a"}, "spec": {
		"queue": {"connection": "redis"}, "timeouts": {"httpSeconds": 5, "jobSeconds": 30, "retryAfterSeconds": 90},
		"template": {"spec": {"containers": [{"name": "worker"}]}}}}`
	for limit, want := range map[int64]int{99: 1, 100: 0} {
		report := lint.Judge([]lint.Input{lint.Read("a", strings.NewReader(worker))}, lint.Options{GraceCap: limit})
		if got := report.Counts().Warnings; got != want {
			t.Errorf("cap %d: %d warnings, want %d", limit, got, want)
		}
	}
}

// The JSON is a contract: its keys are listed here, and only set may be left out.
func TestJSONKeys(t *testing.T) {
	out := asJSON(t, judge(t, "findings.yaml", readFile(t, filepath.Join("testdata", "findings.yaml"))))
	var report map[string][]map[string]any
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report) != 1 || len(report["files"]) != 3 {
		t.Fatalf("want one key, files, with one entry per QueueWorker; got %s", out)
	}
	for _, object := range report["files"] {
		wantKeys(t, object, "file", "findings", "object", "verdict")
		for _, f := range object["findings"].([]any) {
			finding := f.(map[string]any)
			delete(finding, "set")
			wantKeys(t, finding, "field", "fix", "message", "rule", "severity")
		}
	}
}

func wantKeys(t *testing.T, object map[string]any, want ...string) {
	t.Helper()
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		t.Errorf("keys are %v, want %v", keys, want)
	}
}
