// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

func sweepable(t *testing.T, o Opened) {
	now := time.Now().UTC()
	want := map[string]bool{}
	for i, s := range situations() {
		row := s.row(fence.Key{Scope: scope, ID: fmt.Sprintf("sweep-%d", i)}, now)
		o.put(t, row)
		if s.state == fence.Claimed && s.leaseOver || s.state == fence.Unknown && s.quiet {
			want[row.Key.ID] = true
		}
	}
	fresh := situation{state: fence.Unknown, quiet: true}.row(fence.Key{Scope: scope, ID: "just-looked-at"}, now)
	fresh.CheckedAt = now
	o.put(t, fresh)
	other := situation{state: fence.Unknown, quiet: true}.row(fence.Key{Scope: "other", ID: "other"}, now)
	o.put(t, other)
	which := fence.Sweepable{Scope: scope, Recheck: 10 * time.Minute, Batch: 10_000}
	rows, err := o.Store.Sweepable(t.Context(), which)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !want[row.Key.ID] {
			t.Errorf("%s must not be swept", row.Key.ID)
		}
		delete(want, row.Key.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d rows were not found", len(want))
	}
	which.Batch = 3
	if rows, err = o.Store.Sweepable(t.Context(), which); len(rows) != 3 || err != nil {
		t.Errorf("a batch of 3 holds %d (%v)", len(rows), err)
	}
}

// retention: only done and released rows go, only old ones, in batches; and
// bodies go before their tombstones.
func retention(t *testing.T, o Opened) {
	now := time.Now().UTC()
	const each = 12
	for s := fence.Claimed; s <= fence.NeedsReview; s++ {
		for i := range each {
			row := situation{state: s, leaseOver: true, quiet: true}.row(fence.Key{Scope: scope, ID: fmt.Sprintf("%s-%d", s, i)}, now)
			row.SettledAt = now.Add(-time.Duration(i) * time.Hour)
			o.put(t, row)
		}
	}
	trim(t, o, each)
	for _, s := range []fence.State{fence.Claimed, fence.Unknown, fence.NeedsReview} {
		if n, err := o.Store.Forget(t.Context(), fence.Forgettable{Scope: scope, State: s, Batch: 100}); n != 0 || err == nil {
			t.Errorf("%s rows: %d deleted, %v", s, n, err)
		}
	}
	for _, s := range []fence.State{fence.Done, fence.Released} {
		which := fence.Forgettable{Scope: scope, State: s, Age: 6*time.Hour - time.Minute, Batch: 4}
		var batches []int
		for {
			n, err := o.Store.Forget(t.Context(), which)
			if err != nil {
				t.Fatal(err)
			}
			if batches = append(batches, n); n == 0 {
				break
			}
		}
		if fmt.Sprint(batches) != "[4 2 0]" {
			t.Errorf("%s rows went in batches %v", s, batches)
		}
	}
	for s := fence.Claimed; s <= fence.NeedsReview; s++ {
		for i := range each {
			gone := o.read(t, fence.Key{Scope: scope, ID: fmt.Sprintf("%s-%d", s, i)}).State == fence.NoRow
			if want := (s == fence.Done || s == fence.Released) && i >= 6; gone != want {
				t.Errorf("%s-%d: gone %t, want %t", s, i, gone, want)
			}
		}
	}
}

func trim(t *testing.T, o Opened, each int) {
	which := fence.Trimmable{Scope: scope, Age: 3*time.Hour - time.Minute, Batch: 5}
	total := 0
	for range 10 {
		done, err := o.Store.Trim(t.Context(), which)
		if err != nil {
			t.Fatal(err)
		}
		if total += done.Rows; done.Rows == 0 {
			break
		}
		which.After = done.Upto
	}
	if total != each-3 {
		t.Errorf("%d bodies were dropped, want %d", total, each-3)
	}
	for i := range each {
		row := o.read(t, fence.Key{Scope: scope, ID: fmt.Sprintf("done-%d", i)})
		kept := row.Response.Body != nil
		if kept != (i < 3) || row.Response.Status != 201 || row.Response.ProviderID != "ch_1" {
			t.Errorf("done-%d after the trim: %+v", i, *row.Response)
		}
	}
}

// stub is a provider that always acts; some of its replies get lost.
type stub struct {
	mu      sync.Mutex
	effects map[string]int
	seen    map[string]int
	lose    func(n int) bool
	n       int
}

func newStub(lose func(n int) bool) *stub {
	return &stub{effects: map[string]int{}, seen: map[string]int{}, lose: lose}
}

// Send acts once for each key, as a provider that knows keys.
func (s *stub) Send(_ context.Context, order fence.Step) fence.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.seen[order.Key]++
	s.effects[order.Key] = 1
	if s.lose(s.n) {
		return fence.Event{Kind: fence.EventBroken, Reason: "the stub hung up"}
	}
	return fence.Event{Kind: fence.EventReplied, Reply: fence.Reply{Response: fence.Response{Status: 201, ProviderID: "id-" + order.Key}}}
}

