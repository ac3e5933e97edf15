// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"fmt"
	"slices"

	"github.com/queueworker/operator/internal/fence"
)

// action is one thing that can happen next. Its name is only put together for
// a story, since most are never told.
type action struct {
	do     func(w *world)
	format string
	args   []any
}

func (a action) String() string { return fmt.Sprintf(a.format, a.args...) }

type actions []action

func (as *actions) add(do func(w *world), format string, args ...any) {
	*as = append(*as, action{do, format, args})
}

// possible lists everything that can happen in this state.
func (w *world) possible() actions {
	var as actions
	w.deliveries(&as)
	for i, a := range w.actors {
		if a != nil {
			w.actorActions(&as, i, a)
		}
	}
	w.providerActions(&as)
	w.peopleActions(&as)
	w.databaseActions(&as)
	as.add((*world).tick, "tick")
	return as
}

func (w *world) deliveries(as *actions) {
	open := w.s.window == 0 || w.now <= w.s.window
	for i := range w.s.copies {
		if w.actors[i] == nil && open {
			as.add(func(w *world) { w.deliver(i) }, "deliver %d", i)
			break
		}
	}
	sweeper := w.s.copies
	if w.s.sweeper && w.actors[sweeper] == nil && w.sweepable() {
		as.add((*world).sweep, "sweep")
	}
}

func (w *world) sweep() {
	machine := fence.NewSweep(&w.s.declared, w.read().Row)
	w.actors[w.s.copies] = &actor{sweep: &machine, born: w.now}
	w.next(w.s.copies, fence.Event{Kind: fence.EventBegin})
}

func (w *world) deliver(i int) {
	request := fence.Request{Key: modelKey}
	w.actors[i] = &actor{call: fence.NewCall(&w.s.declared, request, at(w.now)), born: w.now, reused: w.errored}
	w.next(i, fence.Event{Kind: fence.EventBegin})
}

func (w *world) sweepable() bool {
	row := w.read().Row
	return row.State == fence.Claimed && row.LeaseOver() || row.State == fence.Unknown && row.Quiet()
}

func (w *world) actorActions(as *actions, i int, a *actor) {
	if a.sweep == nil {
		as.add(func(w *world) { w.touch(i); w.remove(i) }, "kill %d", i)
	}
	tell := func(e fence.Event, format string, args ...any) {
		as.add(func(w *world) { w.touch(i).request = nil; w.next(i, e) }, format, args...)
	}
	switch a.step.Do {
	case fence.DoRun:
		w.statementActions(as, i, a.step.Statement)
	case fence.DoRead:
		as.add(func(w *world) { w.touch(i); w.next(i, w.read()) }, "%d reads", i)
		if w.faults > 0 {
			as.add(func(w *world) { w.faults--; w.touch(i); w.next(i, fence.Event{Kind: fence.EventStoreFailed}) }, "%d cannot read", i)
		}
	case fence.DoLookUp:
		w.lookupActions(as, i, a)
	case fence.DoSend:
		w.sendActions(as, i, a, tell)
	}
}

func (w *world) statementActions(as *actions, i int, st fence.Statement) {
	failed := fence.Event{Kind: fence.EventStoreFailed}
	as.add(func(w *world) { w.touch(i); w.next(i, w.applied(st)) }, "%d: %s", i, st.Op)
	if w.faults == 0 {
		return
	}
	fault := func(do func(w *world), what string) {
		as.add(func(w *world) {
			w.faults--
			a := w.touch(i)
			do(w)
			w.errored = a.lastToken
			w.next(i, failed)
		}, "%d: %s, %s", i, st.Op, what)
	}
	fault(func(w *world) { w.apply(st) }, "reply lost")
	fault(func(*world) {}, "not applied, error")
	if w.late == nil {
		fault(func(w *world) { w.late = &st }, "error, lands later")
	}
}

func (w *world) applied(st fence.Statement) fence.Event {
	applied := w.apply(st)
	switch {
	case st.Op == fence.OpClaim:
		return w.read()
	case applied:
		return fence.Event{Kind: fence.EventApplied}
	}
	return fence.Event{Kind: fence.EventNotApplied}
}

