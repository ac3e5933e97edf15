// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFullDiskIsNamed(t *testing.T) {
	want := "/state has nothing left, a control plane needs 256 MB: free some"
	for _, err := range []error{
		fmt.Errorf("writing: %w", syscall.ENOSPC),
		errors.New("etcd ended by itself (exit status 2): panic: write wal: no space left on device"),
	} {
		if got := explain(err, "/state/default").Error(); !strings.HasPrefix(got, want) {
			t.Errorf("got %s", got)
		}
	}
	other := errors.New("something else")
	if got := explain(other, "/state/default"); got != other { //nolint:errorlint // the very same error
		t.Errorf("got %v", got)
	}
}

func TestLastWords(t *testing.T) {
	for name, log := range map[string]string{
		"the last line": "I started\nE ended: flag unknown\n",
		"before a stack trace": `{"level":"info","msg":"I started"}
panic: disk full

goroutine 1 [running]:
main.main()
	main.go:31 +0x28
`,
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		got := (&process{logFile: file}).lastWords()
		if got != "E ended: flag unknown" && got != "panic: disk full" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
