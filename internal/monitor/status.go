// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// Heartbeat is how old the status may become while nothing changes.
	Heartbeat = 5 * time.Minute

	// mostFailing is how many kinds of failure the status names.
	mostFailing = 5

	longestMessage = 300
)

// Status is the monitor's part of a QueueWorker's status, as it is written. A
// number that is not known is absent.
type Status struct {
	State         State     `json:"state"`
	Since         time.Time `json:"since"`
	ObservedTime  time.Time `json:"observedTime"`
	Depth         *int64    `json:"depth,omitempty"`
	Ready         *int64    `json:"ready,omitempty"`
	Delayed       *int64    `json:"delayed,omitempty"`
	Reserved      *int64    `json:"reserved,omitempty"`
	Due           *int64    `json:"due,omitempty"`
	Expired       *int64    `json:"expired,omitempty"`
	OldestSeconds *int64    `json:"oldestSeconds,omitempty"`
	Failed        *int64    `json:"failed,omitempty"`
	Failing       []Failing `json:"failing,omitempty"`
	Message       string    `json:"message,omitempty"`
}

// StatusOf is what to say after a look. Failed jobs that could not be asked for
// are nil.
func StatusOf(j Judgement, s Snapshot, failed []Failing) Status {
	status := Status{State: j.State, Since: whole(j.Since), ObservedTime: whole(s.At), Message: sentence(j.Message)}
	if s.Unanswered == "" {
		status.addQueues(s.Queues)
	}
	if failed != nil {
		var n int64
		for _, f := range failed {
			n += f.Count
		}
		status.Failed, status.Failing = &n, failed[:min(len(failed), mostFailing)]
	}
	return status
}

// sentence makes one of a cause, for people.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "")
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// addQueues sums up. A sum with a part that nobody knows is not known.
func (s *Status) addQueues(queues []Queue) {
	sum := func(pick func(Queue) *int64) *int64 {
		var n int64
		for _, q := range queues {
			part := pick(q)
			if part == nil {
				return nil
			}
			n += *part
		}
		return &n
	}
	var depth int64
	for _, q := range queues {
		depth += q.Depth()
		if q.Oldest != nil && (s.OldestSeconds == nil || int64(*q.Oldest) > *s.OldestSeconds) {
			oldest := int64(math.Max(*q.Oldest, 0))
			s.OldestSeconds = &oldest
		}
	}
	s.Depth = &depth
	s.Ready = sum(func(q Queue) *int64 { return q.Ready })
	s.Delayed = sum(func(q Queue) *int64 { return q.Delayed })
	s.Reserved = sum(func(q Queue) *int64 { return q.Reserved })
	s.Due = sum(func(q Queue) *int64 { return q.Due })
	s.Expired = sum(func(q Queue) *int64 { return q.Expired })
}

// Worth says whether the status is worth a write over the one that stands there:
// a state, a cause or a failing class is another one, a number has made a step
// that matters, or the old one is about to look abandoned.
func (s Status) Worth(old Status) bool {
	if s.State != old.State || !s.Since.Equal(old.Since) || s.Message != old.Message ||
		s.ObservedTime.Sub(old.ObservedTime) >= Heartbeat || old.ObservedTime.After(s.ObservedTime) {
		return true
	}
	if !slices.EqualFunc(s.Failing, old.Failing, func(a, b Failing) bool { return a.Kind == b.Kind }) {
		return true
	}
	for _, pair := range [][2]*int64{
		{s.Depth, old.Depth}, {s.Ready, old.Ready}, {s.Delayed, old.Delayed}, {s.Reserved, old.Reserved}, {s.Due, old.Due},
		{s.Expired, old.Expired}, {s.OldestSeconds, old.OldestSeconds}, {s.Failed, old.Failed},
	} {
		if isStep(pair[0], pair[1]) {
			return true
		}
	}
	return false
}

// isStep tells changes that somebody who looks would want to see from those of
// every look: between none and some, or by a quarter.
func isStep(a, b *int64) bool {
	if a == nil || b == nil {
		return (a == nil) != (b == nil)
	}
	least, most := min(*a, *b), max(*a, *b)
	return 4*(most-least) >= max(most, 1)
}

// Condition is the condition Consuming as it is written.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	ObservedGeneration int64     `json:"observedGeneration,omitempty"`
}

// Consuming is the type of the condition.
const Consuming = "Consuming"

// ConditionOf says whether jobs are being consumed. The time of the last
// transition is kept where there was none.
func ConditionOf(s Status, old Condition, generation int64) Condition {
	c := Condition{
		Type: Consuming, Status: "False", Reason: string(s.State), Message: s.Message,
		LastTransitionTime: s.ObservedTime, ObservedGeneration: generation,
	}
	switch s.State {
	case Empty, Busy:
		c.Status = "True"
	case Unknown:
		c.Status = "Unknown"
	}
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}

// Differs says whether more than the time of the look is another one.
func (c Condition) Differs(old Condition) bool {
	return c.Status != old.Status || c.Reason != old.Reason || c.Message != old.Message || c.ObservedGeneration != old.ObservedGeneration
}

func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
