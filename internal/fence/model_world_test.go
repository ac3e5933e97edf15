// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// The model: one key, a few copies of one job that overlap, a sweeper, people,
// and a provider that does whatever its kind allows. Time runs in ticks. Every
// copy has its own handler and no memory is shared, so two sidecars and one
// that restarts are both covered.

const tick = time.Second

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(now int) time.Time { return epoch.Add(time.Duration(now) * tick) }

// kind is what the provider really does; the fence only knows its declaration.
type kind struct {
	keyed         bool // recognises a repeated key
	storesErrors  bool // and replays refusals and 5xx as well
	errorMayAct   bool // a 5xx may follow an effect
	inFlight      int  // a request may act for so many ticks after its start
	lag           int  // a lookup may miss an effect for so many ticks
	keyLife       int  // a key may be forgotten so many ticks after its first send
	refuses       bool
	fails         bool // answers 5xx
	unauthorized  bool // answers 401 without acting
	inProgress    bool // answers 409 while another request with the key is alive
	showsProgress bool // lookups may say "processing"
	showsRefusal  bool // lookups may say "refused"
}

// setup is one bounded world.
type setup struct {
	name     string
	kind     kind
	declared fence.Provider
	copies   int
	faults   int // of the database: lost replies, failures, late statements
	jumps    int // of the database's clock, one tick each
	persons  int
	sweeper  bool
	maxGen   int

	forgets    bool // retention deletes released rows, and done ones after keep
	keep       int  // ticks from settled to deleted
	window     int  // deliveries begin only until this tick; 0 = for ever
	handlerMax int  // with a window: a copy lives at most so many ticks

	mutant *mutant
}

// mutant is a known-wrong variant: other transitions, or a handler that is
// lied to or that does something else than the protocol said.
type mutant struct {
	id    string
	wrong string // what it does
	in    setup  // where it is tried

	transition map[fence.Op]func(*fence.Transition)
	written    func(st fence.Statement, row *fence.Row, now time.Time) // after a statement applied
	event      func(w *world, a *actor, e *fence.Event)
	step       func(w *world, a *actor, before fence.Step, e fence.Event, s *fence.Step)
	token      func(w *world, a *actor, fresh fence.Token) fence.Token

	hasty      bool   // people do not wait for quiet
	clientGone bool   // a disconnect is taken for "not sent"
	sendsTwice bool   // the transport repeats a request by itself
	forgetsAll bool   // retention deletes unknown and parked rows too
	spare      string // an invariant not looked at, so that the later harm is seen
}

// request is one POST on its way, or its reply on the way back.
type request struct {
	key    string
	sent   int
	acted  bool
	status int
}

// record is the provider's memory of a key.
type record struct {
	key    string
	born   int
	status int
}

// actor is a copy of the job with its handler, or the sweeper.
type actor struct {
	sweep     *fence.Sweep // the sweeper's machine, or
	call      fence.Call   // a copy's
	step      fence.Step
	request   *request
	posts     int
	observed  bool
	lookup    fence.Lookup
	born      int
	reused    fence.Token // for the mutant that repeats a token
	attempt   int         // in the row this actor read last
	lastToken fence.Token
}

type person struct {
	token  fence.Token
	saw    bool
	effect bool
}

type world struct {
	s         *setup
	now       int
	dbAhead   int
	row       fence.Row
	actors    []*actor // slots; nil = free; the last one is the sweeper's
	persons   []person
	late      *fence.Statement
	orphans   []request // whose sender is gone
	records   []record
	effects   int
	effectAt  int
	refusedBy int // final refusals so far
	faults    int
	jumps     int
	told      bool // an app was told "refused"
	past      []fence.Token
	tokens    int
	errored   fence.Token // a token whose statement failed, for the mutant that repeats it
	harm      string

	forget  func(w *world)                                       // nil: likewise
	execute func(w *world, st fence.Statement) (fence.Row, bool) // nil: on the row in memory
}

var modelKey = fence.Key{Scope: "stub", ID: "order-1/charge"}

func newWorld(s *setup) *world {
	return &world{
		s: s, row: fence.Row{Key: modelKey}, actors: make([]*actor, s.copies+1),
		persons: make([]person, s.persons), faults: s.faults, jumps: s.jumps,
	}
}

func (w *world) clone() *world {
	c := *w
	c.actors = slices.Clone(w.actors)
	c.persons = slices.Clone(w.persons)
	c.orphans = slices.Clone(w.orphans)
	c.records = slices.Clone(w.records)
	c.past = slices.Clone(w.past)
	return &c
}

// touch gives the clone its own copy of an actor.
func (w *world) touch(i int) *actor {
	a := *w.actors[i]
	if a.request != nil {
		r := *a.request
		a.request = &r
	}
	if a.sweep != nil {
		s := *a.sweep
		a.sweep = &s
	}
	w.actors[i] = &a
	return &a
}

func (w *world) dbNow() time.Time { return at(w.now + w.dbAhead) }

func (w *world) fail(format string, args ...any) {
	harm := fmt.Sprintf(format, args...)
	spared := w.s.mutant != nil && w.s.mutant.spare != "" && strings.HasPrefix(harm, w.s.mutant.spare)
	if w.harm == "" && !spared {
		w.harm = harm
	}
}

