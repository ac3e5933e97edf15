// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// fault is what strikes once in a run, when a point is reached.
type fault string

const (
	none          fault = "nothing"
	killFence     fault = "SIGKILL of the fence"
	killClient    fault = "SIGKILL of its client"
	cutDatabase   fault = "database connections cut"
	loseReply     fault = "statement committed, reply lost"
	lateStatement fault = "connection cut, statement lands later"
	freeze        fault = "the fence stands still past its time to send"
)

// cell is one way to run.
type cell struct {
	way    way
	kind   kind
	first  behaviour
	point  string
	fault  fault
	orphan string // a point where a first fence is killed before that; "" = none
	store  int    // which database
	copies int
}

func (c cell) String() string {
	return fmt.Sprintf("%s of %s, which %s, %s at %q after %q, %d copies, database %d", c.way, c.kind.name, c.first, c.fault, c.point, c.orphan, c.copies, c.store)
}

const (
	frozen = 2200 * time.Millisecond // longer than the send window
	late   = 300 * time.Millisecond
)

// run is one operation, delivered until it has an end.
type run struct {
	cell
	id       string
	h        *harness
	db       *database
	sidecars []*sidecar

	mu       sync.Mutex
	orphaned bool
	struck   bool
	points   map[string]int      // how often each was reached
	under    map[*sidecar]int    // calls that a fence works on
	clients  map[*sidecar]func() // kills the client of a delivery
	answers  []told

	// Of claims.
	nonces  int
	granted map[string]bool // by token
	looked  []string        // the tokens with which somebody looked and found nothing
}

func (h *harness) run(c cell, id string, l *lane) *run {
	r := &run{
		cell: c, id: id, h: h, db: l.db, sidecars: l.sidecars,
		points: map[string]int{}, under: map[*sidecar]int{}, clients: map[*sidecar]func(){}, granted: map[string]bool{},
	}
	if c.way == sweeps && c.copies == 1 { // one upkeep alone
		l.sidecars[1].kill()
		r.sidecars = l.sidecars[:1]
	}
	h.mu.Lock()
	h.runs[id] = r
	h.mu.Unlock()
	h.bank.open(id, c.first)
	return r
}

// at is called by a fence that waits.
func (r *run) at(by *sidecar, start, point string) {
	r.mu.Lock()
	r.points[point]++
	switch {
	case point == "request" && by.lives(start):
		r.under[by]++
	case point == "answered" && by.lives(start):
		r.under[by]--
	}
	dies := point == r.orphan && !r.orphaned
	r.orphaned = r.orphaned || dies
	strike := point == r.point && !r.struck && r.fault != none
	r.struck = r.struck || strike
	client := r.clients[by]
	r.mu.Unlock()
	switch {
	case dies:
		r.kill(by)
	case strike:
		r.strike(by, client)
	}
}

// kill is the end of all calls that the fence works on.
func (r *run) kill(s *sidecar) {
	s.kill()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[s] = 0
}

func (r *run) strike(by *sidecar, client func()) {
	switch r.fault {
	case killFence:
		r.kill(by)
	case killClient:
		client()
	case cutDatabase:
		by.way.Cut()
	case loseReply:
		by.way.LoseNextReply()
	case lateStatement:
		by.way.DelayNext(late)
	case freeze:
		time.Sleep(frozen)
	}
}

// maxDeliveries is more than any run needs.
const maxDeliveries = 10

// drive is the whole run.
func (r *run) drive() error {
	defer func() {
		r.h.mu.Lock()
		delete(r.h.runs, r.id)
		r.h.mu.Unlock()
	}()
	if r.way == sweeps {
		return r.sweep()
	}
	return r.deliver(0)
}

// deliver delivers until every copy has a final answer and the row knows it (an
// effect may be told although it could not be saved), and lets time pass
// between: first until leases are over, then until all is quiet.
func (r *run) deliver(from int) error {
	for n := from; n < from+maxDeliveries; n++ {
		final, err := r.delivery(n)
		if err == nil {
			var row fence.Row
			row, err = r.checkedRow()
			final = final && (row.State == fence.Done || row.State == fence.NeedsReview)
		}
		if err != nil || final {
			return errors.Join(err, r.checkEnd(final))
		}
		seconds := 10
		if n > 0 {
			r.settle()
			seconds = 400
		}
		if err := r.db.pass(r.id, seconds); err != nil {
			return err
		}
	}
	return fmt.Errorf("no end after %d deliveries: %+v", maxDeliveries, r.answers)
}

