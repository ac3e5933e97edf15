// SPDX-License-Identifier: Apache-2.0

// Package contract is what every store must keep, tried against a real
// database by that store's own tests.
package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// Fixture is one kind of database.
type Fixture struct {
	// Open gives a store over a fresh, managed table.
	Open func(t *testing.T) Opened
	// Through gives a store over the same table whose connections go through a
	// proxy; nil where there is no network.
	Through func(t *testing.T, o Opened) (fence.Store, Faults)
}

// Faults breaks connections; see servers.Proxy.
type Faults interface {
	LoseNextReply()
	HoldNext()
	WaitLate()
}

// Opened is a store and a way around it.
type Opened struct {
	Store fence.Store
	Table string
	// Exec runs SQL with positional parameters as the dialect writes them.
	Exec func(t *testing.T, sql string, args ...any)
	// Lock holds the row's lock in a transaction until release is called.
	Lock    func(t *testing.T, key fence.Key) (release func())
	Param   func(n int) string
	TimeArg func(time.Time) any
}

// Run tries the whole contract.
func Run(t *testing.T, f Fixture) {
	t.Run("Guards", func(t *testing.T) { guards(t, f.Open(t)) })
	t.Run("Claim", func(t *testing.T) { claims(t, f.Open(t)) })
	t.Run("Keys", func(t *testing.T) { keys(t, f.Open(t)) })
	t.Run("LongTexts", func(t *testing.T) { longTexts(t, f.Open(t)) })
	t.Run("Races", func(t *testing.T) { races(t, f.Open(t)) })
	t.Run("OneGrant", func(t *testing.T) { oneGrant(t, f.Open(t)) })
	t.Run("Contention", func(t *testing.T) { contention(t, f.Open(t)) })
	t.Run("LockedRow", func(t *testing.T) { lockedRow(t, f.Open(t)) })
	t.Run("Sweepable", func(t *testing.T) { sweepable(t, f.Open(t)) })
	t.Run("Retention", func(t *testing.T) { retention(t, f.Open(t)) })
	t.Run("Unsettled", func(t *testing.T) { unsettled(t, f.Open(t)) })
	t.Run("Load", func(t *testing.T) { load(t, f.Open(t)) })
	if f.Through != nil {
		t.Run("LostReply", func(t *testing.T) { lostReply(t, f) })
		t.Run("LateStatement", func(t *testing.T) { lateStatement(t, f) })
	}
}

const scope = "stripe"

func tokenOf(b byte) fence.Token { return fence.Token{0: b, 15: 1} }

