// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Outcome is what becomes of a worker in this image.
type Outcome string

// The outcomes.
const (
	Passed   Outcome = "Passed"   // nothing contradicts the declaration
	Refused  Outcome = "Refused"  // only a change of image or declaration helps
	Unjudged Outcome = "Unjudged" // it could not be finished: another try may
)

// Verdict is what the facts say about the declaration.
type Verdict struct {
	Outcome Outcome
	// Findings are errors first, then warnings, then what could not be seen.
	Findings []Finding
}

// Judge compares. memoryLimit is the container's, in bytes; 0 = none is known.
func Judge(wire timeoutchain.Wire, declared Declared, memoryLimit int64, facts Facts) Verdict {
	in := inspection{declared: declared, chain: declared.chain(wire, memoryLimit), facts: facts}
	in.base = timeoutchain.Check(in.chain)
	in.app = facts.Booted.App
	if in.app == nil {
		in.app = facts.Light.App
	}
	var findings []Finding
	blocked, passing := false, true
	for i := range registry {
		for _, f := range registry[i].check(&in) {
			if f.Rule == "" {
				f.Rule = registry[i].ID
			}
			if f.Severity == "" {
				f.Severity = registry[i].Severity
			}
			if f.Severity == timeoutchain.Error {
				blocked = true
				passing = passing && registry[i].Passing
			}
			findings = append(findings, f)
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return rank(a.Severity) - rank(b.Severity) })
	return Verdict{Outcome: outcome(blocked, passing), Findings: findings}
}

func outcome(blocked, passing bool) Outcome {
	switch {
	case !blocked:
		return Passed
	case passing:
		return Unjudged
	default:
		return Refused
	}
}

func rank(s timeoutchain.Severity) int {
	switch s {
	case timeoutchain.Error:
		return 0
	case timeoutchain.Warning:
		return 1
	default:
		return 2
	}
}

// Count is the number of findings of a severity.
func (v Verdict) Count(s timeoutchain.Severity) int {
	n := 0
	for _, f := range v.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

func contains(list []string, word string) bool { return slices.Contains(list, word) }
