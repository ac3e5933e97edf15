// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// column is how a column is created, and which types will do.
type column struct {
	definition string
	types      []string
}

var (
	texts   = []string{"varchar", "text", "mediumtext", "longtext", "varbinary", "blob"}
	numbers = []string{"tinyint", "smallint", "int", "bigint"}
	bytes   = []string{"varbinary", "blob", "mediumblob", "longblob", "binary"}
	times   = []string{"datetime"}
)

var columns = map[string]column{
	"scope": {"VARBINARY(64) NOT NULL", keyTypes}, "idem_key": {"VARBINARY(255) NOT NULL", keyTypes},
	"fingerprint": {"BINARY(32) NOT NULL", bytes}, "state": {"VARCHAR(16) NOT NULL", texts}, "token": {"BINARY(16) NOT NULL", bytes},
	"attempt": {"INT NOT NULL", numbers}, "owner": {"VARCHAR(255) NOT NULL", texts},
	"lease_until": {"DATETIME(6) NOT NULL", times}, "quiet_until": {"DATETIME(6) NOT NULL", times}, "first_sent_at": {"DATETIME(6) NOT NULL", times},
	"doubt": {"TINYINT NOT NULL DEFAULT 0", numbers}, "generation": {"INT NOT NULL DEFAULT 0", numbers}, "resends": {"INT NOT NULL DEFAULT 0", numbers},
	"outcome": {"VARCHAR(16) NOT NULL DEFAULT ''", texts}, "status": {"INT NOT NULL DEFAULT 0", numbers},
	"headers": {"MEDIUMBLOB", bytes}, "body": {"LONGBLOB", bytes}, "body_digest": {"BINARY(32)", bytes}, "provider_id": {"VARCHAR(255) NOT NULL DEFAULT ''", texts},
	"reason": {"VARCHAR(1000) NOT NULL DEFAULT ''", texts}, "settled_by": {"VARCHAR(16) NOT NULL DEFAULT ''", texts}, "settled_who": {"VARCHAR(255) NOT NULL DEFAULT ''", texts},
	"settled_at": {"DATETIME(6)", times}, "checked_at": {"DATETIME(6)", times},
}

// keyTypes: VARBINARY, or text whose collation keeps case and trailing spaces
// apart. Not BINARY(n), which fills up with zeros.
var keyTypes = []string{"varbinary", "varchar"}

// exact lists the collations that neither fold letters nor pad. A plain _bin
// collation still takes "a" and "a " for equal.
func exact(collation string) bool {
	return collation == "" || collation == "binary" || strings.HasSuffix(collation, "_nopad_bin") || collation == "utf8mb4_0900_bin"
}

func createTable(t sqlfence.Table, d sqlfence.Dialect) string {
	lines := make([]string, len(sqlfence.Columns))
	for i, c := range sqlfence.Columns {
		lines[i] = "  " + c + " " + columns[c].definition
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s,\n  PRIMARY KEY (scope, idem_key),\n  KEY %s (scope, state, settled_at)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
		t.Quoted(d), strings.Join(lines, ",\n"), d.Quote(t.Name+"_settled"))
}

// migrations lead from each version to the next. A released one never changes.
func migrations(t sqlfence.Table, d sqlfence.Dialect) [][]string {
	return [][]string{{createTable(t, d)}}
}

