// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// column is how a column is created, and which types will do.
type column struct {
	definition string
	types      []string
}

var (
	keyText = []string{"text", "character varying"} // not char(n): it drops trailing spaces
	texts   = []string{"text", "character varying"}
	numbers = []string{"smallint", "integer", "bigint"}
	bytes   = []string{"bytea"}
	times   = []string{"timestamp with time zone"}
)

var columns = map[string]column{
	"scope": {`text COLLATE "C" NOT NULL`, keyText}, "idem_key": {`text COLLATE "C" NOT NULL`, keyText},
	"fingerprint": {"bytea NOT NULL", bytes}, "state": {`text COLLATE "C" NOT NULL`, texts}, "token": {"bytea NOT NULL", bytes},
	"attempt": {"integer NOT NULL", numbers}, "owner": {"text NOT NULL", texts},
	"lease_until": {"timestamptz NOT NULL", times}, "quiet_until": {"timestamptz NOT NULL", times}, "first_sent_at": {"timestamptz NOT NULL", times},
	"doubt": {"smallint NOT NULL DEFAULT 0", numbers}, "generation": {"integer NOT NULL DEFAULT 0", numbers}, "resends": {"integer NOT NULL DEFAULT 0", numbers},
	"outcome": {"text NOT NULL DEFAULT ''", texts}, "status": {"integer NOT NULL DEFAULT 0", numbers},
	"headers": {"bytea", bytes}, "body": {"bytea", bytes}, "body_digest": {"bytea", bytes}, "provider_id": {"text NOT NULL DEFAULT ''", texts},
	"reason": {"text NOT NULL DEFAULT ''", texts}, "settled_by": {"text NOT NULL DEFAULT ''", texts}, "settled_who": {"text NOT NULL DEFAULT ''", texts},
	"settled_at": {"timestamptz", times}, "checked_at": {"timestamptz", times},
}

func createTable(t sqlfence.Table, d sqlfence.Dialect) string {
	lines := make([]string, len(sqlfence.Columns))
	for i, c := range sqlfence.Columns {
		lines[i] = "  " + c + " " + columns[c].definition
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s,\n  PRIMARY KEY (scope, idem_key)\n)", t.Quoted(d), strings.Join(lines, ",\n"))
}

// migrations lead from each version to the next. A released one never changes.
func migrations(t sqlfence.Table, d sqlfence.Dialect) [][]string {
	return [][]string{{
		createTable(t, d),
		fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s (scope, state, settled_at)", d.Quote(t.Name+"_settled"), t.Quoted(d)),
	}}
}

// migrate brings a managed table up to date. Several sidecars may start at
// once: one works, the others wait for it. A newer version is left alone;
// verify tells whether it still serves.
func migrate(ctx context.Context, pool *pgxpool.Pool, t sqlfence.Table) error {
	d := dialect()
	versions := t.With("_version")
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "queueworker fence "+t.String())
		if err == nil {
			_, err = tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+versions.Quoted(d)+" (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())")
		}
		var version int
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT COALESCE(MAX(version), 0) FROM "+versions.Quoted(d)).Scan(&version)
		}
		for _, step := range stepsFrom(version, t, d) {
			if err == nil {
				_, err = tx.Exec(ctx, step)
			}
		}
		if err != nil {
			return fmt.Errorf("create the fence table %s: %w", t, err)
		}
		return nil
	})
}

// stepsFrom lists what a table of that version still needs.
func stepsFrom(version int, t sqlfence.Table, d sqlfence.Dialect) []string {
	var steps []string
	for i, migration := range migrations(t, d) {
		if i >= version {
			steps = append(steps, migration...)
			steps = append(steps, fmt.Sprintf("INSERT INTO %s (version) VALUES (%d)", t.With("_version").Quoted(d), i+1))
		}
	}
	return steps
}

