// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
	"github.com/queueworker/operator/internal/fence/store/mysql"
	"github.com/queueworker/operator/internal/fence/store/postgres"
	"github.com/queueworker/operator/test/fence/servers"
)

// behind opens a table whose connections go through a proxy.
func behind(t *testing.T, server *servers.Server, more string) (fence.Store, *servers.Proxy) {
	t.Helper()
	way, err := servers.NewProxy(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	dsn := strings.Replace(server.DSN, fmt.Sprint(server.Port), fmt.Sprint(way.Port()), 1) + more
	table := fmt.Sprintf("fence_%d", tables.Add(1))
	if strings.HasPrefix(dsn, "postgres:") {
		s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Table: table})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s, way
	}
	s, err := mysql.Open(t.Context(), mysql.Config{DSN: dsn, Table: table, MaxConns: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, way
}

// TestStoreGoesDuringTheCall: an effect that is known is told, saved or not; a
// refusal is not, since nobody has stored it. Nothing is called afterwards.
func TestStoreGoesDuringTheCall(t *testing.T) {
	for name, server := range map[string]func() (*servers.Server, error){"PostgreSQL": postgresServer, "MariaDB": mariaServer} {
		for status, want := range map[int]struct {
			status  int
			problem string
		}{201: {201, ""}, 422: {409, "outcome-unknown"}} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				store, way := behind(t, started(t, server), "")
				p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
					way.Close()
					way.Cut()
					w.WriteHeader(status)
				})
				d := declared(t, p.URL)
				d.Times.StatementBudget = 2 * time.Second
				f := start(t, store, d)
				f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, want.status, want.problem)
				f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 503, "store-unavailable")
				if n := p.posts.Load(); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

// flaky refuses to change rows while it is away.
type flaky struct {
	fence.Store
	away *atomic.Bool
}

func (f flaky) Apply(ctx context.Context, s fence.Statement) (bool, error) {
	if f.away.Load() {
		return false, errors.New("away")
	}
	return f.Store.Apply(ctx, s)
}

// TestOutcomeIsSavedLater: what is known is not lost because the database was
// away for a moment.
func TestOutcomeIsSavedLater(t *testing.T) {
	for status, c := range map[int]struct {
		told, again int
		problem     string
	}{201: {201, 201, ""}, 422: {409, 422, "outcome-unknown"}, 401: {503, 401, "store-unavailable"}} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var away atomic.Bool
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				away.Store(true)
				w.WriteHeader(status)
			})
			f := start(t, flaky{inMemory(), &away}, declared(t, p.URL))
			f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, c.told, c.problem)
			if row := f.row(t, "k"); row.State != fence.Claimed {
				t.Errorf("the row is %s", row.State)
			}
			away.Store(false)
			want := map[int]fence.State{201: fence.Done, 422: fence.Done, 401: fence.Released}[status]
			for end := time.Now().Add(time.Minute); f.row(t, "k").State != want; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the row is %s", f.row(t, "k").State)
				}
			}
			if status == 401 { // the key is free
				return
			}
			if a := f.call(t, "POST", "/stripe/charges", "k", "{}"); a.status != c.again || p.posts.Load() != 1 {
				t.Errorf("then %d, %d requests", a.status, p.posts.Load())
			}
		})
	}
}

// TestOutcomesThatStayUnsaved are named when the fence stops.
func TestOutcomesThatStayUnsaved(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	p := charging(t, 0)
	h, err := proxy.New(proxy.Config{
		Providers: []proxy.Provider{declared(t, p.URL)}, Store: flaky{inMemory(), &away}, Clock: fence.SystemClock{},
		Log: slog.New(slog.DiscardHandler), Watch: &watch{},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	fenced{Server: server}.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 201, "")
	limit, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if left := h.Finish(limit); len(left) != 1 || left[0] != (fence.Key{Scope: "stripe", ID: "k"}) {
		t.Errorf("left: %v", left)
	}
}

// TestConnectionsAreCut: as when a database fails over. The next call gets a
// new connection or is told that nothing happened.
func TestConnectionsAreCut(t *testing.T) {
	for name, server := range map[string]func() (*servers.Server, error){"PostgreSQL": postgresServer, "MariaDB": mariaServer} {
		t.Run(name, func(t *testing.T) {
			store, way := behind(t, started(t, server), "")
			p := charging(t, 0)
			f := start(t, store, declared(t, p.URL))
			f.call(t, "POST", "/stripe/charges", "before", "{}").want(t, 201, "")
			way.Cut()
			again := f.call(t, "POST", "/stripe/charges", "before", "{}")
			for n := 0; again.status == 503 && n < 5; n++ {
				again = f.call(t, "POST", "/stripe/charges", "before", "{}")
			}
			if again.status != 201 || p.posts.Load() != 1 {
				t.Errorf("status %d, %d requests", again.status, p.posts.Load())
			}
		})
	}
}

// TestReadOnlyDatabase: as a standby that became nobody's primary.
func TestReadOnlyDatabase(t *testing.T) {
	server := started(t, postgresServer)
	store, way := behind(t, server, "")
	p := charging(t, 0)
	f := start(t, store, declared(t, p.URL))
	exec(t, server, "ALTER ROLE fence SET default_transaction_read_only = on")
	t.Cleanup(func() { exec(t, server, "ALTER ROLE fence RESET default_transaction_read_only") })
	way.Cut()
	f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 503, "store-unavailable")
	if p.posts.Load() != 0 {
		t.Errorf("%d requests", p.posts.Load())
	}
}

