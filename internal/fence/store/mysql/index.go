// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// indexWatch looks again and again whether the key's index still keeps keys
// apart. A claim fails by itself once the index is gone, but not when another
// one, which is not unique, has taken its name.
type indexWatch struct {
	unfit   atomic.Pointer[sqlfence.Unfit] // nil: it is as it should be
	stop    context.CancelFunc
	working sync.WaitGroup
}

const (
	lookEvery = 5 * time.Second
	lookLimit = 5 * time.Second
)

func watchIndex(db *sql.DB, t sqlfence.Table, key string) *indexWatch {
	ctx, stop := context.WithCancel(context.Background())
	w := &indexWatch{stop: stop}
	w.working.Go(func() {
		every := time.NewTicker(lookEvery)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				w.look(ctx, db, t, key)
			}
		}
	})
	return w
}

// look keeps the last verdict where the database gives none.
func (w *indexWatch) look(ctx context.Context, db *sql.DB, t sqlfence.Table, key string) {
	limit, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	unfit := &sqlfence.Unfit{Table: t}
	now, err := verifyIndexes(limit, db, unfit, dialect())
	if err != nil {
		return
	}
	if now != "" && now != key {
		unfit.Add("", "the unique index is now %s, and claims name %s: replace the pods", now, key)
	}
	if len(unfit.Problems) == 0 {
		unfit = nil
	}
	w.unfit.Store(unfit)
}

func (w *indexWatch) end() {
	w.stop()
	w.working.Wait()
}

// Claim implements fence.Store.
func (s *Store) Claim(ctx context.Context, st fence.Statement) (fence.Row, error) {
	if unfit := s.index.unfit.Load(); unfit != nil {
		return fence.Row{}, unfit
	}
	return s.Store.Claim(ctx, st)
}
