// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// running says whether a process with this command line exists, in whatever
// namespace.
func running(t *testing.T, line string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		words := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		words[0] = filepath.Base(words[0])
		if strings.Join(words, " ") == line {
			return true
		}
	}
	return false
}

// zombiesUnder counts the dead children that nobody has collected.
func zombiesUnder(pid int) int {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	zombies := 0
	for _, file := range files {
		text := read(file)
		if strings.Contains(text, "\nState:\tZ") && strings.Contains(text, "\nPPid:\t"+strconv.Itoa(pid)+"\n") {
			zombies++
		}
	}
	return zombies
}
