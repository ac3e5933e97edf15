// SPDX-License-Identifier: Apache-2.0

package timeoutchain

// smallestFix tries the rule's own repairs in order and takes the first that
// removes the finding without adding an error. Where none does, the last one's
// text is kept without numbers, so that nobody is told a number that fails.
func smallestFix(c *Chain, before []Finding, f Finding) Fix {
	rule, ok := RuleByID(f.Rule)
	if !ok || rule.repair == nil {
		return Fix{Text: rule.Doc.Remedy}
	}
	for _, fix := range rule.repair(c, f) {
		if len(fix.Set) == 0 {
			return fix
		}
		if fixed, ok := completed(*c, fix); ok && helps(c, fixed, before, f) {
			return fixed
		}
	}
	return Fix{Text: rule.Doc.Remedy}
}

// completed applies a fix to a copy of the chain and raises the outer links
// that held before and would no longer hold.
func completed(before Chain, fix Fix) (Fix, bool) {
	after := before
	set := append([]Assignment(nil), fix.Set...)
	if !apply(&after, set) {
		return Fix{}, false
	}
	raise := func(l Link, n int64) {
		a := Assignment{Link: l, Value: Of(n)}
		set = append(set, a)
		after.assign(a)
	}
	if jobOutlasts(&after) && !jobOutlasts(&before) {
		raise(LinkRetryAfter, add(after.Job.N(), Margin))
	}
	if graceTooShort(&after) && !graceTooShort(&before) {
		raise(LinkGrace, leastGrace(&after))
	}
	for _, a := range set {
		if n := a.Value.N(); n < 0 || n > MaxSeconds {
			return Fix{}, false
		}
	}
	fix.Set = set
	return fix, true
}

// jobOutlasts says whether a job may run past its reservation.
func jobOutlasts(c *Chain) bool {
	return c.Job.Positive() && c.RetryAfter.Positive() && c.Job.N() >= c.RetryAfter.N()
}

func graceTooShort(c *Chain) bool {
	if !c.Grace.Declared() {
		return false
	}
	grace := c.Grace.N()
	return c.DrainTime() >= grace || (c.GraceOutlasts != OutlastsJob && c.RetryAfter.N() >= grace)
}

func apply(c *Chain, set []Assignment) bool {
	for _, a := range set {
		if !c.assign(a) {
			return false
		}
	}
	return true
}

// helps says whether a fix removes the finding and adds no error.
func helps(c *Chain, fix Fix, before []Finding, f Finding) bool {
	fixed := *c
	if !apply(&fixed, fix.Set) {
		return false
	}
	for _, g := range evaluate(&fixed) {
		if g.Rule == f.Rule && g.Link == f.Link && g.Against == f.Against && g.Subject == f.Subject {
			return false
		}
		if g.Severity == Error && !blockedBy(before, g.Rule) {
			return false
		}
	}
	return true
}

func blockedBy(findings []Finding, rule string) bool {
	for _, f := range findings {
		if f.Rule == rule && f.Severity == Error {
			return true
		}
	}
	return false
}

// leastGrace is the smallest grace that leaves no finding between G and what it
// must outlast. Where the reservation has to be raised too, it is taken as it
// will be, so that the two fixes fit together.
func leastGrace(c *Chain) int64 {
	need := add(c.DrainTime(), max(Margin, add(c.Call(), 1)))
	reservation := c.RetryAfter.N()
	if jobOutlasts(c) {
		reservation = add(c.Job.N(), Margin)
	}
	if c.GraceOutlasts != OutlastsJob {
		need = max(need, add(reservation, Margin))
	}
	return need
}

// setTo is the repair that gives one link a value.
func setTo(l Link, n int64) Fix { return Fix{Set: []Assignment{{Link: l, Value: Of(n)}}} }

// leaveOut is the repair that removes a declaration.
func leaveOut(l Link) Fix { return Fix{Set: []Assignment{{Link: l}}} }
