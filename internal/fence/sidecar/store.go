// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"time"

	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/internal/fence/table"
)

// openAgain is the pause between two attempts to reach the database.
const openAgain = time.Second

var errStopped = errors.New("stopped before the database answered")

// open waits for the database; errStopped when ctx ends before.
func (s *Sidecar) open(ctx context.Context) (table.Table, error) {
	for {
		t, err := s.openOnce(ctx)
		var unfit *sqlfence.Unfit
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil:
			return nil, errStopped
		case errors.As(err, &unfit):
			return nil, err
		}
		s.Log.Error("the database cannot be used yet", "error", err)
		if s.Clock.Sleep(ctx, openAgain) != nil {
			return nil, errStopped
		}
	}
}

func (s *Sidecar) openOnce(ctx context.Context) (table.Table, error) {
	c := s.Config.Store
	return table.Open(ctx, table.Config{Driver: c.Driver, DSN: s.DSN, Table: c.Table, Existing: c.Schema == fenceconfig.SchemaExisting})
}
