// SPDX-License-Identifier: Apache-2.0

package fence

import "context"

// Ending is what an app says of a claim.
type Ending struct {
	Key   Key
	Token Token
	// Checked: the token came with ClaimCheck, so the app speaks of a holder
	// that vanished and not of itself.
	Checked bool
	// Early: at that time the holder could still act, so finding nothing proves
	// nothing, however long ago it was.
	Early    bool
	Response *Response // of a completion
	Owner    string
	Reason   string // of a release, or why nobody knows
}

// EndKind is how the row took it.
type EndKind string

// The answers to an ending.
const (
	EndSettled  EndKind = "settled"
	EndDone     EndKind = "done"      // the key was done before, Response says how
	EndNoClaim  EndKind = "no claim"  // nobody holds the key
	EndLost     EndKind = "lost"      // the key is another attempt's, or a person's
	EndNotQuiet EndKind = "not quiet" // a holder that vanished may still act
	EndNoStore  EndKind = "no store"  // it may be said again
)

// EndAnswer is what the app is told.
type EndAnswer struct {
	Kind     EndKind
	State    State
	Response *Response // EndDone
	Row      Row       // EndNotQuiet: until when
	Conflict string    // an effect that contradicts the row
}

// Complete says that the work was done. It is true whoever says it, so it is
// taken in every state but done.
func (c *Claims) Complete(ctx context.Context, store Store, e Ending) EndAnswer {
	s := Statement{Op: OpEffect, Key: e.Key, Token: e.Token, Response: e.Response, By: ByAttempt, Who: e.Owner}
	return c.end(ctx, store, s, func(row Row) EndAnswer {
		if row.State == Done {
			return EndAnswer{Kind: EndDone, State: Done, Response: row.Response, Conflict: conflict(row, e.Response)}
		}
		return EndAnswer{Kind: EndLost, State: row.State}
	})
}

// Release says that nothing was done and that nothing will be. A holder may say
// so of itself at any time; of one that vanished it can be said only by who
// began to look when that one could not act any more.
func (c *Claims) Release(ctx context.Context, store Store, e Ending) EndAnswer {
	s := Statement{Op: OpRelease, Key: e.Key, Token: e.Token, Reason: e.Reason, By: ByAttempt, Who: e.Owner}
	if e.Checked {
		s.Op, s.By = OpAbsent, ByLookup
	}
	explain := func(row Row) EndAnswer {
		mine := row.Token == e.Token
		switch {
		case mine && row.State == Released: // said before
			return EndAnswer{Kind: EndSettled, State: Released}
		case e.Checked && mine && row.State == Unknown:
			return EndAnswer{Kind: EndNotQuiet, State: Unknown, Row: row}
		case row.State == Done:
			return EndAnswer{Kind: EndDone, State: Done, Response: row.Response}
		}
		return EndAnswer{Kind: EndLost, State: row.State}
	}
	if e.Early {
		return c.explained(ctx, store, e.Key, explain)
	}
	return c.end(ctx, store, s, explain)
}

// Unknown says that the holder cannot tell what became of its work.
func (c *Claims) Unknown(ctx context.Context, store Store, e Ending) EndAnswer {
	s := Statement{Op: OpUnknown, Key: e.Key, Token: e.Token, Reason: e.Reason, By: ByAttempt, Who: e.Owner}
	if e.Checked {
		s.Op = OpNote
	}
	return c.end(ctx, store, s, func(row Row) EndAnswer {
		switch {
		case row.Token == e.Token && (row.State == Unknown || row.State == NeedsReview):
			return EndAnswer{Kind: EndSettled, State: row.State}
		case row.State == Done:
			return EndAnswer{Kind: EndDone, State: Done, Response: row.Response}
		}
		return EndAnswer{Kind: EndLost, State: row.State}
	})
}

// end runs the statement, the same one again after an error, and explains one
// that did not apply.
func (c *Claims) end(ctx context.Context, store Store, s Statement, explain func(Row) EndAnswer) EndAnswer {
	applied, err := c.apply(ctx, store, s)
	for tries := 1; err != nil && tries < maxWriteTries && ctx.Err() == nil; tries++ {
		applied, err = c.apply(ctx, store, s)
	}
	if err != nil {
		return EndAnswer{Kind: EndNoStore}
	}
	change := TransitionOf(s.Op).Change
	if applied && change.To != NoRow {
		return EndAnswer{Kind: EndSettled, State: change.To}
	}
	return c.explained(ctx, store, s.Key, explain)
}

func (c *Claims) explained(ctx context.Context, store Store, key Key, explain func(Row) EndAnswer) EndAnswer {
	row, err := c.read(ctx, store, key)
	switch {
	case err != nil:
		return EndAnswer{Kind: EndNoStore}
	case row.State == NoRow:
		return EndAnswer{Kind: EndNoClaim}
	}
	return explain(row)
}
