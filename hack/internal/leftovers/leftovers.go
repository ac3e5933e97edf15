// SPDX-License-Identifier: Apache-2.0

// Package leftovers finds what a control plane or a node has left on the machine; for tests.
package leftovers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// settle is how long the kernel and the janitor get after a SIGKILL of their owner.
const settle = time.Minute

// None fails the test unless the state folder and every process that names it disappear.
func None(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(settle); ; time.Sleep(20 * time.Millisecond) {
		processes := Processes(dir)
		_, err := os.Stat(dir)
		if len(processes) == 0 && os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left after %s: folder %s (%v), processes %v", settle, dir, err, processes)
			return
		}
	}
}

// Processes maps pid to program, for every living process with the folder in its arguments.
func Processes(dir string) map[int]string {
	found := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(arguments, []byte(dir)) {
			continue // it ended meanwhile, or is none of ours
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		program, _, _ := strings.Cut(string(arguments), "\x00")
		found[pid] = filepath.Base(program)
	}
	return found
}
