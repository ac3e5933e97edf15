// SPDX-License-Identifier: Apache-2.0

package workdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/agent/workdir"
)

func TestPrepareForgetsTheLastRun(t *testing.T) {
	dir := workdir.Dir(t.TempDir())
	for range 2 {
		if err := dir.Prepare(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir.Run())
		if err != nil || len(entries) != 0 {
			t.Fatalf("%v, %v", entries, err)
		}
		if info, _ := os.Stat(dir.Run()); info.Mode().Perm() != 0o777 {
			t.Errorf("mode %s", info.Mode())
		}
		if id, err := dir.CloseGate("x"); err != nil || id != "x" {
			t.Fatalf("%q, %v", id, err)
		}
		if text, _ := os.ReadFile(dir.Gate()); string(text) != "x" {
			t.Errorf("the gate holds %q", text)
		}
	}
}

func TestTooLongAPathIsToldEarly(t *testing.T) {
	long := workdir.Dir(filepath.Join(t.TempDir(), strings.Repeat("d", 100)))
	if err := long.Prepare(); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
}

func TestWriteFileLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		if err := workdir.WriteFile(path, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := workdir.WriteFile(filepath.Join(dir, "no", "f"), nil, 0o444); err == nil {
		t.Error("a missing directory is no error")
	}
	entries, _ := os.ReadDir(dir)
	text, _ := os.ReadFile(path)
	if len(entries) != 1 || string(text) != "two" {
		t.Errorf("%v holds %q", entries, text)
	}
}
