// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// Who settled a row.
const (
	ByAttempt = "attempt"
	ByLookup  = "lookup"
	ByPerson  = "person"
)

// Statement is one change of one row, with all it needs to run: a store adds
// only its clock.
type Statement struct {
	Op    Op
	Key   Key
	Token Token // what the guard compares; unused by OpClaim and OpEffect

	// For statements that grant.
	New         Token
	Fingerprint Digest // OpClaim only
	Owner       string
	Lease       time.Duration // lease_until = now + Lease
	Quiet       time.Duration // quiet_until = now + Quiet
	KeyLife     time.Duration // OpResend: first_sent_at + KeyLife > now + Margin
	Margin      time.Duration

	// For statements that settle or explain.
	Response *Response
	Reason   string
	By, Who  string
}

// Apply is the meaning of a statement: what the row becomes, and whether the
// statement applied. A row in state NoRow stands for "there is none".
func Apply(row Row, s Statement, now time.Time) (Row, bool) {
	return TransitionOf(s.Op).Apply(row, s, now)
}

// Apply is Apply with this transition in place of the protocol's own.
func (t Transition) Apply(row Row, s Statement, now time.Time) (Row, bool) {
	if s.Op == OpClaim {
		if row.State != NoRow {
			return row, false
		}
		row = Row{Key: s.Key, Fingerprint: s.Fingerprint}
	} else if !t.Guard.allows(row, s, now) {
		return row, false
	}
	return t.Change.write(row, s, now), true
}

func (g Guard) allows(row Row, s Statement, now time.Time) bool {
	switch {
	case !g.From.Has(row.State),
		g.Token && row.Token != s.Token,
		row.Doubt > g.MaxDoubt,
		g.LeaseOver && !row.LeaseUntil.Before(now),
		g.Quiet && !row.QuietUntil.Before(now),
		g.KeyAlive && !keyAlive(row.FirstSentAt, now, s.KeyLife, s.Margin):
		return false
	}
	return true
}

// keyAlive reports whether a send granted now ends before the provider may
// forget the key.
func keyAlive(firstSent, now time.Time, life, margin time.Duration) bool {
	return firstSent.Add(life).After(now.Add(margin))
}

func (c Change) write(row Row, s Statement, now time.Time) Row {
	if c.Doubt { // before Grant: it looks at the quiet time of the attempts so far
		row.Doubt = DoubtAlive
		if row.QuietUntil.Before(now) {
			row.Doubt = DoubtQuiet
		}
		row.Resends++
	}
	if c.Grant {
		row.Token, row.Owner = s.New, s.Owner
		row.Attempt++
		row.LeaseUntil, row.QuietUntil = now.Add(s.Lease), now.Add(s.Quiet)
	}
	if c.Restart {
		row.FirstSentAt, row.Doubt, row.Resends = now, NoDoubt, 0
		row.Reason, row.SettledBy, row.SettledWho = "", "", ""
		row.SettledAt, row.CheckedAt = time.Time{}, time.Time{}
	}
	return c.writeEvidence(row, s, now)
}

func (c Change) writeEvidence(row Row, s Statement, now time.Time) Row {
	if c.To != NoRow {
		row.State = c.To
	}
	if c.EndLease {
		row.LeaseUntil = now
	}
	if c.NextGeneration {
		row.Generation++
	}
	if c.Outcome != NoOutcome {
		row.Outcome, row.Response = c.Outcome, s.Response
	}
	if c.Settled {
		row.SettledBy, row.SettledWho, row.SettledAt = s.By, s.Who, now
	}
	if c.Reason {
		row.Reason = s.Reason
	}
	if c.Checked {
		row.CheckedAt = now
	}
	return row
}
