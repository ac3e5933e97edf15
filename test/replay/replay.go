// SPDX-License-Identifier: Apache-2.0

// Package replay carries what was really scraped of a program from the suite
// that runs it to the suite `monitoring`, which has the engine to evaluate the
// chart's alerts and is a module of its own.
package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// FileEnv names the file of the recording that is to be evaluated. Set for the
// suite that records, it keeps the file there.
const FileEnv = "QW_SCRAPES"

// Recording is what a Prometheus would know of one target after a while.
type Recording struct {
	// Labels are those that the target's samples get, where they have none.
	Labels map[string]string `json:"labels"`
	// Scrapes are in order.
	Scrapes []Scrape `json:"scrapes"`
	// Alert is the one alert that has to fire, once, and to end.
	Alert string `json:"alert"`
	// Fires are the labels that it fires with.
	Fires map[string]string `json:"fires"`

	mu sync.Mutex
}

// Scrape is one answer.
type Scrape struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Add writes down an answer of now.
func (r *Recording) Add(text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Scrapes = append(r.Scrapes, Scrape{time.Now().UTC(), string(text)})
}

// Evaluate has the suite `monitoring`, in this folder, judge the recording. The
// error is what it says.
func (r *Recording) Evaluate(ctx context.Context, monitoring string) error {
	r.mu.Lock()
	text, err := json.MarshalIndent(r, "", "  ")
	r.mu.Unlock()
	if err != nil {
		return err
	}
	file := os.Getenv(FileEnv)
	if file == "" {
		dir, err := os.MkdirTemp("", "replay")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file = filepath.Join(dir, "recording.json")
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^TestRecorded$", ".")
	cmd.Dir, cmd.Env = monitoring, append(os.Environ(), FileEnv+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
