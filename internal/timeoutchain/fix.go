// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"math"
	"slices"
)

// smallestFix tries the rule's own repairs in order and takes the first that
// removes the finding and adds no other one. Where each of them adds one, it is
// the first that adds no error. Where there is none either, the rule's remedy is
// told without numbers, so that nobody is told a number that fails.
func smallestFix(c *Chain, before []Finding, f Finding) Fix {
	rule, ok := RuleByID(f.Rule)
	if !ok || rule.repair == nil {
		return Fix{Text: rule.Doc.Remedy}
	}
	fixes := rule.repair(c, f)
	for _, asked := range []demands{addsNothing, addsNoError, followsErrorsOnly} {
		for _, fix := range fixes {
			if len(fix.Set) == 0 {
				return fix
			}
			if settled, ok := settle(c, fix, before, asked); ok && removes(c, settled, f) {
				return settled
			}
		}
	}
	return Fix{Text: rule.Doc.Remedy}
}

// demands say what is asked of a fix, the highest first.
type demands struct {
	follows func(Finding) bool // added findings that other numbers should mend
	forbids func(Finding) bool // added findings that may not stay
}

var (
	addsNothing       = demands{follows: anyFinding, forbids: anyFinding}
	addsNoError       = demands{follows: anyFinding, forbids: isError}
	followsErrorsOnly = demands{follows: isError, forbids: isError}
)

func anyFinding(Finding) bool { return true }

func isError(f Finding) bool { return f.Severity == Error }

// Declaring is what has to be declared so that a link has a value: the link
// itself, and what lies outside of it and has to follow. It is false where any
// such declaration would add an error.
func (c *Chain) Declaring(l Link, n int64) (Fix, bool) {
	return settle(c, setTo(l, n), evaluate(c), addsNoError)
}

// mostFollowers is how many further numbers a fix may change.
const mostFollowers = 8

// settle applies a fix to a copy of the chain and lets other numbers follow: a
// finding that the fix would add is mended by its own rule, if that takes no
// more than raising what else is declared.
func settle(c *Chain, fix Fix, before []Finding, asked demands) (Fix, bool) {
	after := *c
	set := slices.Clone(fix.Set)
	if !apply(&after, set) {
		return Fix{}, false
	}
	for range mostFollowers {
		more := follower(&after, added(&after, before, asked.follows), fix.Set)
		if len(more) == 0 {
			break
		}
		apply(&after, more)
		set = merge(set, more)
	}
	told := fix.Text == "" || len(set) == len(fix.Set) // the text tells of no further number
	if !told || !inRange(set) || len(added(&after, before, asked.forbids)) > 0 {
		return Fix{}, false
	}
	fix.Set = set
	return fix, true
}

// added are the findings of interest that were not there before, or were
// warnings only.
func added(c *Chain, before []Finding, of func(Finding) bool) []Finding {
	return slices.DeleteFunc(evaluate(c), func(g Finding) bool {
		return !of(g) || slices.ContainsFunc(before, func(f Finding) bool { return f.sameAs(g) && (isError(f) || !isError(g)) })
	})
}

// follower is the first repair of any of the findings that needs no words and
// raises declared numbers, but not those that are set already.
func follower(c *Chain, findings []Finding, taken []Assignment) []Assignment {
	for _, f := range findings {
		rule, _ := RuleByID(f.Rule)
		if rule.repair == nil {
			continue
		}
		for _, fix := range rule.repair(c, f) {
			fits := func(a Assignment) bool { return c.raises(a) && !slices.ContainsFunc(taken, a.sameLink) }
			if fix.Text == "" && len(fix.Set) > 0 && all(fix.Set, fits) {
				return fix.Set
			}
		}
	}
	return nil
}

func all(set []Assignment, fits func(Assignment) bool) bool {
	return !slices.ContainsFunc(set, func(a Assignment) bool { return !fits(a) })
}

// merge lets later assignments replace earlier ones of the same link.
func merge(set, more []Assignment) []Assignment {
	for _, a := range more {
		at := slices.IndexFunc(set, a.sameLink)
		if at < 0 {
			set = append(set, a)
			continue
		}
		set[at] = a
	}
	return set
}

func inRange(set []Assignment) bool {
	return all(set, func(a Assignment) bool { return a.Value.N() >= 0 && a.Value.N() <= MaxSeconds })
}

// removes says whether a fix removes the finding.
func removes(c *Chain, fix Fix, f Finding) bool {
	fixed := *c
	return apply(&fixed, fix.Set) && !slices.ContainsFunc(evaluate(&fixed), f.sameAs)
}

func apply(c *Chain, set []Assignment) bool {
	for _, a := range set {
		if !c.assign(a) {
			return false
		}
	}
	return true
}

// jobOutlasts says whether a job may run past its reservation.
func jobOutlasts(c *Chain) bool {
	return c.Job.Positive() && c.RetryAfter.Positive() && c.Job.N() >= c.RetryAfter.N()
}

// afterJob is how far a reservation must lie past the job's limit so that
// nothing is found between the two: a job that is caught in a call ends a call
// later, and has to be dead before it is handed out again.
func afterJob(c *Chain) int64 { return max(Margin, add(c.Call(), WatchdogLead)) }

// leastReservation is the smallest reservation that leaves no finding between J
// and R, as far as the driver allows it.
func leastReservation(c *Chain) int64 {
	least := add(c.Job.N(), afterJob(c))
	if c.Driver == SQS && c.Job.N() < SQSMaxVisibility {
		return min(least, SQSMaxVisibility)
	}
	return least
}

// LongestJob is the longest limit of a job that leaves no finding between it
// and the links outside of it, where these are declared. It may be below 1.
func (c *Chain) LongestJob() int64 {
	longest := int64(math.MaxInt64)
	if c.RetryAfter.Positive() {
		longest = add(c.RetryAfter.N(), -afterJob(c))
	}
	if c.Grace.Declared() {
		longest = min(longest, sum(c.Grace.N(), -c.BeforeStop.N(), -c.Pop(), -afterDrain(c)))
	}
	return longest
}

// afterDrain is how far the grace must lie past the drain, see [afterJob].
func afterDrain(c *Chain) int64 { return max(Margin, add(c.Call(), 1)) }

// leastGrace is the smallest grace that leaves no finding between G and what it
// must outlast. Where the reservation has to be raised too, it is taken as it
// will be, so that the two fixes fit together.
func leastGrace(c *Chain) int64 {
	need := add(c.DrainTime(), afterDrain(c))
	reservation := c.RetryAfter.N()
	if jobOutlasts(c) {
		reservation = leastReservation(c)
	}
	passes := reservation > 0 && need > reservation
	if c.GraceOutlasts != OutlastsJob || passes {
		need = max(need, add(reservation, Margin))
	}
	return need
}

// setTo is the repair that gives one link a value.
func setTo(l Link, n int64) Fix { return Fix{Set: []Assignment{{Link: l, Value: Of(n)}}} }

// leaveOut is the repair that removes a declaration.
func leaveOut(l Link) Fix { return Fix{Set: []Assignment{{Link: l}}} }
