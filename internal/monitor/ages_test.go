// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

// A job that stays at the head is at least as old as that, whatever it says of itself.
func TestAges(t *testing.T) {
	var ages monitor.Ages
	for i, step := range []struct {
		head string
		told *float64
		want *float64
	}{
		{"a", nil, oldest(0)}, {"a", nil, oldest(30)}, {"a", oldest(5), oldest(60)}, {"a", oldest(500), oldest(500)},
		{"b", nil, oldest(0)}, {"b", oldest(7), oldest(30)}, {"", oldest(9), oldest(9)}, {"", nil, nil}, {"b", nil, oldest(0)},
	} {
		s := ages.Complete(monitor.Snapshot{At: begin.Add(time.Duration(i) * 30 * time.Second), Queues: []monitor.Queue{{Name: "q", Head: step.head, Oldest: step.told}}})
		if got := s.Queues[0].Oldest; (got == nil) != (step.want == nil) || got != nil && *got != *step.want {
			t.Errorf("look %d: %v, wanted %v", i, got, step.want)
		}
	}
}
