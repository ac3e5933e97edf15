// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/postgres"
	"github.com/queueworker/operator/test/fence/contract"
)

// TestWithoutPreparedStatements: a pooler that hands each transaction to
// another connection loses them, so they can be done without.
func TestWithoutPreparedStatements(t *testing.T) {
	contract.Run(t, contract.Fixture{Open: func(t *testing.T) contract.Opened {
		o := open(t)
		o.Store = openWith(t, o.Table, "&default_query_exec_mode=exec")
		return o
	}})
	for mode, want := range map[string]bool{"exec": false, "cache_statement": true} {
		table := newTable()
		s := openWith(t, table, "&pool_max_conns=1&default_query_exec_mode="+mode)
		onInsert(t, table, "INSERT INTO "+table+"_side SELECT COUNT(*) FROM pg_prepared_statements")
		claimAny(t, s)
		claimAny(t, s)
		var prepared bool
		if err := admin.QueryRow(t.Context(), "SELECT MAX(n) > 0 FROM "+table+"_side").Scan(&prepared); err != nil || prepared != want {
			t.Errorf("%s: prepared statements: %t, %v", mode, prepared, err)
		}
	}
}

// TestPreparedAgain: a statement that the server no longer knows, or whose
// table has changed, fails once and is then prepared anew.
func TestPreparedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		onInsert, between string
		want              string
	}{
		"lost":    {onInsert: "DEALLOCATE ALL", want: "does not exist"},
		"changed": {onInsert: "PERFORM 1", between: "ALTER TABLE T ALTER COLUMN owner TYPE varchar(300)", want: "cached plan must not change result type"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			s := openWith(t, table, "&pool_max_conns=1")
			onInsert(t, table, c.onInsert)
			claimAny(t, s)
			if c.between != "" {
				exec(t, contract.OfTable(c.between, table))
			}
			if err := claim(t, s); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v: want %s", err, c.want)
			}
			claimAny(t, s)
		})
	}
}

// onInsert runs SQL in the session that inserts a row.
func onInsert(t *testing.T, table, sql string) {
	t.Helper()
	exec(t, "CREATE TABLE "+table+"_side (n int);"+
		"CREATE FUNCTION "+table+"_side() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+sql+"; RETURN NEW; END $$;"+
		"CREATE TRIGGER side BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION "+table+"_side()")
}

func claimAny(t *testing.T, s *postgres.Store) {
	t.Helper()
	if err := claim(t, s); err != nil {
		t.Fatal(err)
	}
}

// claim grants a key that nobody had before.
func claim(t *testing.T, s *postgres.Store) error {
	t.Helper()
	st := fence.Statement{Op: fence.OpClaim, Key: fence.Key{Scope: "s", ID: fence.NewToken().String()}, New: fence.NewToken()}
	row, err := s.Claim(t.Context(), st)
	if err == nil && row.Token != st.New {
		t.Errorf("the claim was not granted: %+v", row)
	}
	return err
}
