// SPDX-License-Identifier: Apache-2.0

package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/mysql"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/test/fence/contract"
	"github.com/queueworker/operator/test/fence/servers"
)

var (
	server *servers.Server
	admin  *sql.DB
	tables atomic.Int32
)

func TestMain(m *testing.M) { os.Exit(withServer(m)) }

func withServer(m *testing.M) int {
	var err error
	if server, err = servers.MariaDB("innodb-flush-log-at-trx-commit=0", "character-set-server=utf8mb4"); err == nil {
		defer server.Stop()
		admin, err = sql.Open("mysql", dsn(server.Port, "fence")+"&multiStatements=true")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = admin.Close() }()
	return m.Run()
}

func dsn(port int, user string) string {
	return fmt.Sprintf("%s@tcp(127.0.0.1:%d)/fence?parseTime=true&time_zone=%%27%%2B00%%3A00%%27", user, port)
}

func exec(t *testing.T, text string, args ...any) {
	t.Helper()
	if _, err := admin.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func newTable() string { return fmt.Sprintf("fence_%d", tables.Add(1)) }

func openWith(t *testing.T, c mysql.Config) *mysql.Store {
	t.Helper()
	s, err := mysql.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func open(t *testing.T) contract.Opened {
	t.Helper()
	table := newTable()
	return contract.Opened{
		Store: openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: table, MaxConns: 50}), Table: table, Exec: exec,
		Lock: func(t *testing.T, key fence.Key) func() {
			tx, err := admin.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM "+table+" WHERE scope = ? AND idem_key = ? FOR UPDATE", key.Scope, key.ID); err != nil {
				t.Fatal(err)
			}
			return func() { _ = tx.Rollback() }
		},
		Param:   func(int) string { return "?" },
		TimeArg: func(at time.Time) any { return at.UTC() },
	}
}

func through(t *testing.T, o contract.Opened) (fence.Store, contract.Faults) {
	t.Helper()
	proxy, err := servers.NewProxy(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return openWith(t, mysql.Config{DSN: dsn(proxy.Port(), "fence"), Table: o.Table, Existing: true, MaxConns: 1}), proxy
}

func TestContract(t *testing.T) { contract.Run(t, contract.Fixture{Open: open, Through: through}) }

// TestWithoutReturning runs what is done on MySQL, which cannot answer an
// INSERT with a row. The server here is MariaDB all the same.
func TestWithoutReturning(t *testing.T) {
	contract.Run(t, contract.Fixture{Open: func(t *testing.T) contract.Opened {
		o := open(t)
		o.Store = mysql.AsMySQL(o.Store.(*mysql.Store), o.Table)
		return o
	}})
}

// TestClaimsNeedTheKeysIndex: to the server a duplicate is whatever an index
// refuses. A claim that finds the index gone owns nothing.
func TestClaimsNeedTheKeysIndex(t *testing.T) {
	renamed := newTable()
	openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: renamed})
	exec(t, "ALTER TABLE "+renamed+" DROP PRIMARY KEY, ADD UNIQUE KEY theirs (idem_key, scope)")
	managed, old := open(t), open(t)
	for name, c := range map[string]struct {
		store fence.Store
		drop  string
	}{
		"MariaDB":   {managed.Store, "ALTER TABLE " + managed.Table + " DROP PRIMARY KEY"},
		"as MySQL":  {mysql.AsMySQL(old.Store.(*mysql.Store), old.Table), "ALTER TABLE " + old.Table + " DROP PRIMARY KEY"},
		"their own": {openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: renamed, Existing: true}), "DROP INDEX theirs ON " + renamed},
	} {
		t.Run(name, func(t *testing.T) {
			claim := func(key string) (fence.Row, error) {
				return c.store.Claim(t.Context(), fence.Statement{Op: fence.OpClaim, Key: fence.Key{Scope: "s", ID: key}, New: fence.NewToken(), Lease: time.Minute})
			}
			first, err := claim("known")
			if err != nil || first.State != fence.Claimed || first.Attempt != 1 {
				t.Fatalf("%+v, %v", first, err)
			}
			if again, err := claim("known"); err != nil || again.Token != first.Token {
				t.Fatalf("%+v, %v", again, err)
			}
			exec(t, c.drop)
			for _, key := range []string{"known", "new"} {
				if row, err := claim(key); err == nil || !strings.Contains(err.Error(), "doesn't exist in table") {
					t.Errorf("%s: %+v, %v", key, row, err)
				}
			}
			if _, err := c.store.Read(t.Context(), fence.Key{Scope: "s", ID: "new"}); !errors.Is(err, fence.ErrNoRow) {
				t.Errorf("a row was written: %v", err)
			}
		})
	}
}

