// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the outputs in docs/cli.md anew")

// binary is the program as users get it.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kubectl-queueworker")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "kubectl-queueworker")
	build := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// outcome is what a run of the program left behind.
type outcome struct {
	stdout, stderr string
	code           int
}

func runIn(t *testing.T, dir, stdin string, args ...string) outcome {
	t.Helper()
	command := exec.Command(binary, args...)
	command.Dir = dir
	command.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

const (
	clean = `apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata: {name: clean, namespace: shop}
spec:
  queue: {connection: redis}
  timeouts: {httpSeconds: 20, jobSeconds: 30, retryAfterSeconds: 90}
  template: {spec: {containers: [{name: worker}]}}
`
	secret = "apiVersion: v1\nkind: Secret\n"
)

var (
	risky   = strings.NewReplacer("httpSeconds: 20, ", "", "clean", "risky").Replace(clean)
	refused = strings.NewReplacer("jobSeconds: 30", "jobSeconds: 95", "clean", "refused").Replace(clean)
	misread = strings.NewReplacer("jobSeconds: 30", "jobSeconds: \"30\"", "clean", "misread").Replace(clean)
)

// folder holds one file of each kind.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clean.yaml": clean, "risky.yaml": risky, "refused.yaml": refused, "misread.yaml": misread,
		"secret.yaml": secret, "empty.yaml": "", "broken.yaml": "a: [\n", "two.yaml": clean + "---\n" + risky,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExitCodes(t *testing.T) {
	dir := folder(t)
	for _, tc := range []struct {
		args           string
		stdin          string
		code           int
		stdout, stderr string // parts of the outputs
	}{
		{"lint clean.yaml", "", 0, "1 QueueWorker, 1 accepted, 0 refused, 0 warnings, 0 other objects passed over\n", ""},
		{"lint secret.yaml", "", 0, "0 QueueWorkers, 0 accepted, 0 refused, 0 warnings, 1 other object passed over\n", ""},
		{"lint risky.yaml", "", 0, "1 warning", ""},
		{"lint --strict risky.yaml", "", 1, "1 warning", ""},
		{"lint --strict clean.yaml", "", 0, "0 warnings", ""},
		{"lint refused.yaml", "", 1, "job-not-below-retry-after", ""},
		{"lint clean.yaml refused.yaml risky.yaml secret.yaml", "", 1, "3 QueueWorkers, 2 accepted, 1 refused, 1 warning, 1 other object passed over\n", ""},
		{"lint misread.yaml", "", 2, "not readable", "misread.yaml:6: spec.timeouts.jobSeconds: is the text \"30\": expected a whole number\n"},
		{"lint broken.yaml", "", 2, "1 fault in the input", "broken.yaml:1: is not YAML: "},
		{"lint empty.yaml", "", 2, "", "empty.yaml: holds no object: expected YAML or JSON with QueueWorkers\n"},
		{"lint folder", "", 2, "", "folder: is a directory: name its files, as in folder/*.yaml\n"},
		{"lint missing.yaml", "", 2, "", "missing.yaml: does not exist\n"},
		{"lint missing.yaml broken.yaml misread.yaml refused.yaml", "", 2, "2 QueueWorkers, 0 accepted, 1 refused", "missing.yaml: does not exist\nbroken.yaml:1: "},
		{"lint -", clean, 0, "<stdin>\n  shop/clean accepted\n", ""},
		{"lint -", refused, 1, "shop/refused refused", ""},
		{"lint -", "", 2, "", "<stdin>: holds no object"},
		{"lint - clean.yaml", refused, 1, "2 QueueWorkers, 1 accepted, 1 refused", ""},
		{"lint - -", clean, 2, "", "Error: - is given twice"},
		{"lint -o json refused.yaml", "", 1, `"verdict": "reject"`, ""},
		{"lint -o json misread.yaml missing.yaml", "", 2, `"rule": "unreadable"`, "missing.yaml: does not exist\n"},
		{"lint -n staging -o json -", strings.Replace(clean, ", namespace: shop", "", 1), 0, `"object": "staging/clean"`, ""},
		{"lint --grace-cap 99 clean.yaml", "", 0, "grace-over-platform-cap", ""},
		{"lint --grace-cap 0 clean.yaml", "", 2, "", "Error: --grace-cap is 0: expected 1 to 31536000 seconds\n"},
		{"lint -o yaml clean.yaml", "", 2, "", "Error: --output is \"yaml\": expected text or json\n"},
		{"lint", "", 2, "", "Error: requires at least 1 arg"},
		{"lint --fast clean.yaml", "", 2, "", "Error: unknown flag: --fast\n"},
		{"lintt clean.yaml", "", 2, "", "Error: unknown command \"lintt\" for \"kubectl queueworker\""},
		{"preflight --php nowhere/php clean.yaml", "", 1, "php-missing", ""},
		{"preflight --php nowhere/php two.yaml", "", 1, "2 QueueWorkers, 0 accepted, 2 refused", ""},
		{"preflight --php nowhere/php -o json clean.yaml", "", 1, `"rule": "php-missing"`, ""},
		{"preflight --php nowhere/php --name clean two.yaml", "", 1, "1 QueueWorker, 0 accepted, 1 refused", ""},
		{"preflight --name nobody two.yaml", "", 2, "", "Error: two.yaml holds no QueueWorker named nobody\n"},
		{"preflight secret.yaml", "", 2, "", "Error: secret.yaml holds no QueueWorker\n"},
		{"preflight --app nowhere clean.yaml", "", 2, "", "Error: --app is \"nowhere\": there is no such folder\n"},
		{"preflight -o yaml clean.yaml", "", 2, "", "Error: --output is \"yaml\": expected text or json\n"},
		{"preflight misread.yaml", "", 2, "not readable", "misread.yaml:6: spec.timeouts.jobSeconds"},
		{"preflight clean.yaml two.yaml", "", 2, "", "Error: accepts 1 arg(s), received 2"},
		{"timeline clean.yaml", "", 0, "shop/clean  Laravel on Redis, 20<30<90<100\n", ""},
		{"timeline refused.yaml", "", 0, "✗ job > reservation: 5 s too long\n", ""},
		{"timeline two.yaml", "", 0, "shop/risky", ""},
		{"timeline --name risky two.yaml", "", 0, "shop/risky", ""},
		{"timeline --name shop/clean two.yaml -o svg", "", 0, "<svg ", ""},
		{"timeline two.yaml -o svg", "", 2, "", "Error: a picture shows one QueueWorker, found 2: name one with --name shop/clean\n"},
		{"timeline --name nobody two.yaml", "", 2, "", "Error: two.yaml holds no QueueWorker named nobody\n"},
		{"timeline secret.yaml", "", 2, "", "Error: secret.yaml holds no QueueWorker\n"},
		{"timeline misread.yaml", "", 2, "", "misread.yaml:6: spec.timeouts.jobSeconds"},
		{"timeline missing.yaml", "", 2, "", "missing.yaml: does not exist\n"},
		{"timeline -", refused, 0, "shop/refused", ""},
		{"timeline -o png clean.yaml", "", 2, "", "Error: --output is \"png\": expected text or svg\n"},
		{"timeline --grace-cap -3 clean.yaml", "", 2, "", "Error: --grace-cap is -3"},
		{"timeline clean.yaml risky.yaml", "", 2, "", "Error: accepts 1 arg(s), received 2\n"},
		{"version", "", 0, "kubectl-queueworker v1.2.3\n", ""},
		{"version now", "", 2, "", "Error: "},
		{"", "", 0, "Usage:", ""},
	} {
		t.Run(tc.args, func(t *testing.T) {
			got := runIn(t, dir, tc.stdin, strings.Fields(tc.args)...)
			if got.code != tc.code || !strings.Contains(got.stdout, tc.stdout) || !strings.Contains(got.stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nwant in it: %s\nstderr:\n%s\nwant in it: %s",
					got.code, tc.code, got.stdout, tc.stdout, got.stderr, tc.stderr)
			}
			if tc.stderr == "" && got.stderr != "" {
				t.Errorf("unexpected on stderr: %s", got.stderr)
			}
			if strings.Contains(got.stdout+got.stderr, "\x1b") {
				t.Error("colour without a terminal")
			}
		})
	}
}

