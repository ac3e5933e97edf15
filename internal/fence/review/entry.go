// SPDX-License-Identifier: Apache-2.0

// Package review shows the keys of which nobody knows the outcome, to people.
package review

import (
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// Entry is one key as people see it.
type Entry struct {
	Scope        string     `json:"scope"`
	Key          string     `json:"key"`
	State        string     `json:"state"` // claimed only past its lease: it counts as unknown
	Token        string     `json:"token"` // of the attempt; a decision is about this one
	SentKey      string     `json:"sentKey"`
	Attempt      int        `json:"attempt"`
	Owner        string     `json:"owner,omitempty"`
	UnknownSince time.Time  `json:"unknownSince"`
	AgeSeconds   int        `json:"ageSeconds"`
	FirstSentAt  time.Time  `json:"firstSentAt"`
	QuietUntil   time.Time  `json:"quietUntil"` // before it a request may still act
	Quiet        bool       `json:"quiet"`
	Resends      int        `json:"resends,omitempty"`
	CheckedAt    *time.Time `json:"checkedAt,omitempty"`
	Reason       string     `json:"reason,omitempty"`
}

// EntryOf shows a row that is not settled.
func EntryOf(row fence.Row) Entry {
	e := Entry{
		Scope: row.Key.Scope, Key: row.Key.ID, State: row.State.String(), Token: row.Token.String(), SentKey: row.SentKey(),
		Attempt: row.Attempt, Owner: row.Owner, UnknownSince: row.LeaseUntil, AgeSeconds: int(row.ReadAt.Sub(row.LeaseUntil).Seconds()),
		FirstSentAt: row.FirstSentAt, QuietUntil: row.QuietUntil, Quiet: row.Quiet(), Resends: row.Resends, Reason: row.Reason,
	}
	if !row.CheckedAt.IsZero() {
		e.CheckedAt = &row.CheckedAt
	}
	return e
}

// EntriesOf shows rows.
func EntriesOf(rows []fence.Row) []Entry {
	entries := make([]Entry, len(rows))
	for i, row := range rows {
		entries[i] = EntryOf(row)
	}
	return entries
}
