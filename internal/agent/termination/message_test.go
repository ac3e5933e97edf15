// SPDX-License-Identifier: Apache-2.0

package termination_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/agent/termination"
)

func TestAnyMessageFits(t *testing.T) {
	for _, unit := range []string{"a", `\`, `"`, "\x00", "<", "é", "\xff", "\U0001f600"} {
		long := strings.Repeat(unit, 3000)
		m := termination.Message{Outcome: termination.Overran, Reason: long, DrainAt: "2026-01-02T03:04:05Z",
			Job: &termination.Job{UUID: long, Class: long, Queue: long, AgeSeconds: 1e9}}
		m.WaitedFor = m.Job
		text := m.Encode()
		if len(text) > termination.MaxBytes {
			t.Errorf("with %q it has %d bytes", unit, len(text))
		}
		if back, err := termination.Decode(string(text)); err != nil || back.Outcome != m.Outcome || back.Job == nil {
			t.Errorf("with %q it comes back as %+v, %v", unit, back, err)
		}
	}
}

func TestLongClassKeepsItsEnd(t *testing.T) {
	m := termination.Message{Outcome: termination.Killed, Job: &termination.Job{Class: strings.Repeat(`Very\Deep\`, 50) + "Charge"}}
	if back, _ := termination.Decode(string(m.Encode())); !strings.HasSuffix(back.Job.Class, `\Charge`) {
		t.Errorf("class %q", back.Job.Class)
	}
}

func TestDecodeRefusesOtherWords(t *testing.T) {
	for _, text := range []string{"", "panic: oh no", "{}", `{"v":2,"outcome":"Drained"}`, `{"v":1}`} {
		if m, err := termination.Decode(text); err == nil {
			t.Errorf("%q was read as %+v", text, m)
		}
	}
}

func TestWriteReplacesInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := termination.Write(path, termination.Message{Outcome: termination.Drained}); err != nil {
		t.Fatalf("no file is no error: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the file was made")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	long := termination.Message{Outcome: termination.GraceCut, Reason: strings.Repeat("long ", 20)}
	short := termination.Message{Outcome: termination.Drained}
	for _, m := range []termination.Message{long, short, long} {
		if err := termination.Write(path, m); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(path); string(text) != string(m.Encode()) {
			t.Errorf("the file holds %q, wanted %q", text, m.Encode())
		}
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("the file was replaced: it is a mount")
	}
}
