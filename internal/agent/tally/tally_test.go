// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/tally"
)

func TestText(t *testing.T) {
	var counts tally.Tally
	for _, run := range []tally.Run{
		{Class: `App\A`, Result: tally.Processed, Attempt: 1, Took: 10 * time.Millisecond},
		{Class: `App\A`, Result: tally.Processed, Attempt: 2, Took: 11 * time.Millisecond},
		{Class: `App\A`, Result: tally.Exception, Attempt: 3, Took: time.Hour},
		{Class: "card 4111", Result: tally.Released, Attempt: 1, Took: -time.Second},
	} {
		counts.Ran(run)
	}
	counts.Recycled("max_jobs")
	counts.Killed()
	counts.Drained("Drained")
	counts.Lost(3)
	text := string(counts.Text(tally.Now{
		Heartbeats: []time.Duration{time.Second, 3 * time.Second},
		Running:    []tally.Running{{`App\A`, time.Minute, 55 * time.Second}, {`App\A`, time.Second, 87 * time.Second}},
	}))
	for _, want := range []string{
		`queueworker_worker_heartbeat_age_seconds 3`,
		`queueworker_worker_job_seconds{class="App\\A"} 60`,
		`queueworker_worker_job_bound_seconds 55`,
		`queueworker_worker_jobs_total{class="App\\A",result="processed"} 2`,
		`queueworker_worker_jobs_total{class="App\\A",result="exception"} 1`,
		`queueworker_worker_jobs_total{class="other",result="released"} 1`,
		`queueworker_worker_job_duration_seconds_bucket{class="App\\A",le="0.01"} 1`,
		`queueworker_worker_job_duration_seconds_bucket{class="App\\A",le="0.05"} 2`,
		`queueworker_worker_job_duration_seconds_bucket{class="App\\A",le="1800"} 2`,
		`queueworker_worker_job_duration_seconds_bucket{class="App\\A",le="+Inf"} 3`,
		`queueworker_worker_job_duration_seconds_sum{class="App\\A"} 3600.021`,
		`queueworker_worker_job_duration_seconds_count{class="other"} 1`,
		`queueworker_worker_redeliveries_total{class="App\\A"} 2`,
		`queueworker_worker_releases_total{class="App\\A"} 1`,
		`queueworker_worker_releases_total{class="other"} 1`,
		`queueworker_worker_recycles_total{cause="max_jobs"} 1`,
		`queueworker_worker_watchdog_kills_total 1`,
		`queueworker_worker_drains_total{outcome="Drained"} 1`,
		`queueworker_worker_lost_runs_total 3`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "4111") {
		t.Error("a name that is none came through")
	}
	var idle tally.Tally
	if text := string(idle.Text(tally.Now{})); strings.Contains(text, "job_seconds") || strings.Contains(text, "heartbeat") {
		t.Errorf("nobody is there:\n%s", text)
	}
}

// However many classes there are, the text stays small and every run counts.
func TestCardinality(t *testing.T) {
	var counts tally.Tally
	var running []tally.Running
	for i := range 1000 {
		counts.Ran(tally.Run{Class: fmt.Sprintf(`App\Job%d`, i), Result: tally.Processed})
		running = append(running, tally.Running{Class: fmt.Sprintf(`App\Job%d`, i)})
	}
	text := string(counts.Text(tally.Now{Running: running}))
	for name, most := range map[string]int{"queueworker_worker_jobs_total{": 51, "queueworker_worker_job_seconds{": 51} {
		if n := strings.Count(text, name); n > most || n < 50 {
			t.Errorf("%d samples of %s", n, name)
		}
	}
	if !strings.Contains(text, `queueworker_worker_jobs_total{class="other",result="processed"} 950`) {
		t.Error("the others are not counted")
	}
}

// slot is a line as worker.php writes it.
func slot(sequence, end int, class string) []byte {
	return fmt.Appendf(nil, "%-240s%-15d\n", fmt.Sprintf("%d processed 1 1500 %s", sequence, class), end)
}

// writer fills a worker's file.
func writer(t *testing.T, dir string) func(sequence, end int) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "w.7.runs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return func(sequence, end int) {
		if _, err := file.WriteAt(slot(sequence, end, `App\A`), int64((sequence-1)%2048)*256); err != nil {
			t.Fatal(err)
		}
	}
}

func total(counts *tally.Tally) (ran, lost int) {
	for _, line := range strings.Split(string(counts.Text(tally.Now{})), "\n") {
		_, _ = fmt.Sscanf(line, `queueworker_worker_jobs_total{class="App\\A",result="processed"} %d`, &ran)
		_, _ = fmt.Sscanf(line, "queueworker_worker_lost_runs_total %d", &lost)
	}
	return ran, lost
}

func TestRing(t *testing.T) {
	dir := t.TempDir()
	var counts tally.Tally
	ring := tally.RingOf(dir, 7)
	ring.Read(&counts) // no file yet
	write := writer(t, dir)
	written := 0
	for _, c := range []struct{ more, ran, lost int }{
		{0, 0, 0},
		{1, 1, 0},
		{64, 65, 0},
		{0, 65, 0},
		{1983, 2048, 0},     // to the file's last slot
		{2048, 4096, 0},     // a whole lap
		{100, 4196, 0},      // past the end
		{2049, 6244, 1},     // one more than there is room for
		{10000, 8292, 7953}, // a reader that slept
	} {
		for range c.more {
			written++
			write(written, written)
		}
		ring.Read(&counts)
		if ran, lost := total(&counts); ran != c.ran || lost != c.lost || ran+lost != written {
			t.Fatalf("after %d runs: %d counted, %d lost, wanted %d and %d", written, ran, lost, c.ran, c.lost)
		}
	}
	write(written+1, written) // being written
	ring.Read(&counts)
	if ran, lost := total(&counts); ran+lost != written {
		t.Errorf("a slot that was being written was counted: %d and %d of %d", ran, lost, written)
	}
	write(written+1, written+1)
	ring.Read(&counts)
	if ran, lost := total(&counts); ran+lost != written+1 {
		t.Errorf("%d and %d of %d", ran, lost, written+1)
	}
	ring.Drop()
	ring.Read(&counts)
	if _, err := os.Stat(filepath.Join(dir, "w.7.runs")); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

func TestRingIgnoresGarbage(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "short": "1 processed", "zeros": string(make([]byte, 1024)), "text": strings.Repeat("x y z a b ", 200),
		"no numbers": strings.Replace(string(slot(1, 1, "A")), " 1 1500", " x 1500", 1), "sequence 0": string(slot(0, 0, "A")),
		"a slot of elsewhere": string(slot(5, 5, "A")),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "w.7.runs"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var counts tally.Tally
		tally.RingOf(dir, 7).Read(&counts)
		if strings.Contains(string(counts.Text(tally.Now{})), "class=") {
			t.Errorf("%s: something was counted", name)
		}
	}
}
