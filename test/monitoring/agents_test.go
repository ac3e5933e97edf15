// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The programs in the pods write their metrics by hand, with each name in one
// place of their sources. Of what alerts and dashboard read of them, every name
// and every label of their own is there.
func TestTheAgentsSayWhatIsRead(t *testing.T) {
	sources := map[string]string{
		"queueworker_queue_":       "internal/agent/watch",
		"queueworker_failed_jobs_": "internal/agent/watch",
		"queueworker_monitor_":     "internal/agent/watch",
		"queueworker_worker_":      "internal/agent/tally",
	}
	checked := 0
	for name, labels := range unseen {
		for prefix, folder := range sources {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			checked++
			text := sourceOf(t, folder)
			if base := strings.TrimSuffix(name, "_bucket"); !strings.Contains(text, `"`+base+`"`) {
				t.Errorf("nothing in %s writes %s", folder, base)
			}
			for _, label := range labels {
				given := label == "namespace" || label == "queueworker" || label == "le" // by the scrape, the PodMonitor, the form
				if !given && !strings.Contains(text, `"`+label+`"`) {
					t.Errorf("nothing in %s writes the label %s of %s", folder, label, name)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d metrics looked for", checked)
	}
}

func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
