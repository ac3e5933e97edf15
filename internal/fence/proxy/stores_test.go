// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/mysql"
	"github.com/queueworker/operator/internal/fence/store/postgres"
	"github.com/queueworker/operator/test/fence/servers"
)

// The servers start when the first test asks for a database.
var (
	postgresServer = sync.OnceValues(func() (*servers.Server, error) { return servers.Postgres("fsync=off") })
	mariaServer    = sync.OnceValues(func() (*servers.Server, error) { return servers.MariaDB("innodb-flush-log-at-trx-commit=0") })
	running        = map[*servers.Server]bool{}
	tables         atomic.Int32
)

func TestMain(m *testing.M) {
	code := m.Run()
	for s := range running {
		s.Stop()
	}
	os.Exit(code)
}

func started(t *testing.T, server func() (*servers.Server, error)) *servers.Server {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatal(err)
	}
	running[s] = true
	return s
}

// stores are a fresh table of each kind.
func stores(t *testing.T) map[string]fence.Store {
	t.Helper()
	table := fmt.Sprintf("fence_%d", tables.Add(1))
	p, err := postgres.Open(t.Context(), postgres.Config{DSN: started(t, postgresServer).DSN, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	m, err := mysql.Open(t.Context(), mysql.Config{DSN: started(t, mariaServer).DSN, Table: table, MaxConns: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return map[string]fence.Store{"memory": inMemory(), "PostgreSQL": p, "MariaDB": m}
}
