// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"os"
	"strings"
	"testing"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	eventually(t, patience, "the file "+path, func() bool { return read(path) != "" })
}

func contains(text, part string) bool { return strings.Contains(text, part) }

// openDir is a directory that every user can write.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(suite.dir, "open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}