// delivery sends all copies and waits until no fence works on them any more.
func (r *run) delivery(n int) (final bool, err error) {
	if err := r.sayAgain(context.Background(), r.sidecars[0]); err != nil {
		return false, err
	}
	var working sync.WaitGroup
	answers := make([]told, r.copies)
	errs := make([]error, r.copies)
	for i := range r.copies {
		working.Go(func() { answers[i], errs[i] = r.send(r.sidecars[(n+i)%len(r.sidecars)]) })
	}
	working.Wait()
	r.waitLate()
	if !eventually(r.idle) {
		return false, errors.New("a fence never ended its call")
	}
	final = true
	for _, a := range answers {
		final = final && a.final()
	}
	return final, errors.Join(errs...)
}

func (r *run) waitLate() {
	if r.fault == lateStatement {
		for _, s := range r.sidecars {
			s.way.WaitLate()
		}
	}
}

func (r *run) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.under {
		if n > 0 {
			return false
		}
	}
	return true
}

// send is one copy; what it is told is held against the bank at once.
func (r *run) send(s *sidecar) (told, error) {
	by := r.call
	if r.kind.claims {
		by = r.claim
	}
	answer, err := by(s)
	if err != nil {
		return told{}, err
	}
	effects := r.h.bank.counts(r.id).effects
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, answer)
	if answer.effect() && effects == 0 {
		return answer, errors.New("I5: told of an effect that had not happened")
	}
	return answer, nil
}

// call is a copy that calls the provider. Where it is to be killed it is a
// process of its own.
func (r *run) call(s *sidecar) (told, error) {
	base, err := s.serve(r.h.binary)
	if err != nil {
		return told{}, err
	}
	url := base + "/" + r.kind.name + "/charges"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wait, kill := func() told { return deliver(ctx, url, r.id) }, cancel
	if r.fault == killClient {
		var stop func()
		if wait, stop, err = process(url, r.id); err != nil {
			return told{}, err
		}
		kill = stop
	}
	r.killedBy(s, kill)
	return wait(), nil
}

// claim is a copy that works itself; killed, it does nothing more.
func (r *run) claim(s *sidecar) (told, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.killedBy(s, cancel)
	return r.attempt(ctx, s)
}

func (r *run) killedBy(s *sidecar, kill func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients[s] = kill
}

// settle is the bank's part of time passing: what was written to it arrives,
// and acts.
func (r *run) settle() {
	r.mu.Lock()
	written := r.points["send written"]
	r.mu.Unlock()
	r.h.bank.settle(r.id, written)
}

// checkedRow holds a row that is free against the bank.
func (r *run) checkedRow() (fence.Row, error) {
	row, err := r.db.row(r.kind.name, r.id)
	if err != nil && !errors.Is(err, fence.ErrNoRow) {
		return row, err
	}
	c := r.h.bank.counts(r.id)
	if (row.State == fence.NoRow || row.State == fence.Released) && (c.effects > 0 || c.open > 0) {
		return row, fmt.Errorf("I4: the key is free (%s) with %d effects and %d requests under way", row.State, c.effects, c.open)
	}
	return row, nil
}

// checkEnd holds the invariants when nothing more will come.
func (r *run) checkEnd(final bool) error {
	r.settle()
	row, err := r.db.row(r.kind.name, r.id)
	if err != nil {
		return err
	}
	c := r.h.bank.counts(r.id)
	var all []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	wrong(c.effects > 1, "I1: %d effects", c.effects)
	wrong(row.State == fence.Done && row.Outcome == fence.Refused && c.effects > 0, "I3: done as refused, with %d effects", c.effects)
	wrong(row.State == fence.Done && row.Outcome == fence.Effect && c.effects == 0, "I2: done, without an effect")
	wrong(c.posts > row.Attempt, "I11: %d requests of %d attempts", c.posts, row.Attempt)
	for _, a := range r.answers {
		wrong(a.refused() && c.effects > 0, "I6: told refused, with %d effects", c.effects)
	}
	if final {
		// What a provider tells again and again (a stored error, "in progress", a
		// refusal that an older request may undo) uses the resends up.
		mayPark := r.kind.parks || r.kind.keys && strings.HasPrefix(row.Reason, "the limit of resends is reached") ||
			r.way == sweeps && r.kind.keys && strings.HasPrefix(row.Reason, "the provider's memory of the key may have ended")
		wrong(row.State != fence.Done && (row.State != fence.NeedsReview || !mayPark), "the end is %s: %s", row.State, row.Reason)
	}
	return errors.Join(all...)
}
