// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"fmt"
	"strings"
)

// Severity says whether a finding blocks.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the object is refused
	Warning Severity = "warning" // the object is admitted and the risk is told
)

// Finding is one broken or risky relation.
type Finding struct {
	Rule     string
	Severity Severity
	Link     Link // where the fault shows
	Against  Link // what Link is compared with; empty where it stands alone
	// Subject is the name in question where Link is a list: an environment
	// variable, a container, an argument, a provider, another worker.
	Subject string
	// Got is the value of Link and Need the value of Against. Both are 0 where
	// the rule compares no numbers.
	Got, Need int64
	// Problem names the links and both values.
	Problem string
	// Consequence is what will happen.
	Consequence string
	Fix         Fix
}

// Message is the whole text: rule, values, consequence and the smallest fix.
func (f Finding) Message() string {
	return fmt.Sprintf("%s: %s: %s; %s", f.Rule, f.Problem, f.Consequence, f.Fix)
}

// sameAs says whether both are about the same relation, whatever its numbers.
func (f Finding) sameAs(g Finding) bool {
	return f.Rule == g.Rule && f.Link == g.Link && f.Against == g.Against && f.Subject == g.Subject
}

// Fix is the smallest change that removes a finding and adds none. Where every
// change adds one, it adds no error.
type Fix struct {
	// Set lists the numbers to change, the one at fault first. A Value that is
	// not declared means: leave the link out. Empty where no number helps.
	Set []Assignment
	// Text says what to do where numbers do not say it all.
	Text string
}

// Assignment gives a link a new value.
type Assignment struct {
	Link  Link
	Value Value
	// Subject is the provider whose link it is; empty for the chain's own.
	Subject string
}

func (a Assignment) sameLink(b Assignment) bool { return a.Link == b.Link && a.Subject == b.Subject }

// name is the link, and whose it is.
func (a Assignment) name() string {
	if a.Subject == "" {
		return string(a.Link)
	}
	return string(a.Link) + " of " + a.Subject
}

// String is an instruction: "set retryAfterSeconds to 65".
func (f Fix) String() string {
	if f.Text != "" {
		return f.Text
	}
	var set, leave []string
	for _, a := range f.Set {
		if a.Value.Declared() {
			set = append(set, fmt.Sprintf("%s to %d", a.name(), a.Value.N()))
		} else {
			leave = append(leave, fmt.Sprintf("leave %s out", a.name()))
		}
	}
	if len(set) > 0 {
		leave = append([]string{"set " + strings.Join(set, " and ")}, leave...)
	}
	return strings.Join(leave, " and ")
}

// Blocking keeps the errors among findings.
func Blocking(findings []Finding) []Finding { return bySeverity(findings, Error) }

// Risks keeps the warnings among findings.
func Risks(findings []Finding) []Finding { return bySeverity(findings, Warning) }

func bySeverity(findings []Finding, s Severity) []Finding {
	var kept []Finding
	for _, f := range findings {
		if f.Severity == s {
			kept = append(kept, f)
		}
	}
	return kept
}
