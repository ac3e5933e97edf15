// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// races lets two connections run the same statement at once. What they may do
// together is what they may do one after the other.
func races(t *testing.T, o Opened) {
	const rounds = 25
	for _, op := range fence.Ops() {
		for round := range rounds {
			key := fence.Key{Scope: scope, ID: fmt.Sprintf("race-%s-%d", op, round)}
			var before fence.Row
			if op != fence.OpClaim {
				before = startOf(op).row(key, time.Now().UTC())
				o.put(t, before)
			}
			first, second := statementOf(op, key), statementOf(op, key)
			second.New = tokenOf(3)
			between, one := fence.Apply(before, first, time.Now().UTC())
			_, two := fence.Apply(between, second, time.Now().UTC())
			if !one {
				t.Fatalf("%s does not apply to its own start", op)
			}
			want := 1
			if two {
				want = 2
			}
			if got := together(t, o.Store, first, second); got != want {
				t.Errorf("%s twice at once: applied %d times, want %d", op, got, want)
			}
		}
	}
}

// startOf is a row that lets the statement apply.
func startOf(op fence.Op) situation {
	s := situation{state: fence.Unknown, mine: true, leaseOver: true, quiet: true}
	for _, state := range []fence.State{fence.NeedsReview, fence.Released, fence.Claimed, fence.Unknown} {
		if fence.TransitionOf(op).Guard.From.Has(state) {
			s.state = state
		}
	}
	return s
}

func together(t *testing.T, store fence.Store, statements ...fence.Statement) int {
	t.Helper()
	var applied atomic.Int32
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, st := range statements {
		wg.Go(func() {
			<-start
			ok, err := run(t.Context(), store, st)
			if err != nil {
				t.Errorf("%s: %v", st.Op, err)
			}
			if ok {
				applied.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(applied.Load())
}

func run(ctx context.Context, store fence.Store, st fence.Statement) (bool, error) {
	if st.Op != fence.OpClaim {
		return store.Apply(ctx, st)
	}
	row, err := store.Claim(ctx, st)
	return row.Token == st.New, err
}

// oneGrant: very many claims of one key, and one owner.
func oneGrant(t *testing.T, o Opened) {
	const claims, connections = 10_000, 50
	key := fence.Key{Scope: scope, ID: "popular"}
	var granted, next atomic.Int64
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for next.Add(1) <= claims {
				st := statementOf(fence.OpClaim, key)
				st.New = fence.NewToken()
				ok, err := run(t.Context(), o.Store, st)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != 1 {
		t.Errorf("%d grants", granted.Load())
	}
}

// contention: many writers of few rows. Deadlocks and the like are retried,
// so nobody sees them.
func contention(t *testing.T, o Opened) {
	const writers, rounds = 16, 60
	for i := range 2 {
		key := fence.Key{Scope: scope, ID: fmt.Sprintf("hot-%d", i)}
		o.put(t, situation{state: fence.Unknown, mine: true, quiet: true}.row(key, time.Now().UTC()))
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				st := statementOf(fence.OpNote, fence.Key{Scope: scope, ID: fmt.Sprintf("hot-%d", (w+r)%2)})
				if ok, err := o.Store.Apply(t.Context(), st); err != nil || !ok {
					t.Errorf("writer %d: %t %v", w, ok, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// lockedRow: a statement that waits for a row's lock succeeds when the lock
// goes within its budget, and ends with the budget when it does not.
func lockedRow(t *testing.T, o Opened) {
	if o.Lock == nil {
		t.Skip("this database locks no rows")
	}
	key := fence.Key{Scope: scope, ID: "locked"}
	o.put(t, situation{state: fence.Unknown, mine: true}.row(key, time.Now().UTC()))
	release := o.Lock(t, key)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := o.Store.Apply(short, statementOf(fence.OpNote, key)); err == nil {
		t.Error("a statement passed a lock")
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("the budget of 300ms was %s", took)
	}
	timer := time.AfterFunc(3*time.Second, release)
	defer timer.Stop()
	long, cancelLong := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancelLong()
	if ok, err := o.Store.Apply(long, statementOf(fence.OpNote, key)); err != nil || !ok {
		t.Errorf("after the lock: %t %v", ok, err)
	}
}
