// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// Sweep settles one row that no delivery may ever touch again. Unlike a Call
// it has no request, so it can look up and park, but never send.
type Sweep struct {
	provider *Provider
	row      Row
	know     knowledge
	started  bool
	looking  bool
	running  Statement
}

// NewSweep prepares the sweep of a row as it was read.
func NewSweep(p *Provider, row Row) Sweep { return Sweep{provider: p, row: row} }

// Next takes what happened and says what to do; DoAnswer means that the sweep
// is over. Whatever goes wrong is left for the next sweep.
func (s *Sweep) Next(e Event) Step {
	switch {
	case !s.started:
		s.started = true
	case s.looking:
		s.looking = false
		s.know.looked, s.know.lookup = true, e.Lookup
	case e.Kind == EventApplied && s.running.Op == OpExpire:
		s.row, _ = Apply(s.row, s.running, s.row.ReadAt)
	default:
		return Step{Do: DoAnswer}
	}
	return s.decide()
}

func (s *Sweep) decide() Step {
	switch {
	case s.row.State == Claimed && s.row.LeaseOver():
		return s.run(Statement{Op: OpExpire, Key: s.row.Key, Token: s.row.Token, Reason: reasonExpired})
	case s.row.State != Unknown || !s.row.Quiet():
		return Step{Do: DoAnswer}
	}
	op, needLookup := s.provider.settle(s.row, s.know)
	if needLookup {
		s.looking, s.know.beganQuiet = true, true // judged on the row just above
		return Step{Do: DoLookUp, Key: s.row.SentKey(), ID: s.row.Key.ID}
	}
	return s.run(settleStatement(s.provider, s.row, op, s.know))
}

func (s *Sweep) run(statement Statement) Step {
	s.running = statement
	return Step{Do: DoRun, Statement: statement}
}

// Sweepable tells a store which rows a sweep is for.
type Sweepable struct {
	Scope   string
	Recheck time.Duration // leave a row alone for this long after its last lookup
	Batch   int
}