// TestOnlyTheNamedIsDrawn guards against a name that is ignored.
func TestOnlyTheNamedIsDrawn(t *testing.T) {
	got := runIn(t, folder(t), "", "timeline", "--name", "risky", "two.yaml")
	if strings.Contains(got.stdout, "shop/clean") {
		t.Errorf("another QueueWorker is drawn:\n%s", got.stdout)
	}
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	dir := folder(t)
	for _, args := range [][]string{{"lint", "clean.yaml"}, {"lint", "-o", "json", "clean.yaml"}, {"timeline", "clean.yaml"}, {"version"}} {
		command := exec.Command(binary, args...)
		command.Dir, command.Stdout = dir, full
		if err := command.Run(); err == nil || command.ProcessState.ExitCode() != exitUnreadable {
			t.Errorf("%v: exit code %d on a full disk, want %d", args, command.ProcessState.ExitCode(), exitUnreadable)
		}
	}
}

// TestHelp runs every example of every help text.
func TestHelp(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"payments", "mails"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(strings.Replace(clean, "clean", name, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "shop"), 0o755); err != nil {
		t.Fatal(err)
	}
	root := newCommand()
	for _, command := range root.Commands() {
		if command.Hidden {
			continue
		}
		code := exitClean
		if command.Name() == "preflight" { // no application is there, and perhaps no PHP
			code = exitFindings
		}
		help := runIn(t, dir, "", command.Name(), "--help")
		if help.code != 0 || command.Short == "" || command.Example == "" || !strings.Contains(help.stdout, "kubectl queueworker "+command.Name()) {
			t.Errorf("%s: the help lacks a summary, an example or the way to call it:\n%s", command.Name(), help.stdout)
		}
		for _, line := range strings.Split(command.Example, "\n") {
			call, stdin := strings.TrimSpace(line), ""
			if before, after, piped := strings.Cut(call, " | "); piped {
				_, call, stdin = before, after, strings.Replace(clean, "clean", "payments", 1)
			}
			call, _, _ = strings.Cut(call, " > ")
			args, ours := strings.CutPrefix(call, "kubectl queueworker ")
			if !ours {
				t.Errorf("%s: the example %q does not call this program", command.Name(), line)
				continue
			}
			if command.Name() == "fence" { // no database is there
				if got := runIn(t, dir, stdin, strings.Fields(args)...); !strings.Contains(got.stderr, "which database?") {
					t.Errorf("%s: the example %q says:\n%s", command.Name(), line, got.stderr)
				}
				continue
			}
			if got := runIn(t, dir, stdin, strings.Fields(args)...); got.code != code {
				t.Errorf("%s: the example %q ends with %d:\n%s", command.Name(), line, got.code, got.stderr)
			}
		}
	}
}
