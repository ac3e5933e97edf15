// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"testing"
	"time"
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