func TestDurabilityIsWatched(t *testing.T) {
	s := openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: newTable()})
	if text := fmt.Sprint(s.Warnings()); !strings.Contains(text, "innodb_flush_log_at_trx_commit = 0") {
		t.Errorf("warnings: %s", text)
	}
}

// TestMatchedIsApplied: a statement that matches a row and changes nothing, as
// the clock stands still, has applied.
func TestMatchedIsApplied(t *testing.T) {
	s := openWith(t, mysql.Config{DSN: dsn(server.Port, "fence") + "&timestamp=1750000000", Table: newTable()})
	key := fence.Key{Scope: "s", ID: "k"}
	claim := fence.Statement{Op: fence.OpClaim, Key: key, New: fence.NewToken()}
	if _, err := s.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	for _, op := range []fence.Op{fence.OpUnknown, fence.OpNote, fence.OpNote} {
		if ok, err := s.Apply(t.Context(), fence.Statement{Op: op, Key: key, Token: claim.New}); !ok || err != nil {
			t.Errorf("%s: %t %v", op, ok, err)
		}
	}
}

// TestDeadlockIsRetried: a trigger makes the store's statement hold one lock
// and want another; the server ends it, and it is run again.
func TestDeadlockIsRetried(t *testing.T) {
	o := open(t)
	side := o.Table + "_side"
	exec(t, "CREATE TABLE "+side+" (id INT PRIMARY KEY, n INT) ENGINE=InnoDB; INSERT INTO "+side+" SELECT seq, 0 FROM seq_1_to_1000;"+
		"CREATE TRIGGER "+side+" BEFORE UPDATE ON "+o.Table+" FOR EACH ROW UPDATE "+side+" SET n = n + 1 WHERE id = 1")
	contract.Deadlock(t, o, func(key fence.Key, statement func()) {
		tx, err := admin.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		// Returns when the statement wants the lock on the side.
		const waits = "BEGIN NOT ATOMIC WHILE NOT EXISTS (SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT') DO SET @nap = SLEEP(0.2); END WHILE; END"
		for _, text := range []string{"UPDATE " + side + " SET n = n + 1", waits, "UPDATE " + o.Table + " SET attempt = 7 WHERE idem_key = '" + key.ID + "'"} {
			if _, err := tx.ExecContext(t.Context(), text); err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(text, "UPDATE "+side) {
				go statement()
			}
		}
	})
	var name string
	var deadlocks int
	if err := admin.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").Scan(&name, &deadlocks); err != nil || deadlocks == 0 {
		t.Errorf("the server saw %d deadlocks, %v", deadlocks, err)
	}
}

func TestStatementCounts(t *testing.T) {
	o := open(t)
	count := func() int {
		rows, err := admin.QueryContext(t.Context(), "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert', 'Com_update', 'Com_select', 'Com_delete')")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		total := 0
		for rows.Next() {
			var name string
			var n int
			if err := rows.Scan(&name, &n); err != nil {
				t.Fatal(err)
			}
			total += n
		}
		return total
	}
	contract.StatementCounts(t, o, count)
}

func TestPlansUseTheUniqueIndex(t *testing.T) {
	o := open(t)
	exec(t, "INSERT INTO "+o.Table+" (scope, idem_key, fingerprint, state, token, attempt, owner, lease_until, quiet_until, first_sent_at)"+
		" SELECT 's', seq, '', 'done', '', 1, '', '2026-01-01', '2026-01-02', '2026-01-03' FROM seq_1_to_5000")
	exec(t, "ANALYZE TABLE "+o.Table)
	parameter := regexp.MustCompile(`\?`)
	for op, text := range sqlfence.Texts(o.Store.(*mysql.Store).Store) {
		if op == fence.OpClaim {
			continue // an INSERT has no plan; its conflict is the unique index itself
		}
		var id, kind, table, access, possible, key, length, ref, rows, extra sql.NullString
		text = "EXPLAIN " + parameter.ReplaceAllString(text, "1")
		text = strings.NewReplacer("idem_key = 1", "idem_key = '77'", "scope = 1", "scope = 's'", "token = 1", "token = ''").Replace(text)
		if err := admin.QueryRowContext(t.Context(), text).Scan(&id, &kind, &table, &access, &possible, &key, &length, &ref, &rows, &extra); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if key.String != "PRIMARY" || rows.String != "1" {
			t.Errorf("%s: key %s, %s rows", op, key.String, rows.String)
		}
	}
}

