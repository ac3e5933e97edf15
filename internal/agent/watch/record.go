// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

// recordVersion is the version of the script's records.
const recordVersion = 1

// Record is one line of the script.
type Record struct {
	Version int    `json:"v"`
	Kind    string `json:"kind"` // look or failed

	Driver      string           `json:"driver"`
	Maintenance bool             `json:"maintenance"`
	Horizon     *monitor.Horizon `json:"horizon"`
	Queues      []monitor.Queue  `json:"queues"`
	Failed      *Failed          `json:"failed"` // nil = not known
	Troubles    []Trouble        `json:"troubles"`
	Memory      int64            `json:"rss"`

	Trouble // of a script that could not begin
}

// Failed is what the application's store of failed jobs says.
type Failed struct {
	Cursor string  `json:"cursor"`
	Stored *int64  `json:"stored"`
	Counts []Count `json:"counts"` // since the last look
}

// Count is how many jobs failed alike within a minute.
type Count struct {
	monitor.Kind
	At     int64 `json:"at"`     // UNIX seconds
	Before bool  `json:"before"` // before the watch began
	Count  int64 `json:"count"`
}

// Trouble is a question that has no answer. It holds no text of an exception.
type Trouble struct {
	What  string `json:"what"`
	Class string `json:"class"` // of the exception
	Hint  string `json:"hint"`  // a known part of its text
}

func (t Trouble) String() string {
	text := monitor.ClassName(t.Class)
	if t.Hint != "" {
		text += " (" + t.Hint + ")"
	}
	return text
}

func parse(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("a line that is no record: %w", err)
	}
	if r.Version != recordVersion || r.Kind != "look" && r.Kind != "failed" {
		return Record{}, fmt.Errorf("a record of version %d and kind %q", r.Version, r.Kind)
	}
	return r, nil
}

// Snapshot is the record as a look at this time.
func (r Record) Snapshot(at time.Time) monitor.Snapshot {
	s := monitor.Snapshot{At: at, Maintenance: r.Maintenance, Queues: r.Queues}
	if r.Horizon != nil {
		s.Horizon = *r.Horizon
	}
	var blind []string
	for _, q := range r.Queues {
		if q.Ready == nil {
			blind = append(blind, q.Name)
		}
	}
	switch {
	case len(r.Queues) == 0:
		s.Unanswered = "no queue is known"
	case len(blind) > 0:
		s.Unanswered = "the queue cannot be asked: " + strings.Join(blind, ", ") + r.why(blind[0])
	}
	return s
}

func (r Record) why(queue string) string {
	for _, t := range r.Troubles {
		if t.What == queue {
			return ": " + t.String()
		}
	}
	return ""
}
