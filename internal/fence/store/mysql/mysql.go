// SPDX-License-Identifier: Apache-2.0

// Package mysql keeps the fence in a MariaDB or MySQL table.
package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// Config says where the table is.
type Config struct {
	DSN      string // as go-sql-driver reads it
	Table    string // name or database.name
	Existing bool   // the table is somebody else's: verify it, create nothing
	MaxConns int    // 0 = 16
}

// Store is a fence.Store.
type Store struct {
	*sqlfence.Store
	db       *sqlfence.Database
	index    *indexWatch
	warnings []string
}

const defaultMaxConns = 16

// session holds what the statements rely on, whatever the server's defaults:
// times in UTC, no silently shortened values, no gap locks, short lock waits.
var session = map[string]string{
	"time_zone":                "'+00:00'",
	"sql_mode":                 "'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
	"innodb_lock_wait_timeout": "2",
}

// Open connects, and creates or verifies the table.
func Open(ctx context.Context, c Config) (*Store, error) {
	table, err := sqlfence.ParseTable(c.Table)
	if err != nil {
		return nil, err
	}
	db, err := connect(c)
	if err != nil {
		return nil, err
	}
	conn := &sqlfence.Database{DB: db, IsTransient: transient}
	s, err := open(ctx, conn, table, c.Existing)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

func connect(c Config) (*sql.DB, error) {
	config, err := driver.ParseDSN(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("the MySQL connection string: %w", err)
	}
	config.ClientFoundRows = true // an update that matches a row has applied, even if it changes nothing
	config.ParseTime, config.Loc = true, time.UTC
	config.MultiStatements = false
	config.Logger = &driver.NopLogger{} // every error is returned as well
	config.Collation = "utf8mb4_bin"
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	for name, value := range session {
		config.Params[name] = value
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("the MySQL connection string: %w", err)
	}
	db := sql.OpenDB(readCommitted{connector})
	limit := c.MaxConns
	if limit == 0 {
		limit = defaultMaxConns
	}
	db.SetMaxOpenConns(limit)
	db.SetMaxIdleConns(limit)
	db.SetConnMaxLifetime(5 * time.Minute) // below every usual wait_timeout
	return db, nil
}

// readCommitted sets the isolation level, whose variable MariaDB and MySQL name
// differently.
type readCommitted struct{ sqldriver.Connector }

func (c readCommitted) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	execer, ok := conn.(sqldriver.ExecerContext)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("the driver's %T runs no statements", conn)
	}
	if _, err := execer.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func open(ctx context.Context, conn *sqlfence.Database, t sqlfence.Table, existing bool) (*Store, error) {
	var version string
	if err := conn.DB.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return nil, fmt.Errorf("open MySQL: %w", err)
	}
	if !existing {
		if err := migrate(ctx, conn.DB, t); err != nil {
			return nil, err
		}
	}
	key, err := verify(ctx, conn, t)
	if err != nil {
		return nil, err
	}
	warnings, err := durability(ctx, conn.DB)
	if err != nil {
		return nil, err
	}
	var user sqlfence.Conn = conn
	if !strings.Contains(version, "MariaDB") {
		user = withoutReturning{conn}
	}
	d := dialect()
	d.First = first(t, key)
	return &Store{Store: sqlfence.New(user, d, t), db: conn, index: watchIndex(conn.DB, t, key), warnings: warnings}, nil
}

// Close ends the connections.
func (s *Store) Close() error {
	s.index.end()
	return s.db.Close()
}

// Warnings are to be shown at start.
func (s *Store) Warnings() []string { return s.warnings }

// The errors after which the statement has been rolled back for certain.
const (
	lockWaitTimeout = 1205
	deadlock        = 1213
	duplicateKey    = 1062
)

func transient(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && (e.Number == lockWaitTimeout || e.Number == deadlock)
}

const returning = " ON DUPLICATE KEY UPDATE scope = VALUES(scope) RETURNING "

func dialect() sqlfence.Dialect {
	const now = "UTC_TIMESTAMP(6)"
	return sqlfence.Dialect{
		Param:   func(int) string { return "?" },
		Now:     now,
		Plus:    func(micros string) string { return "(" + now + " + INTERVAL " + micros + " MICROSECOND)" },
		TimeArg: func(t time.Time) any { return t.UTC() },
		Quote:   func(name string) string { return "`" + name + "`" },
		Hidden:  func(column string) string { return "CONCAT(" + column + ")" },
		// The empty update makes RETURNING give the row that was there.
		Claim: func(insert, columns, now string, _ sqlfence.Table, _ sqlfence.Dialect) string {
			return insert + returning + columns + ", " + now
		},
		Forget: func(where, limit string, t sqlfence.Table, d sqlfence.Dialect) string {
			return fmt.Sprintf("DELETE FROM %s WHERE %s ORDER BY settled_at LIMIT %s", t.Quoted(d), where, limit)
		},
	}
}

// first is 1, said so that the server looks for the key's index: to it a
// duplicate is whatever an index happens to refuse, and without one every claim
// would be granted. Nothing is read. The derived table is how MySQL lets an
// INSERT name its own table.
func first(t sqlfence.Table, key string) string {
	d := dialect()
	return fmt.Sprintf("COALESCE(1, (SELECT n FROM (SELECT COUNT(*) AS n FROM %s USE INDEX (%s) WHERE FALSE) nothing))", t.Quoted(d), d.Quote(key))
}

// withoutReturning is for MySQL, which cannot answer an INSERT with a row: the
// claim is an INSERT that may meet a duplicate, and then no row comes back,
// for which Store.Claim reads.
type withoutReturning struct{ *sqlfence.Database }

func (c withoutReturning) Query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error {
	insert, _, isClaim := strings.Cut(text, returning)
	if !isClaim {
		return c.Database.Query(ctx, text, args, each)
	}
	_, err := c.Exec(ctx, insert, args)
	var e *driver.MySQLError
	if errors.As(err, &e) && e.Number == duplicateKey {
		return nil
	}
	return err
}

// durability warns of settings under which a committed claim can be lost.
func durability(ctx context.Context, db *sql.DB) ([]string, error) {
	var flush int
	if err := db.QueryRowContext(ctx, "SELECT @@innodb_flush_log_at_trx_commit").Scan(&flush); err != nil {
		return nil, fmt.Errorf("read a setting: %w", err)
	}
	if flush == 1 {
		return nil, nil
	}
	return []string{fmt.Sprintf("MySQL runs with innodb_flush_log_at_trx_commit = %d: a crash can lose a claim that was granted, and the effect may happen twice", flush)}, nil
}
