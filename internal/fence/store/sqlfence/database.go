// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"database/sql"
	"sync"
)

// Database is Conn over database/sql. Statements are prepared once.
type Database struct {
	DB          *sql.DB
	IsTransient func(error) bool

	mu       sync.RWMutex
	prepared map[string]*sql.Stmt
}

var _ Conn = (*Database)(nil)

func (c *Database) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	c.mu.RLock()
	known := c.prepared[text]
	c.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	statement, err := c.DB.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.prepared[text]; known != nil { // somebody was faster
		_ = statement.Close()
		return known, nil
	}
	if c.prepared == nil {
		c.prepared = map[string]*sql.Stmt{}
	}
	c.prepared[text] = statement
	return statement, nil
}

// Exec implements Conn.
func (c *Database) Exec(ctx context.Context, text string, args []any) (int64, error) {
	statement, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	result, err := statement.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query implements Conn.
func (c *Database) Query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error {
	statement, err := c.prepare(ctx, text)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(func(dest ...any) error { return rows.Scan(orSkipped(dest)...) }); err != nil {
			return err
		}
	}
	return rows.Err()
}

// skipped takes any value and keeps nothing.
type skipped struct{}

func (skipped) Scan(any) error { return nil }

func orSkipped(dest []any) []any {
	for i := range dest {
		if dest[i] == nil {
			dest[i] = skipped{}
		}
	}
	return dest
}

// Transient implements Conn.
func (c *Database) Transient(err error) bool { return c.IsTransient(err) }

// Close ends the statements and the connections.
func (c *Database) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, statement := range c.prepared {
		_ = statement.Close()
	}
	c.prepared = nil
	return c.DB.Close()
}
