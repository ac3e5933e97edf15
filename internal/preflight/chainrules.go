// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// ChainSeverity is how grave a rule of the chain is here. Whether a class makes
// the longest of the declared calls is not known.
func ChainSeverity(rule timeoutchain.Rule) timeoutchain.Severity {
	if rule.ID == "http-not-below-job" {
		return timeoutchain.Warning
	}
	return rule.Severity
}

// broken judges a chain in which a fact has replaced a declared number, by some
// of the chain's own rules, and keeps what the declared chain does not have.
func (in *inspection) broken(real timeoutchain.Chain, rules []string, link timeoutchain.Link) []Finding {
	var findings []Finding
	for _, f := range timeoutchain.Check(real) {
		if !contains(rules, f.Rule) || in.hasAlready(f) {
			continue
		}
		findings = append(findings, Finding{
			Rule: f.Rule, Severity: f.Severity, Link: link,
			Problem: f.Problem, Consequence: f.Consequence, Fix: f.Fix.String(),
		})
	}
	return findings
}

func (in *inspection) hasAlready(f timeoutchain.Finding) bool {
	for _, g := range in.base {
		if g.Rule == f.Rule && g.Link == f.Link && g.Against == f.Against && g.Got == f.Got && g.Need == f.Need {
			return true
		}
	}
	return false
}

// declaring says what to declare so that a link may have a value. It is empty
// where no declaration allows it. The grace is told only where it is not derived.
func (in *inspection) declaring(l timeoutchain.Link, n int64) string {
	derived := in.chain
	derived.Grace = timeoutchain.Value{}
	chain := in.chain
	if derived.GracePeriod() == chain.GracePeriod() {
		chain = derived
	}
	fix, ok := chain.Declaring(l, n)
	if !ok {
		return ""
	}
	var parts []string
	for _, a := range fix.Set {
		parts = append(parts, fmt.Sprintf("%s %d", a.Link, a.Value.N()))
	}
	return "declare " + strings.Join(parts, " and ")
}

// or joins two ways out, of which one may be missing.
func or(one, other string) string {
	if one == "" || other == "" {
		return one + other
	}
	return one + ", or " + other
}

// inWordsOf says a finding in the words of whoever set the number: a class has
// no jobSeconds but a $timeout.
func (f Finding) inWordsOf(words map[string]string) Finding {
	pairs := make([]string, 0, 2*len(words))
	for link, word := range words {
		pairs = append(pairs, link, word)
	}
	say := strings.NewReplacer(pairs...)
	f.Problem, f.Consequence, f.Fix = say.Replace(f.Problem), say.Replace(f.Consequence), say.Replace(f.Fix)
	return f
}