func (s *stub) LookUp(_ context.Context, order fence.Step) fence.Lookup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.effects[order.Key] == 0 {
		return fence.Lookup{Finding: fence.FoundAbsent}
	}
	return fence.Lookup{Finding: fence.FoundEffect, Response: fence.Response{Status: 200, ProviderID: "id-" + order.Key}}
}

// patientProvider has times that no statement of a loaded machine uses up.
func patientProvider() *fence.Provider {
	return &fence.Provider{
		Scope: scope, Lookup: true, LagDeclared: true,
		Times: fence.Times{
			SendWindow: 20 * time.Second, ProviderTimeout: 20 * time.Second, StatementBudget: 40 * time.Second,
			ClientLimit: 2 * time.Minute, InFlight: time.Millisecond, LookupLag: time.Millisecond,
		},
	}
}

// load runs calls, a sweeper and retention side by side: nothing unsettled may
// vanish, nothing settled may change, no key may be sent twice.
func load(t *testing.T, o Opened) {
	const callers, each = 8, 60
	p := patientProvider()
	provider := newStub(func(n int) bool { return n%5 == 0 })
	parked := situation{state: fence.NeedsReview, quiet: true}.row(fence.Key{Scope: scope, ID: "parked"}, time.Now().UTC())
	parked.SettledAt = time.Now().UTC().Add(-1000 * time.Hour) // old, and yet not retention's
	o.put(t, parked)
	for i := range 40 {
		old := situation{state: fence.Done, quiet: true}.row(fence.Key{Scope: scope, ID: fmt.Sprintf("old-%d", i)}, time.Now().UTC())
		old.SettledAt = time.Now().UTC().Add(-100 * time.Hour)
		o.put(t, old)
	}
	ctx, stop := context.WithCancel(background(t))
	var upkeep sync.WaitGroup
	upkeep.Go(func() {
		for ctx.Err() == nil {
			u := fence.Upkeep{Provider: p, Store: o.Store, Sender: provider, Clock: fence.SystemClock{}, Keep: fence.Keep{Done: time.Hour, Body: time.Hour, Released: time.Hour}, Batch: 7}
			if err := u.Once(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	var calls sync.WaitGroup
	var turnedAway sync.Map // keys that a caller could not even claim: a database too busy to answer in time
	for c := range callers {
		calls.Go(func() {
			for i := range each {
				id := fmt.Sprintf("load-%d", (c/2)*each+i) // two callers share each key
				call := fence.NewCall(p, fence.Request{Key: fence.Key{Scope: scope, ID: id}, Owner: fmt.Sprint(c)}, time.Now())
				if fence.Run(t.Context(), call, o.Store, provider, fence.SystemClock{}).Type == fence.AnswerStoreUnavailable {
					turnedAway.Store(id, true)
				}
			}
		})
	}
	calls.Wait()
	time.Sleep(50 * time.Millisecond)
	stop()
	upkeep.Wait()
	settleAll(t, o, p, provider)
	away := 0
	for c := range callers / 2 {
		for i := range each {
			id := fmt.Sprintf("load-%d", c*each+i)
			row := o.read(t, fence.Key{Scope: scope, ID: id})
			if _, ok := turnedAway.Load(id); ok && row.State == fence.NoRow && provider.seen[id] == 0 {
				away++
				continue
			}
			if row.State != fence.Done || row.Outcome != fence.Effect || provider.seen[id] != 1 {
				t.Errorf("%s is %s (%s) after %d requests", id, row.State, row.Reason, provider.seen[id])
			}
		}
	}
	if most := callers / 2 * each / 10; away > most {
		t.Errorf("%d keys were turned away, at most %d are a busy machine's doing", away, most)
	}
	if o.read(t, parked.Key).State != fence.NeedsReview {
		t.Error("a parked row vanished")
	}
	for i := range 40 {
		if row := o.read(t, fence.Key{Scope: scope, ID: fmt.Sprintf("old-%d", i)}); row.State != fence.NoRow {
			t.Errorf("old-%d was not forgotten", i)
		}
	}
}

func settleAll(t *testing.T, o Opened, p *fence.Provider, sender fence.Sender) {
	t.Helper()
	o.passTime(t)
	u := fence.Upkeep{Provider: p, Store: o.Store, Sender: sender, Clock: fence.SystemClock{}, Keep: fence.Keep{Done: 1000 * time.Hour, Body: 1000 * time.Hour, Released: 1000 * time.Hour}, Batch: 1000}
	if err := u.Once(background(t)); err != nil {
		t.Error(err)
	}
}
