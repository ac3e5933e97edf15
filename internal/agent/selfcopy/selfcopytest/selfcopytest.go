// SPDX-License-Identifier: Apache-2.0

// Package selfcopytest holds programs that are copied into other people's images
// to what that asks of them; for the tests of a program's own folder.
package selfcopytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/queueworker/operator/"

// Imports fails the test where the program imports more than the standard
// library, packages of internal/agent and those named, by their folders.
func Imports(t *testing.T, allowed ...string) {
	t.Helper()
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
		if !ours || !slices.Contains(allowed, inside) && !strings.HasPrefix(inside, "internal/agent/") {
			t.Errorf("it imports %s", path)
		}
	}
}

// Size fails the test where the stripped program is larger, in bytes.
func Size(t *testing.T, most int64) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
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
		t.Errorf("stripped it has %d bytes, at most %d are allowed", info.Size(), most)
	}
}
