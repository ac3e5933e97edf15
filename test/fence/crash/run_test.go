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
	kind   kind
	first  behaviour
	point  string
	fault  fault
	orphan string // a point where a first fence is killed before that; "" = none
	store  int    // which database
	copies int
}

func (c cell) String() string {
	return fmt.Sprintf("%s, the bank %s, %s at %q, %d copies, database %d", c.kind.name, c.first, c.fault, c.point, c.copies, c.store)
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
}

func (h *harness) run(c cell, id string, sidecars []*sidecar) *run {
	r := &run{
		cell: c, id: id, h: h, db: h.databases[c.store], sidecars: sidecars,
		points: map[string]int{}, under: map[*sidecar]int{}, clients: map[*sidecar]func(){},
	}
	h.mu.Lock()
	h.runs[id] = r
	h.mu.Unlock()
	h.bank.open(id, c.first)
	return r
}

// at is called by a fence that waits.
func (r *run) at(by *sidecar, point string) {
	r.mu.Lock()
	r.points[point]++
	switch point {
	case "request":
		r.under[by]++
	case "answered":
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

// drive delivers until every copy has a final answer and the row knows it (an
// effect may be told although it could not be saved), and lets time pass
// between: first until leases are over, then until all is quiet.
func (r *run) drive() error {
	defer func() {
		r.h.mu.Lock()
		delete(r.h.runs, r.id)
		r.h.mu.Unlock()
	}()
	for n := range maxDeliveries {
		final, err := r.delivery(n)
		settled := false
		if err == nil {
			settled, err = r.checkRow()
		}
		final = final && settled
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
	var working sync.WaitGroup
	answers := make([]told, r.copies)
	errs := make([]error, r.copies)
	for i := range r.copies {
		working.Go(func() { answers[i], errs[i] = r.send(r.sidecars[(n+i)%len(r.sidecars)]) })
	}
	working.Wait()
	if r.fault == lateStatement {
		for _, s := range r.sidecars {
			s.way.WaitLate()
		}
	}
	if !eventually(r.idle) {
		return false, errors.New("a fence never ended its call")
	}
	final = true
	for _, a := range answers {
		final = final && a.final()
	}
	return final, errors.Join(errs...)
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
	r.mu.Lock()
	r.clients[s] = kill
	r.mu.Unlock()
	answer := wait()
	effects := r.h.bank.counts(r.id).effects
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, answer)
	if answer.effect() && effects == 0 {
		return answer, errors.New("I5: told of an effect that had not happened")
	}
	return answer, nil
}

// settle is the bank's part of time passing: what was written to it arrives,
// and acts.
func (r *run) settle() {
	r.mu.Lock()
	written := r.points["send written"]
	r.mu.Unlock()
	r.h.bank.settle(r.id, written)
}

// checkRow holds a row that is free against the bank, and tells whether the row
// has come to an end.
func (r *run) checkRow() (settled bool, err error) {
	row, err := r.db.row(r.kind.name, r.id)
	if err != nil && !errors.Is(err, fence.ErrNoRow) {
		return false, err
	}
	c := r.h.bank.counts(r.id)
	if (row.State == fence.NoRow || row.State == fence.Released) && (c.effects > 0 || c.open > 0) {
		return false, fmt.Errorf("I4: the key is free (%s) with %d effects and %d requests under way", row.State, c.effects, c.open)
	}
	return row.State == fence.Done || row.State == fence.NeedsReview, nil
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
		mayPark := r.kind.parks || r.kind.keys && strings.HasPrefix(row.Reason, "the limit of resends is reached")
		wrong(row.State != fence.Done && (row.State != fence.NeedsReview || !mayPark), "the end is %s: %s", row.State, row.Reason)
	}
	return errors.Join(all...)
}
