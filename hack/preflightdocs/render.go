// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

//go:embed intro.md
var intro string

// render is the manual of the preflight.
func render() string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("\n## Rules of the preflight\n\nIn the order in which findings of one severity are reported.\n\n| rule | severity |\n|---|---|\n")
	for _, rule := range named() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", rule.ID, rule.ID, rule.Severity)
	}
	for _, rule := range named() {
		fmt.Fprintf(&b, "\n### %s\n\n**Severity:** %s. **When:** %s **Why:** %s **What to do:** %s.\n",
			rule.ID, rule.Severity, rule.Doc.When, rule.Doc.Why, remedy(rule.Doc.Remedy))
	}
	b.WriteString(chainIntro)
	for _, id := range preflight.ChainRules() {
		rule, ok := timeoutchain.RuleByID(id)
		if !ok {
			panic("no rule " + id)
		}
		fmt.Fprintf(&b, "- [`%s`](rules.md#%s), %s: %s\n", id, id, preflight.ChainSeverity(rule), rule.Doc.When)
	}
	return b.String()
}

const chainIntro = `
## Rules of the chain that the application can break

These are the rules of [rules.md](rules.md), judged with the application's number in the place of the declared one: a class's ` + "`$timeout`" + ` for ` + "`jobSeconds`" + `, its ` + "`$tries`, `$backoff` and `$uniqueFor`" + ` for theirs, a supervisor's for all jobs of Horizon, the real ` + "`block_for`" + ` and the container's real memory limit. Only what the declared chain does not have is reported, and of several rules that one timeout breaks only the gravest. ` + "`http-not-below-job`" + ` is a warning here: whether that class makes such a call is not known.

`

// named are the rules with an id of their own.
func named() []preflight.Rule {
	var kept []preflight.Rule
	for _, rule := range preflight.Rules() {
		if rule.ID != "" {
			kept = append(kept, rule)
		}
	}
	return kept
}

// remedy begins a sentence, unless it begins with a name.
func remedy(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
