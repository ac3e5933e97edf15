// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// warm prepares the store's statements on its connection, so that the next
// message on the wire is the statement itself.
func warm(t *testing.T, store fence.Store, id string) {
	t.Helper()
	p := patientProvider()
	call := fence.NewCall(p, fence.Request{Key: fence.Key{Scope: scope, ID: id}}, time.Now())
	never := newStub(func(int) bool { return false })
	if a := fence.Run(t.Context(), call, store, never, fence.SystemClock{}); a.Type != fence.AnswerEffect {
		t.Fatalf("warming up: %+v", a)
	}
}

// lostReply: the claim is committed, and the connection breaks before anyone
// hears of it. The call finds its own token and goes on; nobody else can.
func lostReply(t *testing.T, f Fixture) {
	o := f.Open(t)
	store, faults := f.Through(t, o)
	warm(t, store, "warm")
	provider := newStub(func(int) bool { return false })
	key := fence.Key{Scope: scope, ID: "lost"}
	call := fence.NewCall(patientProvider(), fence.Request{Key: key}, time.Now())
	faults.LoseNextReply()
	if a := fence.Run(t.Context(), call, store, provider, fence.SystemClock{}); a.Type != fence.AnswerEffect || a.Replayed {
		t.Errorf("answer %+v", a)
	}
	row := o.read(t, key)
	if row.State != fence.Done || row.Attempt != 1 || provider.seen[key.ID] != 1 {
		t.Errorf("row %s, attempt %d, %d requests", row.State, row.Attempt, provider.seen[key.ID])
	}

	warm(t, store, "warm again")
	completion := statementOf(fence.OpEffect, fence.Key{Scope: scope, ID: "lost completion"})
	o.put(t, situation{state: fence.Claimed, mine: true}.row(completion.Key, time.Now().UTC()))
	faults.LoseNextReply()
	if _, err := store.Apply(t.Context(), completion); err == nil {
		t.Error("a lost reply went unnoticed")
	}
	if row := o.read(t, completion.Key); row.State != fence.Done {
		t.Errorf("the completion whose reply was lost left the row %s", row.State)
	}
	if applied, err := store.Apply(t.Context(), completion); applied || err != nil {
		t.Errorf("the same completion again: %t %v", applied, err)
	}
}

// lateStatement: the connection breaks, the call re-reads, finds nothing and
// gives up; then its claim arrives after all. Nobody owns it, and the sweeper
// settles it like any other.
func lateStatement(t *testing.T, f Fixture) {
	o := f.Open(t)
	store, faults := f.Through(t, o)
	warm(t, store, "warm")
	provider := newStub(func(int) bool { return false })
	p := patientProvider()
	key := fence.Key{Scope: scope, ID: "late"}
	call := fence.NewCall(p, fence.Request{Key: key}, time.Now())
	faults.HoldNext()
	if a := fence.Run(t.Context(), call, store, provider, fence.SystemClock{}); a.Type != fence.AnswerStoreUnavailable {
		t.Errorf("answer %+v", a)
	}
	faults.WaitLate()
	if row := o.read(t, key); row.State != fence.Claimed || provider.seen[key.ID] != 0 {
		t.Errorf("the late claim left %s, %d requests", row.State, provider.seen[key.ID])
	}
	settleAll(t, o, p, provider)
	if row := o.read(t, key); row.State != fence.Released || row.Generation != 1 {
		t.Errorf("the sweeper left the late claim %s", row.State)
	}
	again := fence.NewCall(p, fence.Request{Key: key}, time.Now())
	if a := fence.Run(t.Context(), again, store, provider, fence.SystemClock{}); a.Type != fence.AnswerEffect {
		t.Errorf("the redelivery: %+v", a)
	}
}