// verify holds the table to what the statements need.
func verify(ctx context.Context, pool *pgxpool.Pool, t sqlfence.Table) error {
	d := dialect()
	unfit := &sqlfence.Unfit{Table: t}
	var readOnly bool
	if err := pool.QueryRow(ctx, "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool").Scan(&readOnly); err != nil {
		return fmt.Errorf("ask PostgreSQL: %w", err)
	}
	if readOnly {
		unfit.Add("", "the server is read-only or a standby: the fence must speak to the primary")
		return unfit
	}
	var exists bool
	if err := pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", t.Quoted(d)).Scan(&exists); err != nil {
		return fmt.Errorf("look for %s: %w", t, err)
	}
	if !exists {
		unfit.Add(createTable(t, d), "the table does not exist")
		return unfit
	}
	if err := verifyColumns(ctx, pool, unfit, d); err != nil {
		return err
	}
	if err := verifyIndexes(ctx, pool, unfit, d); err != nil {
		return err
	}
	if len(unfit.Problems) == 0 {
		unfit.ProbeWrites(ctx, newConn(pool), d, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s", t.Quoted(d), d.Quote(pool.Config().ConnConfig.User)))
	}
	return unfit.OrNil()
}

func verifyColumns(ctx context.Context, pool *pgxpool.Pool, unfit *sqlfence.Unfit, d sqlfence.Dialect) error {
	type found struct {
		Name, Type    string
		Deterministic bool
	}
	rows, err := pool.Query(ctx, `
		SELECT a.attname, format_type(a.atttypid, NULL), COALESCE(c.collisdeterministic, true)
		FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped`, unfit.Table.Quoted(d))
	if err != nil {
		return fmt.Errorf("describe %s: %w", unfit.Table, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[found])
	if err != nil {
		return fmt.Errorf("describe %s: %w", unfit.Table, err)
	}
	for _, name := range sqlfence.Columns {
		i := slices.IndexFunc(all, func(f found) bool { return f.Name == name })
		want := columns[name]
		alter := fmt.Sprintf("ALTER TABLE %s ", unfit.Table.Quoted(d))
		baseType, _, _ := strings.Cut(want.definition, " NOT NULL")
		baseType, _, _ = strings.Cut(baseType, " DEFAULT")
		change := fmt.Sprintf("%sALTER COLUMN %s TYPE %s", alter, name, baseType)
		switch {
		case i < 0:
			unfit.Add(alter+"ADD COLUMN "+name+" "+want.definition, "the column %s is missing", name)
		case !slices.Contains(want.types, all[i].Type):
			unfit.Add(change, "the column %s is %s, it must be %s", name, all[i].Type, strings.Join(want.types, " or "))
		case (name == "scope" || name == "idem_key" || name == "state") && !all[i].Deterministic:
			unfit.Add(change, "the collation of %s takes different texts for equal: two keys would become one", name)
		}
	}
	return nil
}

func verifyIndexes(ctx context.Context, pool *pgxpool.Pool, unfit *sqlfence.Unfit, d sqlfence.Dialect) error {
	// Partial, deferrable, invalid or expression indexes keep no keys apart.
	rows, err := pool.Query(ctx, `
		SELECT i.relname, array_agg(a.attname::text ORDER BY a.attnum)
		FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY((x.indkey::int2[])[0:x.indnkeyatts - 1])
		WHERE x.indrelid = to_regclass($1) AND x.indisunique AND x.indisvalid AND x.indimmediate
		AND x.indpred IS NULL AND x.indexprs IS NULL
		GROUP BY i.relname ORDER BY i.relname`, unfit.Table.Quoted(d))
	if err != nil {
		return fmt.Errorf("indexes of %s: %w", unfit.Table, err)
	}
	unique, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sqlfence.Index])
	if err != nil {
		return fmt.Errorf("indexes of %s: %w", unfit.Table, err)
	}
	unfit.JudgeIndexes(unique, fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (scope, idem_key)", d.Quote(unfit.Table.Name+"_key"), unfit.Table.Quoted(d)))
	return nil
}
