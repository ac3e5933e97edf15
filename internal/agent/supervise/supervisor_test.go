// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/verdict"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// However often somebody scrapes, the supervisor looks after its workers as
// often as ever, neither more nor less.
func TestAScrapeIsNoLook(t *testing.T) {
	s := &supervisor{scrapes: make(chan chan<- []byte)}
	begin, looked := time.Now(), make(chan struct{})
	go func() { s.wait(); close(looked) }()
	answered := 0
	for {
		answer := make(chan []byte, 1)
		select {
		case s.scrapes <- answer:
			if len(<-answer) == 0 {
				t.Fatal("an empty answer")
			}
			answered++
			time.Sleep(idlePoll / 10)
		case <-looked:
			if took := time.Since(begin); answered < 3 || took < idlePoll {
				t.Errorf("a look after %s and %d scrapes", took, answered)
			}
			return
		case <-time.After(30 * idlePoll):
			t.Fatal("no look")
		}
	}
}

// What a master's last worker said explains the master's end only where that
// follows at once; one that is killed later is reported.
func TestAWorkerDoesNotSpeakForItsMasterForLong(t *testing.T) {
	stopping := []workerstate.State{{PID: 7, Phase: workerstate.Stopping}}
	running := []workerstate.State{{PID: 8, Phase: workerstate.Loop}}
	for name, c := range map[string]struct {
		alive   []workerstate.State // another worker, seen a second after the last words
		after   time.Duration
		outcome termination.Outcome // empty = started again
	}{
		"at once":           {},
		"after two seconds": {after: 2 * time.Second},
		"after a minute":    {after: time.Minute, outcome: termination.OOMKilled},
		"another came":      {alive: running, after: 2 * time.Second, outcome: termination.OOMKilled},
	} {
		s, noticed := &supervisor{}, time.Now()
		s.remember(nil, stopping, noticed)
		s.remember(c.alive, nil, noticed.Add(time.Second)) // its file is gone
		v := verdict.Judge(verdict.End{
			Status: syscall.WaitStatus(syscall.SIGKILL), Last: s.lastWord(nil, nil, noticed.Add(c.after)), OOM: true, Tracked: true,
		})
		if v.Outcome != c.outcome || v.Recycle != (c.outcome == "") {
			t.Errorf("%s: %+v, want %q", name, v, c.outcome)
		}
	}
}
