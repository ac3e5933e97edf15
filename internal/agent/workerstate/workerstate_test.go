// SPDX-License-Identifier: Apache-2.0

package workerstate_test

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/workerstate"
)

func TestReadAll(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"w.11.state": `{"v":1,"pid":11,"start":5,"phase":"job","mask":true,"jobs":3,"clock":1000,"interruptible":true,
			"job":{"uuid":"u","class":"C","queue":"q","attempt":2,"timeout":0}}`,
		"w.12.state":     `{"v":1,"pid":12,"phase":"loop","since":1.5}`,
		"w.13.state":     `{"v":1,"pid":13,"phase":"lo`, // cut
		"w.14.state":     ``,
		"w.15.state":     `{"v":2,"pid":15,"phase":"loop"}`,
		"w.16.state":     `{"v":1,"pid":99,"phase":"loop"}`,
		"w.17.state":     `{"v":1,"pid":17,"phase":"dancing"}`,
		"w.19.state":     `{"v":1,"pid":19,"phase":"loop"}`,
		"w.18.state.tmp": `{"v":1,"pid":18,"phase":"loop"}`,
		"w.x.state":      `{}`,
		"gate":           `id`,
	} {
		text = fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(text)), text)
		if name == "w.19.state" {
			text = strings.Replace(text, "loop", "boot", 1) // half of another write
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	states, err := workerstate.ReadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]workerstate.Phase{11: "job", 12: "loop", 13: "unknown", 14: "unknown", 15: "unknown", 16: "unknown", 17: "unknown", 19: "unknown"}
	if len(states) != len(want) {
		t.Errorf("%d states, wanted %d", len(states), len(want))
	}
	for _, state := range states {
		if state.Phase != want[state.PID] {
			t.Errorf("worker %d is in phase %q, wanted %q", state.PID, state.Phase, want[state.PID])
		}
	}
	job := states[0]
	if job.PID != 11 || job.Start != 5 || job.Jobs != 3 || !job.Interruptible || job.Job.Class != "C" || *job.Job.Timeout != 0 {
		t.Errorf("job %+v", job)
	}
	if job.Age(1000+int64(time.Minute)) != time.Minute || time.Since(job.Beat) > time.Minute {
		t.Errorf("age %s, beat %s", job.Age(2000), job.Beat)
	}
}

func TestMissingDirectoryIsAnError(t *testing.T) {
	if _, err := workerstate.ReadAll("/nonexistent"); err == nil {
		t.Error("no error")
	}
}
