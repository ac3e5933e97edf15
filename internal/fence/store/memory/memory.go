// SPDX-License-Identifier: Apache-2.0

// Package memory is the reference store: the meaning of every statement and
// nothing else. It is for tests, since it fences nothing outside one process.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// Store keeps rows in a map.
type Store struct {
	now  func() time.Time
	mu   sync.Mutex
	rows map[fence.Key]fence.Row
}

var _ fence.Store = (*Store)(nil)

// New returns an empty store that lives by the given clock.
func New(now func() time.Time) *Store {
	return &Store{now: now, rows: map[fence.Key]fence.Row{}}
}

// Claim implements fence.Store.
func (s *Store) Claim(_ context.Context, st fence.Statement) (fence.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, _ := s.apply(st)
	return row, nil
}

// Apply implements fence.Store.
func (s *Store) Apply(_ context.Context, st fence.Statement) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, applied := s.apply(st)
	return applied, nil
}

func (s *Store) apply(st fence.Statement) (fence.Row, bool) {
	now := s.now()
	row, applied := fence.Apply(s.rows[st.Key], st, now)
	if applied {
		s.rows[st.Key] = row
	}
	row.ReadAt = now
	return row, applied
}

// Read implements fence.Store.
func (s *Store) Read(_ context.Context, key fence.Key) (fence.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[key]
	if !ok {
		return fence.Row{}, fence.ErrNoRow
	}
	row.ReadAt = s.now()
	return row, nil
}

// Put sets a row as it is; a test's way into any situation.
func (s *Store) Put(row fence.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[row.Key] = row
}

// Sweepable implements fence.Store.
func (s *Store) Sweepable(_ context.Context, which fence.Sweepable) ([]fence.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	found := s.sorted(func(r fence.Row) bool {
		r.ReadAt = now
		return r.Key.Scope == which.Scope &&
			(r.State == fence.Claimed && r.LeaseOver() ||
				r.State == fence.Unknown && r.Quiet() && r.CheckedAt.Before(now.Add(-which.Recheck)))
	}, func(r fence.Row) time.Time { return r.CheckedAt })
	found = found[:min(len(found), which.Batch)]
	for i := range found {
		found[i].ReadAt = now
	}
	return found, nil
}

// Trim implements fence.Store.
func (s *Store) Trim(_ context.Context, which fence.Trimmable) (fence.Trimmed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.now().Add(-which.Age)
	rows := s.sorted(func(r fence.Row) bool {
		return r.Key.Scope == which.Scope && r.State == fence.Done && r.SettledAt.Before(old) &&
			!r.SettledAt.Before(which.After) && r.Response != nil && r.Response.Body != nil
	}, func(r fence.Row) time.Time { return r.SettledAt })
	rows = rows[:min(len(rows), which.Batch)]
	var done fence.Trimmed
	for _, r := range rows {
		tombstone := *r.Response
		tombstone.Headers, tombstone.Body = nil, nil
		r.Response = &tombstone
		s.rows[r.Key] = r
		done = fence.Trimmed{Rows: done.Rows + 1, Upto: r.SettledAt}
	}
	return done, nil
}

// Forget implements fence.Store.
func (s *Store) Forget(_ context.Context, which fence.Forgettable) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if which.State != fence.Done && which.State != fence.Released {
		return 0, fence.ErrNotForgettable
	}
	old := s.now().Add(-which.Age)
	rows := s.sorted(func(r fence.Row) bool {
		return r.Key.Scope == which.Scope && r.State == which.State && r.SettledAt.Before(old)
	}, func(r fence.Row) time.Time { return r.SettledAt })
	rows = rows[:min(len(rows), which.Batch)]
	for _, r := range rows {
		delete(s.rows, r.Key)
	}
	return len(rows), nil
}

func (s *Store) sorted(keep func(fence.Row) bool, by func(fence.Row) time.Time) []fence.Row {
	var found []fence.Row
	for _, r := range s.rows {
		if keep(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b fence.Row) int {
		return cmp.Or(by(a).Compare(by(b)), cmp.Compare(a.Key.ID, b.Key.ID))
	})
	return found
}
