// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/queueworker/operator/"

// The agent is copied into other people's images, so it stays small and depends
// on nothing but the standard library and the rules of the chain.
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
		if !ours || inside != "cmd/agent" && inside != "internal/timeoutchain" && inside != "internal/preflight" && inside != "internal/monitor" && !strings.HasPrefix(inside, "internal/agent/") {
			t.Errorf("the agent imports %s", path)
		}
	}
}

func TestBinaryIsSmall(t *testing.T) {
	const most = 4 << 20
	program := filepath.Join(t.TempDir(), "agent")
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
		t.Errorf("the stripped agent has %d bytes, at most %d are allowed", info.Size(), most)
	}
}
