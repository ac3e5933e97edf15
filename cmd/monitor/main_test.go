// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/monitor"
)

const module = "github.com/queueworker/operator/"

// The monitor is copied into other people's images, as the agent is.
func TestImportsStayInTheStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	seen := strings.Fields(string(out))
	if len(seen) < 5 {
		t.Fatalf("go list names only %q", seen)
	}
	for _, path := range seen {
		inside, ours := strings.CutPrefix(path, module)
		if !ours || inside != "cmd/monitor" && inside != "internal/timeoutchain" && inside != "internal/monitor" && !strings.HasPrefix(inside, "internal/agent/") {
			t.Errorf("the monitor imports %s", path)
		}
	}
}

func TestBinaryIsSmall(t *testing.T) {
	const most = 8 << 20
	program := filepath.Join(t.TempDir(), "monitor")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("the stripped monitor has %d bytes, at most %d are allowed", info.Size(), most)
	}
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	sound := monitor.Config{Namespace: "shop", Name: "payments", Runtime: "Laravel", IntervalSeconds: 30, StuckAfterSeconds: 270, MetricsAddress: ":9464"}.Encode()
	worker := []string{"--", "php", "artisan", "queue:work"}
	for name, c := range map[string]struct {
		config string
		args   []string
		want   string // empty = accepted
	}{
		"sound":      {sound, append([]string{"--service-account="}, worker...), ""},
		"no config":  {"", worker, monitor.ConfigEnv},
		"no command": {sound, nil, "no words `php artisan queue:work`"},
		"no pod":     {sound, worker, "KUBERNETES_SERVICE_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(monitor.ConfigEnv, c.config)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			f, err := parseRun(append([]string{"--dir=" + t.TempDir()}, c.args...))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.watcher()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, args := range [][]string{nil, {"watch"}, {"run", "--nonsense"}, {"copy", "--nonsense"}} {
		if code := dispatch(args); code != exitUsage {
			t.Errorf("%q ended with %d", args, code)
		}
	}
}
