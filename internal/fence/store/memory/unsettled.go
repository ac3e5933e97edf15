// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

var _ fence.Reviewer = (*Store)(nil)

// Unsettled implements fence.Reviewer.
func (s *Store) Unsettled(_ context.Context, which fence.Unsettled) ([]fence.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rows := s.sorted(func(r fence.Row) bool {
		r.ReadAt = now
		return (which.Scope == "" || r.Key.Scope == which.Scope) &&
			(r.State == fence.Unknown || r.State == fence.NeedsReview || r.State == fence.Claimed && r.LeaseOver())
	}, func(r fence.Row) time.Time { return r.LeaseUntil })
	rows = rows[:min(len(rows), which.Limit)]
	for i := range rows {
		rows[i].ReadAt = now
	}
	return rows, nil
}

// Census implements fence.Reviewer.
func (s *Store) Census(_ context.Context, scope string) (fence.Census, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c fence.Census
	now := s.now()
	for _, r := range s.rows {
		r.ReadAt = now
		age := now.Sub(r.LeaseUntil)
		switch {
		case r.Key.Scope != scope:
		case r.State == fence.NeedsReview:
			c.NeedsReview, c.OldestReview = c.NeedsReview+1, max(c.OldestReview, age)
		case r.State == fence.Unknown || r.State == fence.Claimed && r.LeaseOver():
			c.Unknown, c.OldestUnknown = c.Unknown+1, max(c.OldestUnknown, age)
		case r.State == fence.Claimed:
			c.Claimed++
		}
	}
	return c, nil
}
