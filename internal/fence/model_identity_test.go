// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"bytes"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/queueworker/operator/internal/fence"
)

// States that differ only in what can never matter again (absolute time, names
// of tokens, order of copies, what a handler has read but will not look at) are
// one. TestEqualWorldsGoOnAlike holds this file to that.

// identity is equal for worlds that cannot be told apart by what may follow.
func (w *world) identity() uint64 {
	e := encoder{w: w, buf: make([]byte, 0, 160)}
	e.row()
	e.people()
	return xxhash.Sum64(e.actorsAndRest())
}

type encoder struct {
	w      *world
	buf    []byte
	tokens []fence.Token // in the order they were met
	blind  bool          // names no token anew, for sorting
}

func (e *encoder) put(values ...int) {
	for _, v := range values {
		e.buf = append(e.buf, byte(v))
	}
}

func (e *encoder) flags(all ...bool) {
	bits := 0
	for i, b := range all {
		if b {
			bits |= 1 << i
		}
	}
	e.put(bits)
}

func (e *encoder) token(t fence.Token) {
	i := slices.Index(e.tokens, t)
	switch {
	case t == (fence.Token{}):
		e.put(0)
	case i >= 0:
		e.put(i + 1)
	case e.blind:
		e.put(0xff)
	default:
		e.tokens = append(e.tokens, t)
		e.put(len(e.tokens))
	}
}

// ago puts how long ago, on the database's clock, clipped to what can matter.
func (e *encoder) ago(t time.Time, least, most int) {
	e.put(min(max(int(e.w.dbNow().Sub(t)/tick), least), most) - least)
}

func (e *encoder) row() {
	r, s := e.w.row, e.w.s
	e.put(int(r.State))
	if s.forgets {
		e.ago(r.SettledAt, 0, s.keep+1)
	}
	switch r.State {
	case fence.NoRow:
		return
	case fence.Done: // nothing but a read or a deletion is left
		e.put(len(r.Outcome))
		if s.forgets || s.mutant != nil {
			e.token(r.Token)
		}
		return
	case fence.Claimed:
		e.ago(r.LeaseUntil, -3, 1)
	case fence.Unknown:
		if review := s.declared.ReviewAfter; review > 0 {
			e.ago(r.LeaseUntil, -3, 1+int(review/tick))
		}
	}
	e.token(r.Token)
	e.generation(r.SentKey())
	if s.mutant == nil && r.State == fence.Released {
		return
	}
	e.put(r.Doubt)
	if s.mutant == nil && r.State == fence.NeedsReview && s.persons == 0 {
		return
	}
	e.ago(r.QuietUntil, -(s.kind.inFlight + s.kind.lag + 4), 1)
	if s.declared.Keyed() && (s.mutant != nil || r.State != fence.NeedsReview) {
		e.keyAge(r)
	}
}

// keyAge matters until the key may not be sent again.
func (e *encoder) keyAge(r fence.Row) {
	e.put(r.Resends)
	t := e.w.s.declared.Times
	switch {
	case e.w.s.mutant != nil:
		e.ago(r.FirstSentAt, 0, int(t.KeyLife/tick)+2)
	case r.Resends < e.w.s.declared.MaxResends:
		e.ago(r.FirstSentAt, 0, int((t.KeyLife-t.Margin())/tick))
	}
}

// generation matters only to a provider that knows keys.
func (e *encoder) generation(key string) {
	if e.w.s.kind.keyed && key != "" {
		e.put(int(key[len(key)-1]))
	}
}

func (e *encoder) people() {
	for _, p := range e.w.persons {
		e.flags(p.saw, p.effect)
		e.token(p.token)
	}
}

// alike are actors that differ in nothing but, perhaps, the names of their tokens.
type alike []*actor

// actorsAndRest does not depend on the slots of the actors. Where some are
// alike, what else holds their tokens tells them apart, so of all orders the one
// with the smallest text counts.
func (e *encoder) actorsAndRest() []byte {
	groups := e.groups()
	var least []byte
	orders(groups, func() {
		one := encoder{w: e.w, buf: slices.Clone(e.buf), tokens: slices.Clone(e.tokens)}
		for _, g := range groups {
			for _, a := range g {
				one.actor(a)
			}
		}
		one.put(0xfe)
		one.rest()
		if least == nil || bytes.Compare(one.buf, least) < 0 {
			least = one.buf
		}
	})
	return least
}

// groups are the actors, in the order of what they hold besides tokens that
// only actors hold.
func (e *encoder) groups() []alike {
	var keys [][]byte
	var groups []alike
	for _, a := range e.w.actors {
		if a == nil {
			continue
		}
		blind := encoder{w: e.w, tokens: e.tokens, blind: true, buf: make([]byte, 0, 48)}
		blind.actor(a)
		i, found := slices.BinarySearchFunc(keys, blind.buf, bytes.Compare)
		if found {
			groups[i] = append(groups[i], a)
			continue
		}
		keys, groups = slices.Insert(keys, i, blind.buf), slices.Insert(groups, i, alike{a})
	}
	return groups
}