func (w *world) sendActions(as *actions, i int, a *actor, tell func(fence.Event, string, ...any)) {
	switch {
	case a.request == nil:
		tell(fence.Event{Kind: fence.EventNotSent}, "%d cannot connect", i)
		if !at(w.now).After(a.step.SendBy) {
			as.add(func(w *world) { w.send(i) }, "%d sends", i)
		}
		return
	case a.request.acted:
		reply := fence.Reply{Response: fence.Response{Status: a.request.status}}
		tell(fence.Event{Kind: fence.EventReplied, Reply: reply}, "%d gets %d", i, a.request.status)
	}
	broken := func(e fence.Event, what string) {
		as.add(func(w *world) {
			a := w.touch(i)
			if !a.request.acted {
				w.orphans = append(w.orphans, *a.request)
			}
			a.request = nil
			w.next(i, e)
		}, "%d %s", i, what)
	}
	broken(fence.Event{Kind: fence.EventBroken}, "times out")
	if m := w.s.mutant; m != nil && m.clientGone {
		broken(fence.Event{Kind: fence.EventNotSent}, "loses its client")
	}
}

func (w *world) send(i int) {
	a := w.touch(i)
	a.request = &request{key: a.step.Key, sent: w.now}
	a.posts++
	if a.posts > 1 {
		w.fail("I11: two POSTs for one grant")
	}
	if m := w.s.mutant; m != nil && m.sendsTwice {
		w.orphans = append(w.orphans, *a.request)
	}
}

func (w *world) lookupActions(as *actions, i int, a *actor) {
	if a.observed {
		as.add(func(w *world) {
			a := w.touch(i)
			w.next(i, fence.Event{Kind: fence.EventLookedUp, Lookup: a.lookup})
		}, "%d hears the lookup", i)
		return
	}
	observe := func(f fence.Finding, what string) {
		as.add(func(w *world) {
			a := w.touch(i)
			a.observed, a.lookup = true, fence.Lookup{Finding: f, Response: fence.Response{Status: 200}}
		}, "%d looks up: %s", i, what)
	}
	mustShow := w.effects > 0 && w.now > w.effectAt+w.s.kind.lag
	if w.effects > 0 {
		observe(fence.FoundEffect, "effect")
	}
	if mustShow {
		return
	}
	observe(fence.FoundAbsent, "absent")
	if w.s.kind.showsProgress && len(w.flying()) > 0 {
		observe(fence.FoundProcessing, "processing")
	}
	if w.s.kind.showsRefusal && w.refusedBy > 0 && w.effects == 0 {
		observe(fence.FoundRefusal, "refused")
	}
}

// providerActions: each request may act at any time until it dies.
func (w *world) providerActions(as *actions) {
	for i, a := range w.actors {
		if a != nil && a.request != nil && !a.request.acted {
			w.outcomes(as, *a.request, i, func(w *world) *request { return w.touch(i).request })
		}
	}
	for i, r := range w.orphans {
		if i > 0 && r == w.orphans[i-1] {
			continue
		}
		w.outcomes(as, r, -1, func(w *world) *request {
			gone := w.orphans[i]
			w.orphans = slices.Delete(w.orphans, i, i+1)
			return &gone
		})
	}
	for i, r := range w.records {
		if w.now-r.born >= w.s.kind.keyLife {
			as.add(func(w *world) { w.records = slices.Delete(w.records, i, i+1) }, "the provider forgets %s", r.key)
		}
	}
}

// outcome is what the provider may do with a request it has no record of.
type outcome struct {
	name    string
	status  int
	effect  bool
	stored  bool
	refuses bool
}

func (k kind) outcomes() []outcome {
	all := []outcome{{"acts", 201, true, true, false}}
	if k.refuses {
		all = append(all, outcome{"refuses", 422, false, k.storesErrors, true})
	}
	if k.fails {
		all = append(all, outcome{"fails", 500, false, k.storesErrors, false})
	}
	if k.fails && k.errorMayAct {
		all = append(all, outcome{"acts, then fails", 500, true, k.storesErrors, false})
	}
	return all
}

