// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/postgres"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/test/fence/contract"
	"github.com/queueworker/operator/test/fence/servers"
)

var (
	server *servers.Server
	admin  *pgxpool.Pool
	tables atomic.Int32
)

func TestMain(m *testing.M) { os.Exit(withServer(m)) }

func withServer(m *testing.M) int {
	var err error
	if server, err = servers.Postgres("fsync=off", "shared_preload_libraries=pg_stat_statements"); err == nil {
		defer server.Stop()
		admin, err = pgxpool.New(context.Background(), dsn(server.Port, "fence", ""))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer admin.Close()
	return m.Run()
}

func dsn(port int, user, more string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable&pool_max_conns=50%s", user, port, more)
}

func exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := admin.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func openWith(t *testing.T, table, more string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn(server.Port, "fence", more), Table: table})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newTable() string { return fmt.Sprintf("fence_%d", tables.Add(1)) }

func open(t *testing.T) contract.Opened {
	t.Helper()
	table := newTable()
	return contract.Opened{
		Store: openWith(t, table, ""), Table: table, Exec: exec,
		Lock: func(t *testing.T, key fence.Key) func() {
			tx, err := admin.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "SELECT 1 FROM "+table+" WHERE scope = $1 AND idem_key = $2 FOR UPDATE", key.Scope, key.ID); err != nil {
				t.Fatal(err)
			}
			return func() { _ = tx.Rollback(context.Background()) }
		},
		Param:   func(n int) string { return fmt.Sprintf("$%d", n) },
		TimeArg: func(at time.Time) any { return at },
	}
}

func through(t *testing.T, o contract.Opened) (fence.Store, contract.Faults) {
	t.Helper()
	proxy, err := servers.NewProxy(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn(proxy.Port(), "fence", "&pool_max_conns=1"), Table: o.Table, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, proxy
}

func TestContract(t *testing.T) { contract.Run(t, contract.Fixture{Open: open, Through: through}) }

// TestStrictIsolation: where the server's default isolation makes statements
// fail with serialization errors, they are retried.
func TestStrictIsolation(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			contract.Run(t, contract.Fixture{Open: func(t *testing.T) contract.Opened {
				o := open(t)
				o.Store = openWith(t, o.Table, "&default_transaction_isolation="+strings.ReplaceAll(level, " ", "%20"))
				return o
			}})
		})
	}
}

func TestLockTimeoutIsRetried(t *testing.T) {
	o := open(t)
	o.Store = openWith(t, o.Table, "&lock_timeout=100")
	key := fence.Key{Scope: "s", ID: "k"}
	claim := fence.Statement{Op: fence.OpClaim, Key: key, New: fence.NewToken()}
	if _, err := o.Store.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Second, o.Lock(t, key))
	defer timer.Stop()
	ok, err := o.Store.Apply(t.Context(), fence.Statement{Op: fence.OpUnknown, Key: key, Token: claim.New})
	if !ok || err != nil {
		t.Errorf("%t %v", ok, err)
	}
}

// TestDeadlockIsRetried: a trigger makes the store's statement hold one lock
// and want another; the server ends it, and it is run again.
func TestDeadlockIsRetried(t *testing.T) {
	o := open(t)
	side := o.Table + "_side"
	exec(t, "CREATE TABLE "+side+" (id int PRIMARY KEY, n int); INSERT INTO "+side+" VALUES (1, 0);"+
		"CREATE FUNCTION "+side+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE "+side+" SET n = n + 1 WHERE id = 1; RETURN NEW; END $$;"+
		"CREATE TRIGGER side AFTER UPDATE ON "+o.Table+" FOR EACH ROW EXECUTE FUNCTION "+side+"()")
	contract.Deadlock(t, o, func(key fence.Key, statement func()) {
		tx, err := admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		// Returns when the statement wants the lock on the side.
		const waits = "DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$"
		for _, text := range []string{"SET LOCAL deadlock_timeout = '1min'", "UPDATE " + side + " SET n = n + 1", waits, "SELECT 1 FROM " + o.Table + " WHERE idem_key = '" + key.ID + "' FOR UPDATE"} {
			if _, err := tx.Exec(t.Context(), text); err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(text, "UPDATE") {
				go statement()
			}
		}
	})
	var deadlocks int
	for range 1000 { // the server's counters lag
		if err := admin.QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil || deadlocks > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if deadlocks == 0 {
		t.Error("the server saw no deadlock")
	}
}

func TestDurabilityIsWatched(t *testing.T) {
	s := openWith(t, newTable(), "&synchronous_commit=off")
	if text := fmt.Sprint(s.Warnings()); !strings.Contains(text, "fsync = off") || !strings.Contains(text, "synchronous_commit = off") {
		t.Errorf("warnings: %s", text)
	}
}

func TestStatementCounts(t *testing.T) {
	o := open(t)
	exec(t, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
	count := func() (n int) {
		const calls = "SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements WHERE query LIKE '%' || $1 || '%' AND query NOT LIKE '%pg_stat%'"
		if err := admin.QueryRow(t.Context(), calls, `"`+o.Table+`"`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	contract.StatementCounts(t, o, count)
}

func TestPlansUseTheUniqueIndex(t *testing.T) {
	o := open(t)
	s := o.Store.(*postgres.Store)
	exec(t, "INSERT INTO "+o.Table+" (scope, idem_key, fingerprint, state, token, attempt, owner, lease_until, quiet_until, first_sent_at)"+
		" SELECT 's', g::text, '', 'done', '', 1, '', '2026-01-01', '2026-01-02', '2026-01-03' FROM generate_series(1, 5000) g")
	exec(t, "ANALYZE "+o.Table)
	for op, text := range sqlfence.Texts(s.Store) {
		rows, err := admin.Query(t.Context(), "EXPLAIN (GENERIC_PLAN) "+text)
		if err != nil { // before version 16
			rows, err = explainWithNulls(t, text)
		}
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if !strings.Contains(plan.String(), "Index Scan using "+o.Table+"_pkey") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s:\n%s", op, plan.String())
		}
	}
}

func TestManyStartAtOnce(t *testing.T) {
	table := newTable()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn(server.Port, "fence", "&pool_max_conns=2"), Table: "public." + table})
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	wg.Wait()
	var versions int
	if err := admin.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table+"_version").Scan(&versions); err != nil || versions != 1 {
		t.Errorf("%d versions, %v", versions, err)
	}
}