func TestManyStartAtOnce(t *testing.T) {
	table := newTable()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn(server.Port, "fence"), Table: "fence." + table})
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	wg.Wait()
	var versions int
	if err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+"_version").Scan(&versions); err != nil || versions != 1 {
		t.Errorf("%d versions, %v", versions, err)
	}
}

func TestExistingTable(t *testing.T) {
	for name, c := range map[string]struct {
		change string // of a good table T
		want   string
	}{
		"good":              {"", ""},
		"unpadded binary":   {"ALTER TABLE T MODIFY idem_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL", ""},
		"missing":           {"DROP TABLE T", "the table does not exist; run: CREATE TABLE"},
		"no unique index":   {"ALTER TABLE T DROP PRIMARY KEY", "run: CREATE UNIQUE INDEX `T_key` ON `T` (scope, idem_key)"},
		"a plain index":     {"ALTER TABLE T DROP PRIMARY KEY, ADD KEY (scope, idem_key)", "no unique index"},
		"a wider index":     {"ALTER TABLE T DROP PRIMARY KEY, ADD UNIQUE (scope, idem_key, attempt)", "no unique index"},
		"a prefix index":    {"ALTER TABLE T DROP PRIMARY KEY, ADD UNIQUE u (scope, idem_key(20))", "the unique index u covers only the beginning of a column"},
		"with an id":        {"ALTER TABLE T DROP PRIMARY KEY, ADD UNIQUE (scope, idem_key), ADD id BIGINT AUTO_INCREMENT PRIMARY KEY", ""},
		"another unique":    {"ALTER TABLE T ADD UNIQUE fp (fingerprint)", "fp on (fingerprint) would let one key refuse another"},
		"missing column":    {"ALTER TABLE T DROP COLUMN doubt", "the column doubt is missing; run: ALTER TABLE `T` ADD COLUMN doubt TINYINT NOT NULL DEFAULT 0"},
		"folding collation": {"ALTER TABLE T MODIFY idem_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL", "the collation utf8mb4_unicode_ci of idem_key takes different keys for equal"},
		"padding collation": {"ALTER TABLE T MODIFY idem_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL", "run: ALTER TABLE `T` MODIFY idem_key VARBINARY(255) NOT NULL"},
		"filled up type":    {"ALTER TABLE T MODIFY idem_key BINARY(255) NOT NULL", "idem_key is binary, it must be varbinary or varchar"},
		"whole seconds":     {"ALTER TABLE T MODIFY quiet_until DATETIME NOT NULL", "quiet_until has 0 digits of a second"},
		"local times":       {"ALTER TABLE T MODIFY quiet_until TIMESTAMP(6) NOT NULL", "quiet_until is timestamp, it must be datetime"},
		"no transactions":   {"ALTER TABLE T ENGINE=Aria", "the engine is Aria"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: table})
			if c.change != "" {
				exec(t, contract.OfTable(c.change, table))
			}
			s, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn(server.Port, "fence"), Table: table, Existing: true})
			contract.CheckOpen(t, err, contract.OfTable(c.want, table))
			if err == nil {
				_ = s.Close()
			}
		})
	}
}

func TestUserWhoMayNotWrite(t *testing.T) {
	table := newTable()
	openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: table})
	exec(t, "CREATE USER reader@'%'; GRANT SELECT ON fence."+table+" TO reader@'%'")
	_, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn(server.Port, "reader"), Table: table, Existing: true})
	for _, want := range []string{"may not INSERT", "may not UPDATE", "may not DELETE", "GRANT SELECT, INSERT, UPDATE, DELETE ON `" + table + "`"} {
		contract.CheckOpen(t, err, want)
	}
	exec(t, "GRANT INSERT, UPDATE, DELETE ON fence."+table+" TO reader@'%'; SET GLOBAL read_only = 1")
	defer func() { _, _ = admin.ExecContext(context.Background(), "SET GLOBAL read_only = 0") }()
	_, err = mysql.Open(t.Context(), mysql.Config{DSN: dsn(server.Port, "reader"), Table: table, Existing: true})
	contract.CheckOpen(t, err, "read-only")
}