func (w *world) fresh(a *actor) func() fence.Token {
	return func() fence.Token {
		w.tokens++
		t := fence.Token{1}
		binary.BigEndian.PutUint64(t[8:], uint64(w.tokens))
		if m := w.s.mutant; m != nil && m.token != nil {
			t = m.token(w, a, t)
		}
		a.lastToken = t
		return t
	}
}

// next hands an event to the actor's machine and takes its next step.
func (w *world) next(i int, e fence.Event) {
	a, before := w.actors[i], w.actors[i].step
	m := w.s.mutant
	if m != nil && m.event != nil {
		m.event(w, a, &e)
	}
	if e.Kind == fence.EventRow {
		a.attempt = e.Row.Attempt
	}
	if a.sweep != nil {
		a.step = a.sweep.Next(e)
	} else {
		a.step = a.call.Next(e, at(w.now), w.fresh(a))
		fence.ForgetRounds(&a.call)
	}
	if m != nil && m.step != nil {
		m.step(w, a, before, e, &a.step)
	}
	a.observed, a.lookup = false, fence.Lookup{}
	switch a.step.Do {
	case fence.DoAnswer:
		w.checkAnswer(a)
		w.remove(i)
	case fence.DoWait: // its client is gone; a redelivery asks again
		w.remove(i)
	}
}

func (w *world) checkAnswer(a *actor) {
	switch a.step.Answer.Type {
	case fence.AnswerEffect:
		if w.effects == 0 && a.sweep == nil {
			w.fail("I5: an app was told 2xx without an effect")
		}
	case fence.AnswerRefused:
		w.told = true
	}
}

func (w *world) remove(i int) {
	if r := w.actors[i].request; r != nil && !r.acted {
		w.orphans = append(w.orphans, *r)
	}
	w.actors[i] = nil
}

// apply runs a statement against the row and checks what it did to it.
func (w *world) apply(st fence.Statement) bool {
	before := w.row
	after, applied := w.run(st)
	if !applied {
		return false
	}
	if after.Token != before.Token {
		if slices.Contains(w.past, after.Token) {
			w.fail("I7: a token owns the row a second time")
		}
		if before.State != fence.NoRow {
			w.retire(before.Token)
		}
	}
	inChain := before.State != fence.NoRow && before.State != fence.Released
	if inChain && after.FirstSentAt.After(before.FirstSentAt) {
		w.fail("I8: first_sent_at moved inside a chain")
	}
	if inChain && before.Doubt > 0 && after.Doubt == 0 {
		w.fail("I8: doubt vanished inside a chain")
	}
	w.row = after
	return true
}

// retire remembers a token that owned the row, as long as a statement is under
// way that could make it the row's again.
func (w *world) retire(t fence.Token) {
	w.past = append(w.past, t)
	if w.s.mutant == nil {
		w.past = slices.DeleteFunc(w.past, func(t fence.Token) bool { return !w.pending(t) })
	}
}

func (w *world) pending(t fence.Token) bool {
	for _, a := range w.actors {
		if a != nil && a.step.Do == fence.DoRun && a.step.Statement.New == t {
			return true
		}
	}
	return w.late != nil && w.late.New == t
}

func (w *world) run(st fence.Statement) (fence.Row, bool) {
	if w.execute != nil {
		return w.execute(w, st)
	}
	t, m := fence.TransitionOf(st.Op), w.s.mutant
	if m != nil && m.transition[st.Op] != nil {
		m.transition[st.Op](&t)
	}
	row, applied := t.Apply(w.row, st, w.dbNow())
	if m != nil && m.written != nil && applied {
		m.written(st, &row, w.dbNow())
	}
	return row, applied
}

func (w *world) read() fence.Event {
	row := w.row
	row.ReadAt = w.dbNow()
	return fence.Event{Kind: fence.EventRow, Row: row}
}

// flying lists the requests that may still act.
func (w *world) flying() []request {
	flying := slices.Clone(w.orphans)
	for _, a := range w.actors {
		if a != nil && a.request != nil && !a.request.acted {
			flying = append(flying, *a.request)
		}
	}
	return flying
}

// check holds the invariants against one state.
func (w *world) check() string {
	if w.effects > 1 {
		w.fail("I1: %d effects", w.effects)
	}
	if w.row.State == fence.Done && w.row.Outcome == fence.Effect && w.effects == 0 {
		w.fail("I2: done with an effect that never was")
	}
	if w.row.State == fence.Done && w.row.Outcome == fence.Refused && w.effects > 0 {
		w.fail("I3: done as refused, and there is an effect")
	}
	if w.told && w.effects > 0 {
		w.fail("I6: an app was told refused, and there is an effect")
	}
	if w.row.State == fence.Released {
		w.checkReleased()
	}
	return w.harm
}

func (w *world) checkReleased() {
	if w.effects > 0 {
		w.fail("I4: released, and there is an effect")
	}
	if len(w.flying()) > 0 {
		w.fail("I4: released, and a request is in flight")
	}
	for _, a := range w.actors {
		if a != nil && a.step.Do == fence.DoSend && a.request == nil && !at(w.now).After(a.step.SendBy) {
			w.fail("I4: released, and a sender may still send")
		}
	}
}
