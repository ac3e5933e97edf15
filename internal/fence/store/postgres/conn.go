// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// conn is sqlfence.Conn over a pool. Every statement is a transaction. It uses
// the library's lower half: the few types of the table are turned into bytes
// and back here (see wire.go), which takes half the time of a general mapping.
type conn struct {
	pool *pgxpool.Pool
	// unnamed: statements are not kept by the server, for poolers that give
	// each transaction another connection.
	unnamed bool
}

func newConn(pool *pgxpool.Pool) conn {
	return conn{pool, pool.Config().ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement}
}

// Exec implements sqlfence.Conn.
func (c conn) Exec(ctx context.Context, sql string, args []any) (int64, error) {
	held, err := c.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer held.Release()
	result, err := c.start(ctx, held.Conn(), sql, args)
	if err != nil {
		return 0, err
	}
	tag, err := result.Close()
	return tag.RowsAffected(), c.forgetAfter(ctx, held.Conn(), sql, err)
}

// Query implements sqlfence.Conn.
func (c conn) Query(ctx context.Context, sql string, args []any, each func(scan func(...any) error) error) error {
	held, err := c.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	result, err := c.start(ctx, held.Conn(), sql, args)
	if err != nil {
		return err
	}
	var wrong error
	scan := func(dest ...any) error { return decode(dest, result.Values(), result.FieldDescriptions()) }
	for wrong == nil && result.NextRow() {
		wrong = each(scan)
	}
	_, err = result.Close() // it reads what is left
	if err == nil {
		return wrong
	}
	return c.forgetAfter(ctx, held.Conn(), sql, err)
}

// asBinary is the format of everything that is read.
var asBinary = []int16{pgx.BinaryFormatCode}

// start sends the statement, which is prepared on the connection's first use of
// it.
func (c conn) start(ctx context.Context, on *pgx.Conn, sql string, args []any) (*pgconn.ResultReader, error) {
	values, formats, err := encode(args)
	if err != nil {
		return nil, err
	}
	if c.unnamed {
		return on.PgConn().ExecParams(ctx, sql, values, nil, formats, asBinary), nil
	}
	prepared, err := on.Prepare(ctx, sql, sql)
	if err != nil {
		return nil, err
	}
	return on.PgConn().ExecStatement(ctx, prepared, values, formats, asBinary), nil
}

// forgetAfter lets the connection prepare the statement anew after the server
// refused it: the table may have changed, or a pooler between may have lost the
// statement.
func (c conn) forgetAfter(ctx context.Context, on *pgx.Conn, sql string, err error) error {
	if err == nil || c.Transient(err) {
		return err
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !on.IsClosed() {
		_ = on.Deallocate(ctx, sql) // where it fails the connection is closed
	}
	return err
}

// Transient: the server rolled back and says so.
func (conn) Transient(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return true
	}
	return false
}