// migrate brings a managed table up to date. Several sidecars may start at
// once: one works, the others wait for it. A newer version is left alone;
// verify tells whether it still serves.
func migrate(ctx context.Context, db *sql.DB, t sqlfence.Table) error {
	d := dialect()
	one, err := db.Conn(ctx) // the lock belongs to a connection
	if err != nil {
		return fmt.Errorf("open MySQL: %w", err)
	}
	defer func() { _ = one.Close() }()
	run := func(text string, args ...any) error {
		if _, err := one.ExecContext(ctx, text, args...); err != nil {
			return fmt.Errorf("create the fence table %s: %w", t, err)
		}
		return nil
	}
	lock := "queueworker fence " + t.Name
	var locked sql.NullInt64
	if err := one.QueryRowContext(ctx, "SELECT GET_LOCK(?, 60)", lock).Scan(&locked); err != nil {
		return fmt.Errorf("create the fence table %s: %w", t, err)
	}
	if locked.Int64 != 1 {
		return fmt.Errorf("create the fence table %s: somebody else has held the lock %q for a minute", t, lock)
	}
	defer func() { _ = run("DO RELEASE_LOCK(?)", lock) }()
	versions := t.With("_version").Quoted(d)
	if err := run("CREATE TABLE IF NOT EXISTS " + versions + " (version INT PRIMARY KEY, applied_at DATETIME(6) NOT NULL) ENGINE=InnoDB"); err != nil {
		return err
	}
	var version int
	if err := one.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM "+versions).Scan(&version); err != nil {
		return fmt.Errorf("read the version of %s: %w", t, err)
	}
	for i, steps := range migrations(t, d) {
		if i < version {
			continue
		}
		for _, step := range append(steps, fmt.Sprintf("INSERT INTO %s VALUES (%d, UTC_TIMESTAMP(6))", versions, i+1)) {
			if err := run(step); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify holds the table to what the statements need, and returns the name of
// the key's unique index.
func verify(ctx context.Context, conn *sqlfence.Database, t sqlfence.Table) (key string, err error) {
	d := dialect()
	unfit := &sqlfence.Unfit{Table: t}
	var engine sql.NullString
	err = conn.DB.QueryRowContext(ctx, "SELECT engine FROM information_schema.tables WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?", t.Schema, t.Name).Scan(&engine)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		unfit.Add(createTable(t, d), "the table does not exist")
		return "", unfit
	case err != nil:
		return "", fmt.Errorf("look for %s: %w", t, err)
	case !strings.EqualFold(engine.String, "InnoDB"):
		unfit.Add(fmt.Sprintf("ALTER TABLE %s ENGINE=InnoDB", t.Quoted(d)), "the engine is %s: a crash would lose what was committed", engine.String)
	}
	if err := verifyColumns(ctx, conn.DB, unfit, d); err != nil {
		return "", err
	}
	if key, err = verifyIndexes(ctx, conn.DB, unfit, d); err != nil {
		return "", err
	}
	if len(unfit.Problems) == 0 {
		unfit.ProbeWrites(ctx, conn, d, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO the fence's user", t.Quoted(d)))
	}
	return key, unfit.OrNil()
}

func verifyColumns(ctx context.Context, db *sql.DB, unfit *sqlfence.Unfit, d sqlfence.Dialect) error {
	type found struct {
		dataType, collation string
		precision, length   int
	}
	all := map[string]found{}
	rows, err := db.QueryContext(ctx, `SELECT column_name, data_type, COALESCE(collation_name, ''), COALESCE(datetime_precision, 0), COALESCE(character_maximum_length, 0)
		FROM information_schema.columns WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?`, unfit.Table.Schema, unfit.Table.Name)
	if err != nil {
		return fmt.Errorf("describe %s: %w", unfit.Table, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var f found
		if err := rows.Scan(&name, &f.dataType, &f.collation, &f.precision, &f.length); err != nil {
			return fmt.Errorf("describe %s: %w", unfit.Table, err)
		}
		all[name] = f
	}
	for _, name := range sqlfence.Columns {
		have, exists := all[name]
		want := columns[name]
		isKey := name == "scope" || name == "idem_key"
		modify := fmt.Sprintf("ALTER TABLE %s MODIFY %s %s", unfit.Table.Quoted(d), name, want.definition)
		switch {
		case !exists:
			unfit.Add(fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", unfit.Table.Quoted(d), name, want.definition), "the column %s is missing", name)
		case !slices.Contains(want.types, have.dataType):
			unfit.Add(modify, "the column %s is %s, it must be %s", name, have.dataType, strings.Join(want.types, " or "))
		case isKey && !exact(have.collation):
			unfit.Add(modify, "the collation %s of %s takes different keys for equal (case, accents or trailing spaces)", have.collation, name)
		case have.dataType == "datetime" && have.precision < 6:
			unfit.Add(modify, "the column %s has %d digits of a second, it needs 6", name, have.precision)
		}
	}
	return rows.Err()
}

func verifyIndexes(ctx context.Context, db *sql.DB, unfit *sqlfence.Unfit, d sqlfence.Dialect) (key string, err error) {
	// An index on the first bytes of a column would take long keys for equal.
	rows, err := db.QueryContext(ctx, `SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index), MAX(sub_part IS NOT NULL)
		FROM information_schema.statistics WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? AND non_unique = 0
		GROUP BY index_name ORDER BY index_name`, unfit.Table.Schema, unfit.Table.Name)
	if err != nil {
		return "", fmt.Errorf("indexes of %s: %w", unfit.Table, err)
	}
	defer func() { _ = rows.Close() }()
	var unique []sqlfence.Index
	for rows.Next() {
		var name, list string
		var prefix bool
		if err := rows.Scan(&name, &list, &prefix); err != nil {
			return "", fmt.Errorf("indexes of %s: %w", unfit.Table, err)
		}
		if prefix {
			unfit.Add(fmt.Sprintf("DROP INDEX %s ON %s", d.Quote(name), unfit.Table.Quoted(d)), "the unique index %s covers only the beginning of a column: long keys would become one", name)
			continue
		}
		unique = append(unique, sqlfence.Index{Name: name, Columns: strings.Split(list, ",")})
	}
	key = unfit.JudgeIndexes(unique, fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (scope, idem_key)", d.Quote(unfit.Table.Name+"_key"), unfit.Table.Quoted(d)))
	return key, rows.Err()
}
