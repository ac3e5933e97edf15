// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the fence in a PostgreSQL table.
package postgres

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// Config says where the table is.
type Config struct {
	DSN      string // as pgxpool reads it; pool_max_conns bounds the connections
	Table    string // name or schema.name
	Existing bool   // the table is somebody else's: verify it, create nothing
}

// Store is a fence.Store.
type Store struct {
	*sqlfence.Store
	pool     *pgxpool.Pool
	warnings []string
}

// Open connects, and creates or verifies the table.
func Open(ctx context.Context, c Config) (*Store, error) {
	table, err := sqlfence.ParseTable(c.Table)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("the PostgreSQL connection string: %w", err)
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return direct(c), nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	s := &Store{Store: sqlfence.New(newConn(pool), dialect(), table), pool: pool}
	if !c.Existing {
		err = migrate(ctx, pool, table)
	}
	if err == nil {
		err = verify(ctx, pool, table)
	}
	if err == nil {
		s.warnings, err = durability(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Warnings are to be shown at start.
func (s *Store) Warnings() []string { return s.warnings }

func dialect() sqlfence.Dialect {
	const now = "statement_timestamp()"
	return sqlfence.Dialect{
		Param:   func(n int) string { return fmt.Sprintf("$%d", n) },
		Now:     now,
		Plus:    func(micros string) string { return "(" + now + " + " + micros + "::bigint * interval '1 microsecond')" },
		TimeArg: func(t time.Time) any { return t },
		Quote:   func(name string) string { return pgx.Identifier{name}.Sanitize() },
		Hidden:  func(column string) string { return "(" + column + " || '')" },
		// The second half does not see what the first one inserts.
		Claim: func(insert, columns, now string, t sqlfence.Table, d sqlfence.Dialect) string {
			return fmt.Sprintf("WITH granted AS (%s ON CONFLICT (scope, idem_key) DO NOTHING RETURNING %s)"+
				" SELECT %s, %s FROM granted UNION ALL SELECT %s, %s FROM %s WHERE scope = $1 AND idem_key = $2",
				insert, columns, columns, now, columns, now, t.Quoted(d))
		},
		// An array, so that the inner choice is made once; the outer condition
		// is judged again on a row that changed meanwhile.
		Forget: func(where, limit string, t sqlfence.Table, d sqlfence.Dialect) string {
			return fmt.Sprintf("DELETE FROM %[1]s WHERE ctid = ANY(ARRAY(SELECT ctid FROM %[1]s WHERE %[2]s"+
				" ORDER BY settled_at LIMIT %[3]s FOR UPDATE SKIP LOCKED)) AND %[2]s", t.Quoted(d), where, limit)
		},
	}
}

// durability warns of settings under which a committed claim can be lost.
func durability(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	var warnings []string
	for setting, want := range map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"} {
		var value string
		if err := pool.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&value); err != nil {
			return nil, fmt.Errorf("read the setting %s: %w", setting, err)
		}
		if setting == "synchronous_commit" && value == want || setting != "synchronous_commit" && value != want {
			warnings = append(warnings, fmt.Sprintf("PostgreSQL runs with %s = %s: a crash can lose a claim that was granted, and the effect may happen twice", setting, value))
		}
	}
	return warnings, nil
}