func TestExistingTable(t *testing.T) {
	for name, c := range map[string]struct {
		change string // of a good table T
		want   string
	}{
		"good":              {"", ""},
		"varchar":           {"ALTER TABLE T ALTER COLUMN idem_key TYPE varchar(255)", ""},
		"missing":           {"DROP TABLE T", "the table does not exist; run: CREATE TABLE"},
		"no unique index":   {"ALTER TABLE T DROP CONSTRAINT T_pkey", `run: CREATE UNIQUE INDEX "T_key" ON "T" (scope, idem_key)`},
		"a plain index":     {"ALTER TABLE T DROP CONSTRAINT T_pkey; CREATE INDEX ON T (scope, idem_key)", "no unique index"},
		"a partial index":   {"ALTER TABLE T DROP CONSTRAINT T_pkey; CREATE UNIQUE INDEX ON T (scope, idem_key) WHERE state <> 'done'", "no unique index"},
		"a wider index":     {"ALTER TABLE T DROP CONSTRAINT T_pkey; CREATE UNIQUE INDEX ON T (scope, idem_key, attempt)", "no unique index"},
		"only including":    {"ALTER TABLE T DROP CONSTRAINT T_pkey; CREATE UNIQUE INDEX ON T (scope) INCLUDE (idem_key)", "no unique index"},
		"deferrable":        {"ALTER TABLE T DROP CONSTRAINT T_pkey; ALTER TABLE T ADD UNIQUE (scope, idem_key) DEFERRABLE", "no unique index"},
		"with an id":        {"ALTER TABLE T ADD COLUMN id bigserial UNIQUE", ""},
		"another unique":    {"CREATE UNIQUE INDEX T_fp ON T (fingerprint)", "T_fp on (fingerprint) would let one key refuse another"},
		"missing column":    {"ALTER TABLE T DROP COLUMN doubt", `the column doubt is missing; run: ALTER TABLE "T" ADD COLUMN doubt smallint NOT NULL DEFAULT 0`},
		"padded type":       {"ALTER TABLE T ALTER COLUMN idem_key TYPE char(255)", `idem_key is character, it must be text or character varying; run: ALTER TABLE "T" ALTER COLUMN idem_key TYPE text COLLATE "C"`},
		"folding collation": {"CREATE COLLATION IF NOT EXISTS folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false); ALTER TABLE T ALTER COLUMN idem_key TYPE text COLLATE folding", "the collation of idem_key takes different texts for equal"},
		"local times":       {"ALTER TABLE T ALTER COLUMN quiet_until TYPE timestamp", "quiet_until is timestamp without time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			openWith(t, table, "")
			if c.change != "" {
				exec(t, contract.OfTable(c.change, table))
			}
			s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn(server.Port, "fence", ""), Table: table, Existing: true})
			contract.CheckOpen(t, err, contract.OfTable(c.want, table))
			if err == nil {
				_ = s.Close()
			}
		})
	}
}

func TestUserWhoMayNotWrite(t *testing.T) {
	table := newTable()
	openWith(t, table, "")
	exec(t, "CREATE ROLE reader LOGIN")
	exec(t, "GRANT SELECT ON "+table+" TO reader")
	_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn(server.Port, "reader", ""), Table: table, Existing: true})
	for _, want := range []string{"may not INSERT", "may not UPDATE", "may not DELETE", `GRANT SELECT, INSERT, UPDATE, DELETE ON "` + table + `" TO "reader"`} {
		contract.CheckOpen(t, err, want)
	}
	_, err = postgres.Open(t.Context(), postgres.Config{DSN: dsn(server.Port, "fence", "&default_transaction_read_only=on"), Table: table, Existing: true})
	contract.CheckOpen(t, err, "read-only or a standby")
}

func TestTableNames(t *testing.T) {
	for _, name := range []string{"", "Fence", "a.b.c", "a-b", "1a", `a"b`, "a b", "x;--", ".a", "a.", strings.Repeat("a", 49)} {
		if _, err := postgres.Open(t.Context(), postgres.Config{Table: name}); err == nil || !strings.Contains(err.Error(), "table name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// explainWithNulls plans a statement for parameters that are NULL, on a
// connection that plans without looking at them.
func explainWithNulls(t *testing.T, text string) (pgx.Rows, error) {
	t.Helper()
	conn, err := admin.Acquire(t.Context())
	if err != nil {
		return nil, err
	}
	t.Cleanup(conn.Release)
	description, err := conn.Conn().Prepare(t.Context(), "", text)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("plan_%d", tables.Add(1))
	for _, sql := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE " + name + " AS " + text} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			return nil, err
		}
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(description.ParamOIDs)), ", ")
	return conn.Query(t.Context(), "EXPLAIN EXECUTE "+name+"("+nulls+")", pgx.QueryExecModeSimpleProtocol)
}
