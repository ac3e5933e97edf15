// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"fmt"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

var _ fence.Reviewer = (*Store)(nil)

// Unsettled implements fence.Reviewer.
func (s *Store) Unsettled(ctx context.Context, which fence.Unsettled) ([]fence.Row, error) {
	var args []any
	param := func(value any) string {
		args = append(args, value)
		return s.d.Param(len(args))
	}
	where := fmt.Sprintf("(state IN ('unknown', 'needs_review') OR state = 'claimed' AND lease_until < %s)", s.d.Now)
	if which.Scope != "" {
		where = "scope = " + param(which.Scope) + " AND state IN ('claimed', 'unknown', 'needs_review') AND " + where
	}
	text := fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s ORDER BY lease_until, scope, idem_key LIMIT %s",
		columnList, s.d.Now, s.table.Quoted(s.d), where, param(which.Limit))
	rows, err := query(ctx, s, text, args, scanRow)
	return rows, wrap("unsettled", err)
}

// Census implements fence.Reviewer.
func (s *Store) Census(ctx context.Context, scope string) (fence.Census, error) {
	text := fmt.Sprintf("SELECT CASE WHEN state = 'claimed' AND lease_until < %[1]s THEN 'unknown' ELSE state END AS counts_as,"+
		" COUNT(*), MIN(lease_until), %[1]s FROM %[2]s WHERE scope = %[3]s AND state IN ('claimed', 'unknown', 'needs_review') GROUP BY 1",
		s.d.Now, s.table.Quoted(s.d), s.d.Param(1))
	groups, err := query(ctx, s, text, []any{scope}, scanGroup)
	var census fence.Census
	for _, g := range groups {
		switch g.state {
		case fence.Claimed.String():
			census.Claimed = g.rows
		case fence.Unknown.String():
			census.Unknown, census.OldestUnknown = g.rows, g.age
		case fence.NeedsReview.String():
			census.NeedsReview, census.OldestReview = g.rows, g.age
		}
	}
	return census, wrap("census", err)
}

// group is what is counted of one state.
type group struct {
	state string
	rows  int
	age   time.Duration // of the oldest
}

func scanGroup(scan scanner) (g group, err error) {
	var oldest, now moment
	err = scan(&g.state, &g.rows, &oldest, &now)
	g.age = max(now.t.Sub(oldest.t), 0)
	return g, err
}
