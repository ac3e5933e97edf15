// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/internal/fence/store/sqlite"
	"github.com/queueworker/operator/test/fence/contract"
)

func open(t *testing.T) contract.Opened {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a fence?.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Table: "fence"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	db := raw(t, path)
	return contract.Opened{
		Store: s, Table: "fence",
		Exec: func(t *testing.T, text string, args ...any) { exec(t, db, text, args...) },
		Lock: func(t *testing.T, _ fence.Key) func() {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = tx.Rollback() }
		},
		Param:   func(n int) string { return fmt.Sprintf("?%d", n) },
		TimeArg: func(at time.Time) any { return at.UnixMicro() },
	}
}

func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(path, "?", "%3f")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestContract(t *testing.T) { contract.Run(t, contract.Fixture{Open: open}) }

func TestGuardMutants(t *testing.T) {
	texts := sqlfence.Texts(open(t).Store.(*sqlite.Store).Store)
	contract.GuardMutants(t, texts, func(t *testing.T, rewrite func(string) string) contract.Opened {
		o := open(t)
		o.Store = sqlite.Rewritten(o.Store.(*sqlite.Store), o.Table, rewrite)
		return o
	})
}

func TestWarning(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "f.db"), Table: "fence"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "fences nothing across pods") {
		t.Errorf("warnings: %q", w)
	}
}

const good = `CREATE TABLE fence (scope TEXT NOT NULL, idem_key TEXT NOT NULL, fingerprint BLOB NOT NULL, state TEXT NOT NULL, token BLOB NOT NULL,
	attempt INTEGER NOT NULL, owner TEXT NOT NULL, lease_until INTEGER NOT NULL, quiet_until INTEGER NOT NULL, first_sent_at INTEGER NOT NULL,
	doubt INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0, resends INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL DEFAULT '',
	status INTEGER NOT NULL DEFAULT 0, headers BLOB, body BLOB, body_digest BLOB, provider_id TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
	settled_by TEXT NOT NULL DEFAULT '', settled_who TEXT NOT NULL DEFAULT '', settled_at INTEGER, checked_at INTEGER)`

func TestExistingTable(t *testing.T) {
	key := "CREATE UNIQUE INDEX k ON fence (scope, idem_key)"
	for name, c := range map[string]struct {
		setUp []string
		want  string
	}{
		"good":            {[]string{good, key}, ""},
		"missing":         {nil, "the table does not exist; run: CREATE TABLE"},
		"no unique index": {[]string{good}, `run: CREATE UNIQUE INDEX "fence_key" ON "fence" (scope, idem_key)`},
		"partial index":   {[]string{good, key + " WHERE state <> 'done'"}, "no unique index on (scope, idem_key)"},
		"folding index":   {[]string{good, "CREATE UNIQUE INDEX k ON fence (scope, idem_key COLLATE NOCASE)"}, "no unique index on (scope, idem_key)"},
		"another index":   {[]string{good, key, "CREATE UNIQUE INDEX u ON fence (owner)"}, "the unique index u on (owner) would let one key refuse another"},
		"missing column":  {[]string{strings.Replace(good, "doubt INTEGER NOT NULL DEFAULT 0, ", "", 1), key}, "the column doubt (INTEGER NOT NULL DEFAULT 0) is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.db")
			db := raw(t, path)
			for _, text := range c.setUp {
				exec(t, db, text)
			}
			s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Table: "fence", Existing: true})
			contract.CheckOpen(t, err, c.want)
			if err == nil {
				_ = s.Close()
			}
		})
	}
}

func TestPlanUsesTheUniqueIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Table: "fence"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var a, b, c, plan string
	err = raw(t, path).QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+sqlfence.Texts(s.Store)[fence.OpEffect],
		make([]any, 9)...).Scan(&a, &b, &c, &plan)
	if err != nil || !strings.Contains(plan, "USING INDEX sqlite_autoindex_fence_1 (scope=? AND idem_key=?)") {
		t.Errorf("plan %q, %v", plan, err)
	}
}
