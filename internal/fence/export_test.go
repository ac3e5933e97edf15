// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// The phases that the model tells apart.
const (
	PhaseGranting   = phaseGranting
	PhaseRereading  = phaseRereading
	PhaseReading    = phaseReading
	PhaseSettling   = phaseSettling
	PhaseLooking    = phaseLooking
	PhaseSending    = phaseSending
	PhaseWriting    = phaseWriting
	PhaseRechecking = phaseRechecking
)

// CallView shows the model what a call will act on, and lets a mutant lie.
type CallView struct {
	Phase      phase
	Me         Token
	Issued     time.Time
	Resent     bool
	Row        *Row
	Looked     bool
	Finding    Finding
	BeganQuiet bool
	Running    *Statement
	Tries      int
	AnswerType AnswerType
	MayResend  bool
	Overdue    bool
}

// View reads a call.
func View(c *Call) CallView {
	return CallView{
		Phase: c.phase, Me: c.me, Issued: c.issued, Resent: c.resent, Row: &c.row,
		Looked: c.know.looked, Finding: c.know.lookup.Finding, BeganQuiet: c.know.beganQuiet,
		Running: &c.running, Tries: c.tries, AnswerType: c.answer.Type,
		MayResend: c.provider.mayResend(c.row), Overdue: c.provider.overdue(c.row),
	}
}

// ForgetRounds lets a call lose races for ever. With the limit a call gives way
// sooner, which to everything else is as if it were killed.
func ForgetRounds(c *Call) { c.rounds = 0 }

// SetBeganQuiet overrides when the call's lookup counts as begun.
func SetBeganQuiet(c *Call, quiet bool) { c.know.beganQuiet = quiet }

// SweepView shows the model what a sweep will act on.
type SweepView struct {
	Row                        Row
	Looked, MayResend, Overdue bool
	Finding                    Finding
}

// ViewSweep reads a sweep.
func ViewSweep(s *Sweep) SweepView {
	return SweepView{
		Row: s.row, Looked: s.know.looked, Finding: s.know.lookup.Finding,
		MayResend: s.provider.mayResend(s.row), Overdue: s.provider.overdue(s.row),
	}
}
