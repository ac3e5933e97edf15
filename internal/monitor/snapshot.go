// SPDX-License-Identifier: Apache-2.0

package monitor

import "time"

// Queue is one queue at one look. A number that the driver cannot tell is nil,
// never zero. Each job is counted once.
type Queue struct {
	Name     string   `json:"name"`
	Ready    *int64   `json:"ready"`    // a worker could take them now
	Delayed  *int64   `json:"delayed"`  // their time has not come
	Due      *int64   `json:"due"`      // their time has come, and no worker has moved them yet
	Reserved *int64   `json:"reserved"` // a worker holds them
	Expired  *int64   `json:"expired"`  // were held for too long, and will be handed out again
	Oldest   *float64 `json:"oldest"`   // how long the first waiting job has waited, in seconds

	Head string `json:"head"` // names the job that is next; empty = none, or not known
	Held string `json:"held"` // names the set of held jobs; empty = none, or not known

	Paused bool `json:"paused"`
}

// Snapshot is one look at the queues, by the watcher's own clock.
type Snapshot struct {
	At          time.Time
	Unanswered  string // why the backend could not be asked; empty = it answered
	Maintenance bool   // the application is in maintenance mode, and its workers respect that
	Horizon     Horizon
	Queues      []Queue
}

// Horizon is what Horizon says of its masters.
type Horizon struct {
	Masters int `json:"masters"`
	Paused  int `json:"paused"`
}

// Depth is how many jobs have to be worked off by now, held ones included. It
// is what a scaler must count, since a busy queue is not an empty one.
func (q Queue) Depth() int64 { return q.Waiting() + count(q.Reserved) }

// Waiting is how many jobs could run now and do not.
func (q Queue) Waiting() int64 { return count(q.Ready) + count(q.Due) + count(q.Expired) }

// moved says whether a worker did something between two looks.
func (q Queue) moved(before Queue) bool {
	return before.Head != "" && q.Head != before.Head ||
		q.Held != before.Held ||
		q.Depth() < before.Depth()
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// waiting is the work of all queues that are not paused.
func (s Snapshot) waiting() (n int64) {
	for _, q := range s.Queues {
		if !q.Paused {
			n += q.Waiting()
		}
	}
	return n
}

func (s Snapshot) held() (n int64) {
	for _, q := range s.Queues {
		n += count(q.Reserved)
	}
	return n
}

// moved says whether anything did. A queue that was not there before tells
// nothing.
func (s Snapshot) moved(before Snapshot) bool {
	for _, q := range s.Queues {
		for _, b := range before.Queues {
			if b.Name == q.Name && q.moved(b) {
				return true
			}
		}
	}
	return false
}

// pause is why no worker takes jobs on purpose, empty where they may.
func (s Snapshot) pause() string {
	switch {
	case s.Maintenance:
		return "the application is in maintenance mode"
	case s.Horizon.Masters > 0 && s.Horizon.Paused == s.Horizon.Masters:
		return "Horizon is paused"
	}
	for _, q := range s.Queues {
		if !q.Paused {
			return ""
		}
	}
	switch len(s.Queues) {
	case 0:
		return ""
	case 1:
		return "the queue is paused"
	default:
		return "all queues are paused"
	}
}

// Ages remembers since when the job at the head of each queue has been there,
// for jobs that do not say since when they wait, or say too little.
type Ages struct {
	heads map[string]head
}

type head struct {
	name string
	seen time.Time
}

// Complete gives each age at least what was seen, told or not.
func (a *Ages) Complete(s Snapshot) Snapshot {
	if s.Unanswered != "" {
		return s // the heads are there still
	}
	heads := map[string]head{}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Head == "" {
			continue
		}
		first, known := a.heads[q.Name]
		if !known || first.name != q.Head {
			first = head{q.Head, s.At}
		}
		heads[q.Name] = first
		if age := s.At.Sub(first.seen).Seconds(); q.Oldest == nil || *q.Oldest < age {
			q.Oldest = &age
		}
	}
	a.heads = heads
	return s
}
