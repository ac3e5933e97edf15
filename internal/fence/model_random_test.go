// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	sqlitedriver "modernc.org/sqlite"
	"pgregory.net/rapid"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/memory"
	"github.com/queueworker/operator/internal/fence/store/sqlite"
)

// The explorer sees everything near the start; random runs go far: three
// copies, several faults, people, clock jumps and deletions at once, with every
// statement run by a real store and compared with its meaning.

// wildSetups are all kinds with everything switched on. The declared in-flight
// time covers what the clock may jump.
func wildSetups() []setup {
	all := []setup{setupA(3, 4), setupB(3, 4), setupC(3, 4), setupD(3, 4), setupStrict(3, 4),
		keyedWithLookup("A", kindA(), 3, 4), keyedWithLookup("B", kindB(), 3, 4)}
	for i := range all {
		s := &all[i]
		s.persons, s.jumps, s.maxGen = 2, 2, 1<<30
		s.declared.Times.InFlight += ticks(s.jumps)
		s.kind.showsProgress, s.kind.showsRefusal = true, true
		s.declared.ReviewAfter = ticks(30)
		if s.declared.Keyed() {
			s.kind.keyLife += 4
			s.declared.Times.KeyLife = ticks(s.kind.keyLife)
		}
	}
	strict := &all[4] // nobody knows when a request is dead there: no person may release
	strict.persons = 0
	released := all[3]
	released.name, released.forgets, released.keep, released.persons = "D, deletions", true, 1<<20, 0
	return append(all, released)
}

func TestRandomRuns(t *testing.T) {
	for _, s := range wildSetups() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for name, open := range map[string]func(*testing.T) modelStore{"memory": openMemory, "sqlite": openSQLite} {
				store := open(t)
				t.Run(name, func(t *testing.T) {
					rapid.Check(t, func(t *rapid.T) { randomRun(t, s, store) })
				})
			}
		})
	}
}

func randomRun(t *rapid.T, s setup, store modelStore) {
	store.reset()
	w := newWorld(&s)
	w.execute = store.execute(t)
	w.forget = func(w *world) {
		age := ticks(s.keep)
		if w.row.State == fence.Released {
			age = -ticks(100) // at once, and whatever the clock jumped
		}
		n, err := store.Forget(context.Background(), fence.Forgettable{Scope: modelKey.Scope, State: w.row.State, Age: age, Batch: 5})
		if n != 1 || err != nil {
			t.Fatalf("retention deleted %d rows, %v", n, err)
		}
	}
	steps := rapid.IntRange(20, 150).Draw(t, "steps")
	for range steps {
		as := w.possible()
		a := as[rapid.IntRange(0, len(as)-1).Draw(t, "choice")]
		t.Log(a)
		store.clock.Store(w.dbNow().UnixMicro())
		a.do(w)
		store.clock.Store(w.dbNow().UnixMicro())
		if harm := w.check(); harm != "" {
			t.Fatal(harm)
		}
	}
	w.execute = nil // the rest is not about the store
	if harm := w.settles(); harm != "" {
		t.Fatal(harm)
	}
}

// modelStore is a store whose clock is the model's.
type modelStore struct {
	fence.Store
	clock *atomic.Int64
	reset func()
}

// execute runs a statement on the store and holds the result to its meaning.
func (m modelStore) execute(t *rapid.T) func(*world, fence.Statement) (fence.Row, bool) {
	return func(w *world, st fence.Statement) (fence.Row, bool) {
		ctx := context.Background()
		want, applies := fence.Apply(w.row, st, w.dbNow())
		var applied bool
		var err error
		if st.Op == fence.OpClaim {
			var row fence.Row
			row, err = m.Claim(ctx, st)
			applied = row.Token == st.New
		} else {
			applied, err = m.Apply(ctx, st)
		}
		if err != nil || applied != applies {
			t.Fatalf("%s on %+v: applied %t, want %t (%v)", st.Op, w.row, applied, applies, err)
		}
		got, err := m.Read(ctx, modelKey)
		if err != nil && !errors.Is(err, fence.ErrNoRow) {
			t.Fatal(err)
		}
		got.Key, got.ReadAt = modelKey, time.Time{}
		if want.ReadAt = (time.Time{}); !reflect.DeepEqual(plain(got), plain(want)) {
			t.Fatalf("%s left\n%+v, want\n%+v", st.Op, got, want)
		}
		return want, applied
	}
}

// plain leaves out what cannot matter: nothing kept against nothing to keep.
func plain(r fence.Row) fence.Row {
	if r.Response == nil && r.State == fence.Done {
		r.Response = &fence.Response{}
	}
	if r.Response != nil {
		response := *r.Response
		response.Headers, response.Body = nil, nil
		r.Response = &response
	}
	return r
}

func openMemory(*testing.T) modelStore {
	clock := new(atomic.Int64)
	m := modelStore{clock: clock}
	now := func() time.Time { return time.UnixMicro(clock.Load()).UTC() }
	store := &resettable{memory.New(now)}
	m.Store, m.reset = store, func() { store.Store = memory.New(now) }
	return m
}

type resettable struct{ *memory.Store }

// sqliteClocks lets each database of a parallel test have a clock of its own.
var sqliteClocks [16]atomic.Int64

var nextClock atomic.Int64

func init() {
	sqlitedriver.MustRegisterScalarFunction("fence_clock", 1, func(_ *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
		return sqliteClocks[args[0].(int64)].Load(), nil
	})
}

func openSQLite(t *testing.T) modelStore {
	n := nextClock.Add(1) - 1
	path := filepath.Join(t.TempDir(), "model.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Table: "fence", Clock: fmt.Sprintf("fence_clock(%d)", n)})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.Close(), db.Close() })
	return modelStore{Store: s, clock: &sqliteClocks[n], reset: func() {
		if _, err := db.ExecContext(context.Background(), "DELETE FROM fence"); err != nil {
			t.Fatal(err)
		}
	}}
}