// orders runs do for each order of each group.
func orders(groups []alike, do func()) {
	if len(groups) == 0 {
		do()
		return
	}
	permute(groups[0], 0, func() { orders(groups[1:], do) })
}

func permute(a alike, from int, do func()) {
	if from >= len(a)-1 {
		do()
		return
	}
	for i := from; i < len(a); i++ {
		a[from], a[i] = a[i], a[from]
		permute(a, from+1, do)
		a[from], a[i] = a[i], a[from]
	}
}

func (e *encoder) actor(a *actor) {
	e.put(0xfd, int(a.step.Do))
	e.flags(a.sweep != nil, a.observed)
	if a.observed {
		e.put(int(a.lookup.Finding))
	}
	if e.w.s.window > 0 {
		e.put(e.w.now - a.born)
	}
	if a.step.Do == fence.DoSend {
		e.put(a.posts)
		if a.request != nil {
			e.request(*a.request)
		}
	}
	if a.sweep != nil {
		e.sweep(a.sweep, &a.step)
		return
	}
	v := fence.View(&a.call)
	e.call(&v)
	if e.w.s.mutant != nil {
		e.token(a.lastToken)
		e.token(a.reused)
		e.put(a.attempt, int(a.step.Statement.Op), max(-1, int(a.step.SendBy.Sub(at(e.w.now))/tick)))
	}
}

// sweep: whatever becomes of its last statement, the sweep is over.
func (e *encoder) sweep(s *fence.Sweep, step *fence.Step) {
	v := fence.ViewSweep(s)
	if step.Do == fence.DoRun {
		e.statement(&step.Statement)
		if step.Statement.Op != fence.OpExpire {
			return
		}
	}
	e.token(v.Row.Token)
	e.generation(v.Row.SentKey())
	e.flags(v.Row.Quiet(), v.MayResend, v.Overdue, v.Looked)
	e.put(int(v.Finding))
}

// call puts what its phase will still look at.
func (e *encoder) call(v *fence.CallView) {
	e.put(int(v.Phase))
	switch v.Phase {
	case fence.PhaseGranting:
		e.issued(v)
		e.statement(v.Running)
		e.generation(v.Row.SentKey())
		e.knowledge(v)
	case fence.PhaseRereading:
		e.token(v.Me)
		e.issued(v)
		e.flags(v.Resent)
	case fence.PhaseReading:
		e.knowledge(v)
	case fence.PhaseSettling:
		e.statement(v.Running)
		e.generation(v.Row.SentKey())
		e.flags(v.Row.Quiet(), v.MayResend, v.Overdue)
		e.knowledge(v)
	case fence.PhaseLooking:
		e.token(v.Row.Token)
		e.generation(v.Row.SentKey())
		e.flags(v.BeganQuiet, v.MayResend, v.Overdue)
	case fence.PhaseSending:
		e.token(v.Me)
		e.issued(v)
		e.generation(v.Row.SentKey())
		e.flags(v.Resent)
	case fence.PhaseWriting, fence.PhaseRechecking:
		e.issued(v)
		e.statement(v.Running)
		e.put(len(v.AnswerType), v.Tries)
	}
}

// knowledge is of one attempt.
func (e *encoder) knowledge(v *fence.CallView) {
	e.flags(v.Looked, v.Looked && v.BeganQuiet)
	if v.Looked {
		e.put(int(v.Finding))
		e.token(v.Row.Token)
	}
}

// issued matters until the send, and for how often an outcome is tried.
func (e *encoder) issued(v *fence.CallView) {
	e.put(min(e.w.now-int(v.Issued.Sub(epoch)/tick), 3))
}

func (e *encoder) statement(st *fence.Statement) {
	e.put(int(st.Op))
	e.token(st.Token)
	e.token(st.New)
	if st.New != (fence.Token{}) {
		e.flags(slices.Contains(e.w.past, st.New))
	}
	if st.Response != nil {
		e.put(st.Response.Status / 100)
	}
}

func (e *encoder) request(r request) {
	if r.acted {
		e.put(0xff, r.status%251)
		return
	}
	e.put(e.w.now - r.sent)
	e.generation(r.key)
}

func (e *encoder) rest() {
	w := e.w
	orphans := make([]string, len(w.orphans))
	for i, r := range w.orphans {
		one := encoder{w: w}
		one.request(r)
		orphans[i] = string(one.buf)
	}
	slices.Sort(orphans)
	for _, o := range orphans {
		e.buf = append(e.buf, o...)
	}
	e.put(0xfc)
	for _, r := range w.records {
		e.put(min(w.now-r.born, w.s.kind.keyLife), r.status%251)
		e.generation(r.key)
	}
	e.put(0xfb, w.effects, w.faults, w.jumps, w.dbAhead)
	if w.s.kind.showsRefusal {
		e.put(w.refusedBy)
	}
	e.flags(w.told)
	if w.effects > 0 && w.s.declared.Lookup {
		e.put(min(w.now-w.effectAt, w.s.kind.lag+1))
	}
	if w.late != nil {
		e.statement(w.late)
	}
	if w.s.window > 0 {
		e.put(min(w.now, w.s.window+w.s.handlerMax+1))
	}
	if w.s.mutant != nil {
		e.token(w.errored)
	}
}
