// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps the fence in a file, for demonstrations and for tests
// of the protocol.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// Warning must be shown when a fence starts on this store.
const Warning = "the fence keeps its table in a SQLite file: a file per pod fences nothing across pods; use PostgreSQL or MySQL for real work"

// Config says where the file is.
type Config struct {
	Path     string
	Table    string
	Existing bool   // the table is somebody else's: verify it, create nothing
	Clock    string // SQL for the time in microseconds since 1970; "" = the database's clock
}

// Store is a fence.Store.
type Store struct {
	*sqlfence.Store
	db *sqlfence.Database
}

const databaseClock = "(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000)"

// Open creates or verifies the table.
func Open(ctx context.Context, c Config) (*Store, error) {
	table, err := sqlfence.ParseTable(c.Table)
	if err != nil {
		return nil, err
	}
	if table.Schema != "" {
		return nil, fmt.Errorf("table name %q: SQLite has no schemas", c.Table)
	}
	if c.Clock == "" {
		c.Clock = databaseClock
	}
	pragmas := url.Values{"_pragma": {"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(c.Path)+"?"+pragmas.Encode())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", c.Path, err)
	}
	d := dialect(c.Clock)
	conn := &sqlfence.Database{DB: db, IsTransient: transient}
	if err := prepare(ctx, conn, table, d, c.Existing); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Store{Store: sqlfence.New(conn, d, table), db: conn}, nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.db.Close() }

// Warnings are to be shown at start.
func (s *Store) Warnings() []string { return []string{Warning} }

func transient(err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) {
		return false
	}
	primary := e.Code() & 0xff
	return primary == codes.SQLITE_BUSY || primary == codes.SQLITE_LOCKED
}

func dialect(clock string) sqlfence.Dialect {
	return sqlfence.Dialect{
		Param:   func(n int) string { return fmt.Sprintf("?%d", n) },
		Now:     clock,
		Plus:    func(micros string) string { return "(" + clock + " + " + micros + ")" },
		TimeArg: func(t time.Time) any { return t.UnixMicro() },
		Quote:   func(name string) string { return `"` + name + `"` },
		Hidden:  func(column string) string { return "+" + column },
		// The empty update makes RETURNING give the row that was there.
		Claim: func(insert, columns, now string, _ sqlfence.Table, _ sqlfence.Dialect) string {
			return insert + " ON CONFLICT (scope, idem_key) DO UPDATE SET scope = excluded.scope RETURNING " + columns + ", " + now
		},
		Forget: func(where, limit string, t sqlfence.Table, d sqlfence.Dialect) string {
			return fmt.Sprintf("DELETE FROM %[1]s WHERE rowid IN (SELECT rowid FROM %[1]s WHERE %[2]s ORDER BY settled_at LIMIT %[3]s)",
				t.Quoted(d), where, limit)
		},
	}
}

// definitions are the columns of the table.
var definitions = map[string]string{
	"scope": "TEXT NOT NULL", "idem_key": "TEXT NOT NULL", "fingerprint": "BLOB NOT NULL",
	"state": "TEXT NOT NULL", "token": "BLOB NOT NULL", "attempt": "INTEGER NOT NULL", "owner": "TEXT NOT NULL",
	"lease_until": "INTEGER NOT NULL", "quiet_until": "INTEGER NOT NULL", "first_sent_at": "INTEGER NOT NULL",
	"doubt": "INTEGER NOT NULL DEFAULT 0", "generation": "INTEGER NOT NULL DEFAULT 0", "resends": "INTEGER NOT NULL DEFAULT 0",
	"outcome": "TEXT NOT NULL DEFAULT ''", "status": "INTEGER NOT NULL DEFAULT 0",
	"headers": "BLOB", "body": "BLOB", "body_digest": "BLOB", "provider_id": "TEXT NOT NULL DEFAULT ''",
	"reason": "TEXT NOT NULL DEFAULT ''", "settled_by": "TEXT NOT NULL DEFAULT ''", "settled_who": "TEXT NOT NULL DEFAULT ''",
	"settled_at": "INTEGER", "checked_at": "INTEGER",
}

func createTable(t sqlfence.Table, d sqlfence.Dialect) string {
	lines := make([]string, len(sqlfence.Columns))
	for i, c := range sqlfence.Columns {
		lines[i] = "  " + c + " " + definitions[c]
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s,\n  PRIMARY KEY (scope, idem_key)\n) STRICT",
		t.Quoted(d), strings.Join(lines, ",\n"))
}

func prepare(ctx context.Context, conn *sqlfence.Database, t sqlfence.Table, d sqlfence.Dialect, existing bool) error {
	if !existing {
		for _, statement := range []string{
			createTable(t, d),
			fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s (scope, state, settled_at)", d.Quote(t.Name+"_settled"), t.Quoted(d)),
		} {
			if _, err := conn.DB.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("create the fence table %s: %w", t, err)
			}
		}
	}
	return verify(ctx, conn, t, d)
}

func verify(ctx context.Context, conn *sqlfence.Database, t sqlfence.Table, d sqlfence.Dialect) error {
	unfit := &sqlfence.Unfit{Table: t}
	var found int
	if err := conn.DB.QueryRowContext(ctx, "SELECT COUNT(*) FROM pragma_table_info(?)", t.Name).Scan(&found); err != nil {
		return fmt.Errorf("describe %s: %w", t, err)
	}
	if found == 0 {
		unfit.Add(createTable(t, d), "the table does not exist")
		return unfit
	}
	for _, c := range sqlfence.Columns {
		if err := conn.DB.QueryRowContext(ctx, "SELECT COUNT(*) FROM pragma_table_info(?) WHERE name = ?", t.Name, c).Scan(&found); err != nil {
			return fmt.Errorf("describe %s: %w", t, err)
		}
		if found == 0 {
			unfit.Add("", "the column %s (%s) is missing", c, definitions[c])
		}
	}
	unique, err := uniqueIndexes(ctx, conn.DB, t)
	if err != nil {
		return err
	}
	unfit.JudgeIndexes(unique, fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (scope, idem_key)", d.Quote(t.Name+"_key"), t.Quoted(d)))
	if len(unfit.Problems) == 0 {
		unfit.ProbeWrites(ctx, conn, d, "")
	}
	return unfit.OrNil()
}

// uniqueIndexes leaves out partial ones and those that compare otherwise than
// byte by byte, since neither keeps keys apart.
func uniqueIndexes(ctx context.Context, db *sql.DB, t sqlfence.Table) ([]sqlfence.Index, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT l.name, x.name FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) x
		WHERE l."unique" = 1 AND l.partial = 0 AND x.key = 1
		AND NOT EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name) y WHERE y.key = 1 AND y.coll <> 'BINARY')
		ORDER BY l.name, x.seqno`, t.Name)
	if err != nil {
		return nil, fmt.Errorf("indexes of %s: %w", t, err)
	}
	defer func() { _ = rows.Close() }()
	var all []sqlfence.Index
	for rows.Next() {
		var index, column string
		if err := rows.Scan(&index, &column); err != nil {
			return nil, fmt.Errorf("indexes of %s: %w", t, err)
		}
		if len(all) == 0 || all[len(all)-1].Name != index {
			all = append(all, sqlfence.Index{Name: index})
		}
		last := &all[len(all)-1]
		last.Columns = append(last.Columns, column)
	}
	return all, rows.Err()
}
