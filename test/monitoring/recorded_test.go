// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/queueworker/operator/test/replay"
)

// afterwards is for how long a recording goes on with its last scrape, and
// within how long its alert has to end.
const afterwards = 45 * time.Minute

// TestRecorded evaluates what was scraped of a real program: the file of a suite
// that ran one just now, else the one that is kept here, of a monitor that saw
// 2,000 jobs of one class fail among healthy ones.
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile(cmp.Or(os.Getenv(replay.FileEnv), "testdata/failing.json"))
	if err != nil {
		t.Fatal(err)
	}
	recording := &replay.Recording{}
	if err := json.Unmarshal(text, recording); err != nil {
		t.Fatal(err)
	}
	if len(recording.Scrapes) < 3 {
		t.Fatalf("only %d scrapes", len(recording.Scrapes))
	}
	rule, known := rules(t)[recording.Alert]
	if !known {
		t.Fatalf("there is no alert %q", recording.Alert)
	}
	stored, last := played(t, recording)
	began, ended := 0, 0
	var before []fired
	for at := time.Duration(0); at <= last+afterwards; at += every {
		now := run(t, rule, stored, every, at)
		switch {
		case len(now) > 1:
			t.Fatalf("%d alerts after %s: %+v", len(now), at, now)
		case len(now) > len(before):
			began++
			if diff := gocmp.Diff(recording.Fires, now[0].Labels); diff != "" {
				t.Errorf("fires after %s with labels (want -, got +):\n%s", at, diff)
			}
			t.Logf("fires after %s: %s", at, now[0].Annotations["summary"])
		case len(now) < len(before):
			ended++
			t.Logf("ends after %s", at)
		}
		before = now
	}
	if began != 1 || ended != 1 {
		t.Errorf("%s began %d times and ended %d times within %s, want one alert that ends", recording.Alert, began, ended, last+afterwards)
	}
}

// played stores the scrapes as if the first had been at the epoch, and the last
// again and again for as long as is looked at afterwards.
func played(t *testing.T, r *replay.Recording) (stored memory, last time.Duration) {
	t.Helper()
	stored = memory{}
	var families []*dto.MetricFamily
	for _, scrape := range r.Scrapes {
		last, families = scrape.At.Sub(r.Scrapes[0].At), parsed(t, scrape.Text)
		stored.scrape(t, families, epoch.Add(last), r.Labels)
	}
	for later := every; later <= afterwards; later += every {
		stored.scrape(t, families, epoch.Add(last+later), r.Labels)
	}
	return stored, last
}

func parsed(t *testing.T, text string) []*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var all []*dto.MetricFamily
	for _, family := range families {
		all = append(all, family)
	}
	return all
}
