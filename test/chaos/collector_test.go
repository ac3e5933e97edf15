// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reportCollector tells how often the garbage collector failed and will try again
// later, and the end of what its process said where the test failed.
func reportCollector(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(controlPlane.LogsDir(), "kube-controller-manager.log"))
	if err != nil {
		t.Error(err)
	}
	var said []string
	failures := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "garbage collector") || strings.Contains(line, "garbagecollector") {
			said = append(said, strings.TrimSpace(line))
		}
		if strings.Contains(line, "error syncing item") {
			failures++
		}
	}
	t.Logf("the garbage collector failed at %d objects and put them off", failures)
	if t.Failed() {
		t.Logf("what it said at last:\n%s", strings.Join(said[max(0, len(said)-60):], "\n"))
	}
}
