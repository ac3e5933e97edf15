// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// Rewritten is the store with every change of a row rewritten on its way.
func Rewritten(s *Store, table string, rewrite func(sql string) string) fence.Store {
	return sqlfence.New(rewriting{s.db, rewrite}, dialect(databaseClock), sqlfence.Table{Name: table})
}

type rewriting struct {
	*sqlfence.Database
	rewrite func(sql string) string
}

func (r rewriting) Exec(ctx context.Context, sql string, args []any) (int64, error) {
	return r.Database.Exec(ctx, r.rewrite(sql), args)
}
