// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // for sql.Open

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/table"
	"github.com/queueworker/operator/test/fence/servers"
)

// database is a real server with the fence's table.
type database struct {
	name, driver string
	server       *servers.Server
	tableName    string
	table        table.Table
	raw          *sql.DB
	back         string // a time as many seconds earlier, %s and %d
}

func newDatabase(name string) (*database, error) {
	d := &database{name: name, driver: "PostgreSQL", back: "%s - interval '%d seconds'"}
	start, sqlDriver := func() (*servers.Server, error) { return servers.Postgres("fsync=off", "max_connections=400") }, "pgx"
	if name == "MariaDB" {
		d.driver, d.back, sqlDriver = "MySQL", "%s - INTERVAL %d SECOND", "mysql"
		start = func() (*servers.Server, error) {
			return servers.MariaDB("innodb-flush-log-at-trx-commit=0", "max-connections=400")
		}
	}
	var err error
	if d.server, err = start(); err != nil {
		return nil, err
	}
	if d.raw, err = sql.Open(sqlDriver, d.server.DSN); err != nil {
		return nil, err
	}
	return d.with("queueworker_fence")
}

// with is the same server with another table.
func (d *database) with(name string) (*database, error) {
	other := *d
	var err error
	other.tableName = name
	other.table, err = table.Open(context.Background(), table.Config{Driver: d.driver, DSN: d.server.DSN, Table: name})
	return &other, err
}

func (d *database) stop() {
	_, _ = d.table.Close(), d.raw.Close()
	d.server.Stop()
}

// pass makes time pass for one key: all that the fence compares with its
// database's clock moves back.
func (d *database) pass(run string, seconds int) error {
	var sets []string
	for _, column := range []string{"lease_until", "quiet_until", "first_sent_at", "settled_at", "checked_at"} {
		sets = append(sets, column+" = "+fmt.Sprintf(d.back, column, seconds))
	}
	_, err := d.raw.ExecContext(context.Background(), "UPDATE "+d.tableName+" SET "+strings.Join(sets, ", ")+" WHERE idem_key = '"+run+"'")
	return err
}

func (d *database) row(kind, run string) (fence.Row, error) {
	return d.table.Read(context.Background(), fence.Key{Scope: kind, ID: run})
}

// harness is what all runs share.
type harness struct {
	dir, binary string
	bank        *bank
	points      *httptest.Server
	databases   []*database

	mu       sync.Mutex
	runs     map[string]*run
	sidecars map[string]*sidecar
}

func newHarness(dir string) (*harness, error) {
	h := &harness{dir: dir, binary: filepath.Join(dir, "fence"), bank: newBank(), runs: map[string]*run{}, sidecars: map[string]*sidecar{}}
	h.points = httptest.NewServer(http.HandlerFunc(h.at))
	build := exec.Command("go", "build", "-tags", "fencepoints", "-o", h.binary, "github.com/queueworker/operator/cmd/fence")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the fence: %w\n%s", err, output)
	}
	for _, name := range []string{"PostgreSQL", "MariaDB"} {
		d, err := newDatabase(name)
		if err != nil {
			return nil, err
		}
		h.databases = append(h.databases, d)
	}
	return h, nil
}

func (h *harness) stop() {
	for _, s := range h.sidecars {
		s.kill()
		s.way.Close()
	}
	for _, d := range h.databases {
		d.stop()
	}
	h.points.Close()
	h.bank.Close()
}

// lane is two places for sidecars at one table. It belongs to one run at a time.
type lane struct {
	db       *database
	sidecars []*sidecar
}

// never is a pause between two rounds of an upkeep that never comes.
const never = 86400

func (h *harness) lane(d *database, upkeep int, of []kind) (*lane, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &lane{db: d}
	for range 2 {
		id := strconv.Itoa(len(h.sidecars))
		dsn := filepath.Join(h.dir, "dsn-"+id)
		s, err := newSidecar(h, d, id, configuration(d, dsn, h.bank.URL, upkeep, of))
		if err != nil {
			return nil, err
		}
		h.sidecars[id] = s
		l.sidecars = append(l.sidecars, s)
	}
	return l, nil
}

func (l *lane) stop() {
	for _, s := range l.sidecars {
		s.kill()
	}
}

// at is asked by a fence at each of its steps, and waits while it is answered.
func (h *harness) at(_ http.ResponseWriter, r *http.Request) {
	id, start, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	h.mu.Lock()
	run, by := h.runs[r.FormValue("run")], h.sidecars[id]
	h.mu.Unlock()
	if run != nil {
		run.at(by, start, r.FormValue("point"))
	}
}

// stepLimit bounds what a test waits for anything.
const stepLimit = time.Minute

func eventually(holds func() bool) bool {
	for end := time.Now().Add(stepLimit); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
