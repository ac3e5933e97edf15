// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"time"
)

// Sender reaches the provider. Send returns EventNotSent only if not one byte
// of the request was written; it must check order.SendBy after a connection is
// there. Both must return when their context ends.
type Sender interface {
	Send(ctx context.Context, order Step) Event
	LookUp(ctx context.Context, row Step) Lookup
}

// Clock is the local monotonic clock.
type Clock interface {
	Now() time.Time
	// Sleep returns early, with an error, when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// Run drives a call to its answer. When ctx ends a waiting call gives way, but
// a call that owns the key finishes: a client that is gone changes nothing
// about what the provider does.
func Run(ctx context.Context, c Call, store Store, sender Sender, clock Clock) Answer {
	r := newRunner(c.provider, store, sender, clock)
	work := context.WithoutCancel(ctx)
	step := c.Next(Event{Kind: EventBegin}, clock.Now(), NewToken)
	for step.Do != DoAnswer {
		if step.Do == DoWait {
			if err := clock.Sleep(ctx, step.Wait); err != nil {
				return answerBusy(c.row)
			}
			step = c.Next(Event{Kind: EventWoke}, clock.Now(), NewToken)
			continue
		}
		event := r.do(work, c.request.Key, step)
		step = c.Next(event, clock.Now(), NewToken)
	}
	return step.Answer
}

// RunSweep drives the sweep of one row to its end.
func RunSweep(ctx context.Context, s Sweep, store Store, sender Sender, clock Clock) {
	r := newRunner(s.provider, store, sender, clock)
	step := s.Next(Event{Kind: EventBegin})
	for step.Do != DoAnswer {
		step = s.Next(r.do(ctx, s.row.Key, step))
	}
}

type runner struct {
	store  Store
	sender Sender
	clock  Clock

	budget       time.Duration // of one statement
	lookupBudget time.Duration
}

func newRunner(p *Provider, store Store, sender Sender, clock Clock) runner {
	return runner{
		store: store, sender: sender, clock: clock,
		budget: p.Times.StatementBudget / 2, lookupBudget: p.Times.ProviderTimeout,
	}
}

func (r runner) do(ctx context.Context, key Key, step Step) Event {
	switch step.Do {
	case DoRun:
		return r.statement(ctx, step.Statement)
	case DoRead:
		return r.read(ctx, key)
	case DoSend:
		limit, cancel := context.WithTimeout(ctx, step.GiveUpAt.Sub(r.clock.Now()))
		defer cancel()
		return r.sender.Send(limit, step)
	default: // DoLookUp; DoWait and DoAnswer do not come here
		limit, cancel := context.WithTimeout(ctx, r.lookupBudget)
		defer cancel()
		return Event{Kind: EventLookedUp, Lookup: r.sender.LookUp(limit, step)}
	}
}

func (r runner) statement(ctx context.Context, s Statement) Event {
	limit, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	if s.Op == OpClaim {
		row, err := r.store.Claim(limit, s)
		if err != nil {
			return Event{Kind: EventStoreFailed}
		}
		return Event{Kind: EventRow, Row: row}
	}
	applied, err := r.store.Apply(limit, s)
	switch {
	case err != nil:
		return Event{Kind: EventStoreFailed}
	case applied:
		return Event{Kind: EventApplied}
	}
	return Event{Kind: EventNotApplied}
}

func (r runner) read(ctx context.Context, key Key) Event {
	limit, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	row, err := r.store.Read(limit, key)
	switch {
	case errors.Is(err, ErrNoRow):
		return Event{Kind: EventRow, Row: Row{Key: key}}
	case err != nil:
		return Event{Kind: EventStoreFailed}
	}
	return Event{Kind: EventRow, Row: row}
}

// SystemClock is the real one.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() } //nolint:forbidigo // this is the clock that is injected

// Sleep implements Clock.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