func exec(t *testing.T, server *servers.Server, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, server.DSN+"&default_query_exec_mode=simple_protocol&options=-c%20default_transaction_read_only%3Doff")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// indexDropped takes the key's index away.
var indexDropped = map[string]struct {
	server func() (*servers.Server, error)
	drop   func(t *testing.T, server *servers.Server, table string)
}{
	"PostgreSQL": {postgresServer, func(t *testing.T, server *servers.Server, table string) {
		t.Helper()
		exec(t, server, fmt.Sprintf(`DO $$ DECLARE c text; BEGIN
			SELECT conname INTO c FROM pg_constraint WHERE conrelid = '%[1]s'::regclass AND contype IN ('p', 'u');
			EXECUTE 'ALTER TABLE %[1]s DROP CONSTRAINT ' || quote_ident(c); END $$`, table))
	}},
	"MariaDB": {mariaServer, func(t *testing.T, server *servers.Server, table string) {
		t.Helper()
		db, err := sql.Open("mysql", server.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		if _, err := db.ExecContext(t.Context(), "ALTER TABLE "+table+" DROP PRIMARY KEY"); err != nil {
			t.Fatal(err)
		}
	}},
}

// TestUniqueIndexIsDropped: without it nothing decides who owns a key. It goes
// while calls are under way, and from then on no key is anybody's.
func TestUniqueIndexIsDropped(t *testing.T) {
	for name, c := range indexDropped {
		t.Run(name, func(t *testing.T) {
			server := started(t, c.server)
			store, _ := behind(t, server, "")
			table := fmt.Sprintf("fence_%d", tables.Load())
			p := charging(t, 10*time.Millisecond)
			f := start(t, store, declared(t, p.URL))
			f.call(t, "POST", "/stripe/charges", "before", "{}").want(t, 201, "")
			var calls sync.WaitGroup
			for i := range 40 {
				calls.Go(func() {
					_, _ = f.try(context.WithoutCancel(t.Context()), "POST", "/stripe/charges", fmt.Sprint("during ", i/2), "{}")
				})
			}
			c.drop(t, server, table)
			calls.Wait()
			for range 2 {
				f.call(t, "POST", "/stripe/charges", "before", "{}").want(t, 503, "store-unavailable")
				f.call(t, "POST", "/stripe/charges", "after", "{}").want(t, 503, "store-unavailable")
			}
			sent := map[string]int{}
			for _, key := range p.keys {
				sent[key]++
			}
			for key, n := range sent {
				if n > 1 || key == "after" {
					t.Errorf("%s: %d requests", key, n)
				}
			}
		})
	}
}

// TestPoolIsExhausted: a call that gets no connection in its budget has not
// happened.
func TestPoolIsExhausted(t *testing.T) {
	server := started(t, postgresServer)
	store, _ := behind(t, server, "&pool_max_conns=1")
	p := charging(t, 0)
	d := declared(t, p.URL)
	d.Times.StatementBudget = 4 * time.Second
	f := start(t, store, d)
	lock, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close(context.WithoutCancel(t.Context())) }()
	if _, err := lock.Exec(t.Context(), fmt.Sprintf("BEGIN; LOCK TABLE fence_%d", tables.Load()), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	answers := make(chan answer, 5)
	for i := range cap(answers) {
		go func() {
			a, _ := f.try(context.WithoutCancel(t.Context()), "POST", "/stripe/charges", fmt.Sprint("k", i), "{}")
			answers <- a
		}()
	}
	for range cap(answers) {
		a := <-answers
		a.want(t, 503, "store-unavailable")
	}
	if p.posts.Load() != 0 {
		t.Errorf("%d requests", p.posts.Load())
	}
	if _, err := lock.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	f.call(t, "POST", "/stripe/charges", "after", "{}").want(t, 201, "")
}
