// SPDX-License-Identifier: Apache-2.0

// Package table opens the fence's table in whichever database it is.
package table

import (
	"context"
	"fmt"
	"io"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/store/mysql"
	"github.com/queueworker/operator/internal/fence/store/postgres"
	"github.com/queueworker/operator/internal/fence/store/sqlite"
)

// Table is an open fence table.
type Table interface {
	fence.Store
	fence.Reviewer
	io.Closer
	Warnings() []string // to be shown at start
}

// Config says where the table is.
type Config struct {
	Driver   string // as fenceconfig has it
	DSN      string // SQLite: the file
	Table    string // name or schema.name
	Existing bool   // verify it and change nothing
}

// Open connects, and creates or verifies the table. A table that cannot serve
// is a *sqlfence.Unfit.
func Open(ctx context.Context, c Config) (Table, error) {
	switch c.Driver {
	case fenceconfig.DriverPostgreSQL:
		return opened(postgres.Open(ctx, postgres.Config{DSN: c.DSN, Table: c.Table, Existing: c.Existing}))
	case fenceconfig.DriverMySQL:
		return opened(mysql.Open(ctx, mysql.Config{DSN: c.DSN, Table: c.Table, Existing: c.Existing}))
	case fenceconfig.DriverSQLite:
		return opened(sqlite.Open(ctx, sqlite.Config{Path: c.DSN, Table: c.Table, Existing: c.Existing}))
	}
	return nil, fmt.Errorf("no database is called %q", c.Driver)
}

// opened keeps a nil pointer from becoming a Table.
func opened[T Table](t T, err error) (Table, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}
