// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// Store is fence.Store over a connection and a dialect.
type Store struct {
	conn  Conn
	d     Dialect
	table Table

	claim   built
	updates map[fence.Op]built
	read    string
	sweep   string
	trimTo  string
	trim    string
	forget  string
}

var _ fence.Store = (*Store)(nil)

// New builds the statements once.
func New(conn Conn, d Dialect, t Table) *Store {
	s := &Store{conn: conn, d: d, table: t, claim: d.claim(t), updates: map[fence.Op]built{}}
	for _, op := range fence.Ops() {
		if op != fence.OpClaim {
			s.updates[op] = d.update(t, op)
		}
	}
	from := fmt.Sprintf("SELECT %s, %s FROM %s WHERE ", columnList, d.Now, t.Quoted(d))
	s.read = from + fmt.Sprintf("scope = %s AND idem_key = %s", d.Param(1), d.Param(2))
	s.sweep = from + fmt.Sprintf("scope = %s AND state IN ('claimed', 'unknown') AND (state = 'claimed' AND lease_until < %s"+
		" OR state = 'unknown' AND quiet_until < %s AND (checked_at IS NULL OR checked_at < %s))"+
		" ORDER BY COALESCE(checked_at, first_sent_at) LIMIT %s",
		d.Param(1), d.Now, d.Now, d.Plus(d.Param(2)), d.Param(3))
	old := fmt.Sprintf("scope = %s AND state = 'done' AND body IS NOT NULL AND settled_at < %s AND settled_at >= %s",
		d.Param(1), d.Plus(d.Param(2)), d.Param(3))
	s.trimTo = fmt.Sprintf("SELECT MAX(b.settled_at) FROM (SELECT settled_at FROM %s WHERE %s ORDER BY settled_at LIMIT %s) b",
		t.Quoted(d), old, d.Param(4))
	s.trim = fmt.Sprintf("UPDATE %s SET headers = NULL, body = NULL WHERE scope = %s AND state = 'done' AND body IS NOT NULL"+
		" AND settled_at < %s AND settled_at >= %s AND settled_at <= %s",
		t.Quoted(d), d.Param(1), d.Plus(d.Param(2)), d.Param(3), d.Param(4))
	s.forget = d.Forget(fmt.Sprintf("scope = %s AND state = %s AND settled_at < %s",
		d.Param(1), d.Param(2), d.Plus(d.Param(3))), d.Param(4), t, d)
	return s
}

// Claim implements fence.Store in one statement: insert, or else read.
func (s *Store) Claim(ctx context.Context, st fence.Statement) (fence.Row, error) {
	rows, err := query(ctx, s, s.claim.sql, s.claim.args(&st), func(scan scanner) (fence.Row, error) { return scanClaimed(scan, &st) })
	if err != nil {
		return fence.Row{}, fmt.Errorf("claim: %w", err)
	}
	if len(rows) == 0 { // lost a race the statement could not see
		row, err := s.Read(ctx, st.Key)
		if errors.Is(err, fence.ErrNoRow) {
			return fence.Row{Key: st.Key}, nil
		}
		return row, err
	}
	row := rows[0]
	if row.Key != st.Key {
		return fence.Row{}, fmt.Errorf("claim of %q met the row of %q: the table has another unique index", st.Key.ID, row.Key.ID)
	}
	return row, nil
}

// Apply implements fence.Store.
func (s *Store) Apply(ctx context.Context, st fence.Statement) (bool, error) {
	update, ok := s.updates[st.Op]
	if !ok {
		return false, fmt.Errorf("%s is not an update", st.Op)
	}
	matched, err := s.exec(ctx, update.sql, update.args(&st))
	if err != nil {
		return false, fmt.Errorf("%s: %w", st.Op, err)
	}
	return matched > 0, nil
}

// Read implements fence.Store.
func (s *Store) Read(ctx context.Context, key fence.Key) (fence.Row, error) {
	rows, err := query(ctx, s, s.read, []any{key.Scope, key.ID}, scanRow)
	switch {
	case err != nil:
		return fence.Row{}, fmt.Errorf("read: %w", err)
	case len(rows) == 0:
		return fence.Row{}, fence.ErrNoRow
	}
	return rows[0], nil
}

// Sweepable implements fence.Store.
func (s *Store) Sweepable(ctx context.Context, which fence.Sweepable) ([]fence.Row, error) {
	rows, err := query(ctx, s, s.sweep, []any{which.Scope, -which.Recheck.Microseconds(), which.Batch}, scanRow)
	if err != nil {
		return nil, fmt.Errorf("sweepable: %w", err)
	}
	return rows, nil
}

// Trim implements fence.Store in two statements: done rows never change, so
// nothing can happen between them.
func (s *Store) Trim(ctx context.Context, which fence.Trimmable) (fence.Trimmed, error) {
	after := which.After
	if after.IsZero() {
		after = time.Unix(0, 0)
	}
	args := []any{which.Scope, -which.Age.Microseconds(), s.d.TimeArg(after)}
	latest, err := query(ctx, s, s.trimTo, append(args, which.Batch), scanMoment)
	if err != nil || len(latest) == 0 || latest[0].t.IsZero() {
		return fence.Trimmed{}, wrap("trim", err)
	}
	upto := latest[0]
	trimmed, err := s.exec(ctx, s.trim, append(args[:3:3], s.d.TimeArg(upto.t)))
	if err != nil {
		return fence.Trimmed{}, wrap("trim", err)
	}
	return fence.Trimmed{Rows: int(trimmed), Upto: upto.t}, nil
}

// Forget implements fence.Store.
func (s *Store) Forget(ctx context.Context, which fence.Forgettable) (int, error) {
	if which.State != fence.Done && which.State != fence.Released {
		return 0, fence.ErrNotForgettable
	}
	deleted, err := s.exec(ctx, s.forget, []any{which.Scope, which.State.String(), -which.Age.Microseconds(), which.Batch})
	return int(deleted), wrap("forget", err)
}

// scanner reads the values of one row.
type scanner = func(dest ...any) error

// query runs a statement that answers with rows. A read, too, may fail to
// serialize and is then run again.
func query[T any](ctx context.Context, s *Store, sql string, args []any, read func(scanner) (T, error)) ([]T, error) {
	var rows []T
	err := s.retry(ctx, func() error {
		rows = nil
		return s.conn.Query(ctx, sql, args, func(scan func(...any) error) error {
			row, err := read(scan)
			rows = append(rows, row)
			return err
		})
	})
	return rows, err
}

func (s *Store) exec(ctx context.Context, sql string, args []any) (matched int64, err error) {
	err = s.retry(ctx, func() (err error) {
		matched, err = s.conn.Exec(ctx, sql, args)
		return err
	})
	return matched, err
}

// retry runs a statement again when the database says that it was rolled back:
// it certainly did not apply, so the same token may be tried again. The
// context's end is the budget.
func (s *Store) retry(ctx context.Context, run func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := run()
		if err == nil || !s.conn.Transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // jitter, not a secret
		}
	}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Texts are the statements as they are sent, so that a database can be asked
// how it would run them. OpClaim's is the claim.
func Texts(s *Store) map[fence.Op]string {
	texts := map[fence.Op]string{fence.OpClaim: s.claim.sql}
	for op, u := range s.updates {
		texts[op] = u.sql
	}
	return texts
}