func (w *world) outcomes(as *actions, r request, who int, take func(w *world) *request) {
	k := w.s.kind
	if k.unauthorized { // before anything else the provider asks who is there
		as.add(func(w *world) { w.act(take(w), outcome{status: 401}) }, "provider does not know the user of %d", who)
	}
	for _, known := range w.records {
		if k.keyed && known.key == r.key {
			as.add(func(w *world) {
				mine := take(w)
				mine.acted, mine.status = true, known.status
			}, "provider replays %d for %d", known.status, who)
			return
		}
	}
	for _, o := range k.outcomes() {
		as.add(func(w *world) { w.act(take(w), o) }, "provider %s for %d", o.name, who)
	}
	if k.keyed && k.inProgress && len(w.flying()) > 1 {
		as.add(func(w *world) {
			mine := take(w)
			mine.acted, mine.status = true, 409
		}, "provider is busy with another request than that of %d", who)
	}
}

func (w *world) act(r *request, o outcome) {
	r.acted, r.status = true, o.status
	if o.effect {
		w.effects++
		w.effectAt = w.now
	}
	if o.refuses {
		w.refusedBy = 1
	}
	if w.s.kind.keyed && o.stored {
		w.records = append(w.records, record{key: r.key, born: r.sent, status: o.status})
	}
}

// peopleActions: a person looks at a parked key, and clicks later.
func (w *world) peopleActions(as *actions) {
	for i, p := range w.persons {
		row := w.read().Row
		hasty := w.s.mutant != nil && w.s.mutant.hasty
		if !p.saw && row.State == fence.NeedsReview && (w.effects > 0 || row.Quiet() || hasty) {
			as.add(func(w *world) { w.persons[i] = person{token: w.row.Token, saw: true, effect: w.effects > 0} }, "person %d looks", i)
		}
		if p.saw {
			as.add(func(w *world) {
				op := fence.OpResolveReleased
				if p.effect {
					op = fence.OpResolveDone
				}
				w.persons[i] = person{}
				w.apply(fence.Statement{Op: op, Key: modelKey, Token: p.token, By: fence.ByPerson})
			}, "person %d clicks", i)
		}
	}
}

func (w *world) databaseActions(as *actions) {
	if w.late != nil {
		as.add(func(w *world) { st := *w.late; w.late = nil; w.apply(st) }, "late %s lands", w.late.Op)
	}
	if w.jumps > 0 {
		as.add(func(w *world) { w.jumps--; w.dbAhead++ }, "the database's clock jumps ahead")
		as.add(func(w *world) { w.jumps--; w.dbAhead-- }, "the database's clock jumps back")
	}
	if w.s.forgets && w.forgettable() {
		as.add(func(w *world) {
			if w.forget != nil {
				w.forget(w)
			}
			w.retire(w.row.Token)
			w.row = fence.Row{Key: modelKey}
		}, "retention deletes the row")
	}
}

func (w *world) forgettable() bool {
	switch w.row.State {
	case fence.Done:
		return w.row.SettledAt.Add(at(w.s.keep).Sub(epoch)).Before(w.dbNow())
	case fence.Released:
		return true
	case fence.NoRow:
		return false
	}
	return w.s.mutant != nil && w.s.mutant.forgetsAll && w.row.State != fence.Claimed
}

func (w *world) tick() {
	w.now++
	dead := func(r request) bool { return w.now > r.sent+w.s.kind.inFlight }
	w.orphans = slices.DeleteFunc(w.orphans, func(r request) bool { return r.acted || dead(r) })
	for i, a := range w.actors {
		switch {
		case a == nil:
		case w.s.window > 0 && w.now > a.born+w.s.handlerMax:
			w.remove(i)
		case a.request != nil && !a.request.acted && dead(*a.request):
			a := w.touch(i) // dead, and no reply will come
			a.request.acted, a.request.status = true, 504
		}
	}
}