// put writes a row as it is.
func (o Opened) put(t *testing.T, r fence.Row) {
	t.Helper()
	response := fence.Response{}
	if r.Response != nil {
		response = *r.Response
	}
	when := func(at time.Time) any {
		if at.IsZero() {
			return nil
		}
		return o.TimeArg(at)
	}
	orNil := func(b []byte) any {
		if b == nil {
			return nil
		}
		return b
	}
	values := []any{
		r.Key.Scope, r.Key.ID, r.Fingerprint[:], r.State.String(), r.Token[:], r.Attempt, r.Owner,
		when(r.LeaseUntil), when(r.QuietUntil), when(r.FirstSentAt), r.Doubt, r.Generation, r.Resends,
		string(r.Outcome), response.Status, orNil(response.Headers), orNil(response.Body), response.BodyDigest[:], response.ProviderID,
		r.Reason, r.SettledBy, r.SettledWho, when(r.SettledAt), when(r.CheckedAt),
	}
	params := make([]string, len(values))
	for i := range params {
		params[i] = o.Param(i + 1)
	}
	o.Exec(t, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", o.Table, strings.Join(sqlfence.Columns, ", "), strings.Join(params, ", ")), values...)
}

// passTime ends every lease, and every time in which a request may still act.
func (o Opened) passTime(t *testing.T) {
	t.Helper()
	past := o.TimeArg(time.Now().UTC().Add(-time.Hour))
	o.Exec(t, fmt.Sprintf("UPDATE %s SET lease_until = %s, quiet_until = %s WHERE state IN ('claimed', 'unknown')", o.Table, o.Param(1), o.Param(2)), past, past)
}

func (o Opened) read(t *testing.T, key fence.Key) fence.Row {
	t.Helper()
	row, err := o.Store.Read(t.Context(), key)
	if errors.Is(err, fence.ErrNoRow) {
		return fence.Row{Key: key}
	}
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// situation describes the rows that guards can tell apart.
type situation struct {
	state                    fence.State
	mine                     bool
	doubt                    int
	leaseOver, quiet, keyOld bool
}

func situations() []situation {
	var all []situation
	flags := []bool{false, true}
	for s := fence.Claimed; s <= fence.NeedsReview; s++ {
		for doubt := range 3 {
			for _, mine := range flags {
				for _, over := range flags {
					for _, quiet := range flags {
						for _, old := range flags {
							all = append(all, situation{s, mine, doubt, over, quiet, old})
						}
					}
				}
			}
		}
	}
	return all
}

const (
	keyLife = 24 * time.Hour
	margin  = time.Hour
)

func (s situation) row(key fence.Key, now time.Time) fence.Row {
	past := func(over bool) time.Time {
		if over {
			return now.Add(-time.Hour)
		}
		return now.Add(time.Hour)
	}
	row := fence.Row{
		Key: key, State: s.state, Token: tokenOf(9), Attempt: 3, Owner: "pod-a", Doubt: s.doubt, Generation: 2, Resends: 1,
		LeaseUntil: past(s.leaseOver), QuietUntil: past(s.quiet), FirstSentAt: now.Add(-2 * time.Hour), Reason: "old reason",
	}
	if s.mine {
		row.Token = tokenOf(1)
	}
	if s.keyOld {
		row.FirstSentAt = now.Add(margin / 2).Add(-keyLife) // inside the key's life, but not by the margin
	}
	if s.state == fence.Done {
		row.Outcome, row.Response = fence.Effect, &fence.Response{Status: 201, Headers: []byte("h"), Body: []byte("b"), ProviderID: "ch_1"}
	}
	return row
}

func statementOf(op fence.Op, key fence.Key) fence.Statement {
	return fence.Statement{
		Op: op, Key: key, Token: tokenOf(1), New: tokenOf(2), Owner: "pod-b",
		Lease: 20 * time.Second, Quiet: 400 * time.Second, KeyLife: keyLife, Margin: margin,
		Response: &fence.Response{Status: 200, Headers: []byte("{}"), Body: []byte("body \x00\xff"), BodyDigest: fence.Digest{1, 2}, ProviderID: "ch_2"},
		Reason:   "because", By: fence.ByAttempt, Who: "pod-b",
	}
}

// guards runs every statement against every kind of row and compares with the
// statement's meaning: who is refused, and what is written.
func guards(t *testing.T, o Opened) {
	for _, op := range fence.Ops() {
		if op == fence.OpClaim {
			continue
		}
		for _, s := range situations() {
			if wrong := o.tryGuard(t, op, s); wrong != "" {
				t.Errorf("%s on %+v: %s", op, s, wrong)
			}
		}
		if wrong := o.tryOthers(t, op); wrong != "" {
			t.Errorf("%s: %s", op, wrong)
		}
	}
}

func (o Opened) tryGuard(t *testing.T, op fence.Op, s situation) (wrong string) {
	t.Helper()
	key := fence.Key{Scope: scope, ID: fmt.Sprintf("%s, %+v", op, s)}
	before := s.row(key, time.Now().UTC())
	o.put(t, before)
	st := statementOf(op, key)
	want, applies := fence.Apply(before, st, time.Now().UTC())
	applied, err := o.Store.Apply(t.Context(), st)
	switch {
	case err != nil:
		return err.Error()
	case applied != applies:
		return fmt.Sprintf("applied %t, want %t", applied, applies)
	}
	return differs(o.read(t, key), want)
}

// tryOthers runs a statement where it applies: rows under other keys, to which
// it would apply just as well, stay as they are.
func (o Opened) tryOthers(t *testing.T, op fence.Op) (wrong string) {
	t.Helper()
	id := op.String() + ", others"
	now := time.Now().UTC()
	key := fence.Key{Scope: scope, ID: id}
	var s situation
	for _, s = range situations() {
		if _, applies := fence.Apply(s.row(key, now), statementOf(op, key), now); applies {
			break
		}
	}
	others := []fence.Row{
		s.row(fence.Key{Scope: "another", ID: id}, now),
		s.row(fence.Key{Scope: scope, ID: id + " 2"}, now),
	}
	for _, row := range append(others, s.row(key, now)) {
		o.put(t, row)
	}
	if applied, err := o.Store.Apply(t.Context(), statementOf(op, key)); err != nil || !applied {
		return fmt.Sprintf("on %+v: applied %t, %v", s, applied, err)
	}
	for _, row := range others {
		if diff := differs(o.read(t, row.Key), row); diff != "" {
			return fmt.Sprintf("the row under %v: %s", row.Key, diff)
		}
	}
	return ""
}

// differs compares rows; times may lie as far apart as a loaded machine needs for
// a statement, which is less than any two times that mean something do.
func differs(got, want fence.Row) string {
	for name, pair := range map[string][2]time.Time{
		"lease_until": {got.LeaseUntil, want.LeaseUntil}, "quiet_until": {got.QuietUntil, want.QuietUntil},
		"first_sent_at": {got.FirstSentAt, want.FirstSentAt}, "settled_at": {got.SettledAt, want.SettledAt},
		"checked_at": {got.CheckedAt, want.CheckedAt},
	} {
		if pair[0].IsZero() != pair[1].IsZero() || pair[0].Sub(pair[1]).Abs() > 15*time.Second {
			return fmt.Sprintf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	g, w := got, want
	for _, r := range []*fence.Row{&g, &w} {
		r.LeaseUntil, r.QuietUntil, r.FirstSentAt, r.SettledAt, r.CheckedAt, r.ReadAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
		r.Response = nil
	}
	if g != w {
		return fmt.Sprintf("row is %+v, want %+v", g, w)
	}
	return responseDiffers(got.Response, want.Response)
}

func responseDiffers(got, want *fence.Response) string {
	switch {
	case got == nil && want == nil:
		return ""
	case got == nil || want == nil:
		return fmt.Sprintf("response is %v, want %v", got, want)
	case got.Status != want.Status, got.ProviderID != want.ProviderID, got.BodyDigest != want.BodyDigest,
		!bytes.Equal(got.Headers, want.Headers), !bytes.Equal(got.Body, want.Body):
		return fmt.Sprintf("response is %+v, want %+v", *got, *want)
	}
	return ""
}

// claims: a claim grants where there is no row, and otherwise reads.
func claims(t *testing.T, o Opened) {
	free := fence.Key{Scope: scope, ID: "free"}
	st := statementOf(fence.OpClaim, free)
	st.Fingerprint = fence.Fingerprint("POST", "/charges", []byte("{}"))
	row, err := o.Store.Claim(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := fence.Apply(fence.Row{}, st, row.ReadAt)
	if diff := differs(row, want); diff != "" {
		t.Errorf("a granted claim returns %s", diff)
	}
	if diff := differs(o.read(t, free), want); diff != "" {
		t.Errorf("a granted claim writes %s", diff)
	}
	if age := time.Since(row.ReadAt).Abs(); age > time.Minute {
		t.Errorf("the clock came as %v", row.ReadAt)
	}
	for i, s := range situations() {
		for _, again := range []bool{false, true} {
			key := fence.Key{Scope: scope, ID: fmt.Sprintf("taken-%d-%t", i, again)}
			before, st := s.row(key, time.Now().UTC()), statementOf(fence.OpClaim, key)
			if again { // a claim that was granted, and is sent once more
				before.Token = st.New
			}
			o.put(t, before)
			row, err := o.Store.Claim(t.Context(), st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := differs(row, before); diff != "" {
				t.Errorf("a claim of %+v, again %t: %s", s, again, diff)
			}
		}
	}
	if _, err := o.Store.Read(t.Context(), fence.Key{Scope: scope, ID: "never"}); !errors.Is(err, fence.ErrNoRow) {
		t.Errorf("reading nothing: %v", err)
	}
}

// keys that a careless collation takes for one.
func keys(t *testing.T, o Opened) {
	ids := []string{
		"Order-1", "order-1", "order-1 ", " order-1", "ordér-1", "orde\u0301r-1", "order-1~1", "ｏrder-1", "straße", "strasse", "İ", "i",
		strings.Repeat("k", fence.MaxID), strings.Repeat("k", fence.MaxID-1) + "K", `'"; DROP TABLE fence; --`, `\`, "%", "𝟘-💳",
	}
	for i, id := range ids {
		key := fence.Key{Scope: scope, ID: id}
		if err := key.Validate(); err != nil {
			t.Fatal(err)
		}
		st := statementOf(fence.OpClaim, key)
		st.New = tokenOf(byte(i + 1))
		row, err := o.Store.Claim(t.Context(), st)
		if err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		if row.Token != st.New || row.Key != key {
			t.Errorf("%q is taken for %q", id, row.Key.ID)
		}
	}
	for i, id := range ids {
		if row := o.read(t, fence.Key{Scope: scope, ID: id}); row.Token != tokenOf(byte(i+1)) {
			t.Errorf("%q reads another key's row", id)
		}
	}
	other, err := o.Store.Claim(t.Context(), statementOf(fence.OpClaim, fence.Key{Scope: "Stripe", ID: "Order-1"}))
	if err != nil || other.Token != tokenOf(2) {
		t.Errorf("scopes are not kept apart: %v", err)
	}
}

// longTexts: an explanation that does not fit must not cost an outcome.
func longTexts(t *testing.T, o Opened) {
	key := fence.Key{Scope: scope, ID: "long"}
	claim := statementOf(fence.OpClaim, key)
	claim.Owner = strings.Repeat("p", 1000)
	if _, err := o.Store.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	unknown := statementOf(fence.OpUnknown, key)
	unknown.Token, unknown.Reason = claim.New, "é\x00"+strings.Repeat("é\xff", 5000)
	effect := statementOf(fence.OpEffect, key)
	effect.Response = &fence.Response{Status: 200, Body: bytes.Repeat([]byte{0, 255}, 1<<19), ProviderID: strings.Repeat("x", 5000)}
	for _, st := range []fence.Statement{unknown, effect} {
		if applied, err := o.Store.Apply(t.Context(), st); !applied || err != nil {
			t.Errorf("%s: %t %v", st.Op, applied, err)
		}
	}
	if got := o.read(t, key); !bytes.Equal(got.Response.Body, effect.Response.Body) {
		t.Error("a body of 1 MiB came back changed")
	}
}

func background(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
