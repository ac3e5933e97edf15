// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Report is as much of a verdict as its heading and first finding tell.
type Report struct {
	Outcome                      Outcome
	Errors, Warnings, Unverified int
	// First is the most important finding: rule, text and fix in one line; empty
	// where there is none.
	First string
}

// headLines is how many lines of a verdict a [Report] reads.
const headLines = 2

// Head is the part of [Verdict.Brief] that [ReadBrief] reads.
func Head(brief string) string {
	lines := strings.SplitN(brief, "\n", headLines+1)
	return strings.Join(lines[:min(len(lines), headLines)], "\n")
}

// ReadBrief reads what [Verdict.Brief] wrote. It is false for any other text.
func ReadBrief(brief string) (Report, bool) {
	heading, rest, _ := strings.Cut(brief, "\n")
	var r Report
	var outcome string
	n, err := fmt.Sscanf(heading, "preflight %s %d errors, %d warnings, %d not verified", &outcome, &r.Errors, &r.Warnings, &r.Unverified)
	if err != nil || n != 4 {
		return Report{}, false
	}
	r.Outcome = Outcome(strings.TrimSuffix(outcome, ":"))
	if r.Outcome != Passed && r.Outcome != Refused && r.Outcome != Unjudged {
		return Report{}, false
	}
	first, _, _ := strings.Cut(rest, "\n")
	for _, severity := range []timeoutchain.Severity{timeoutchain.Error, timeoutchain.Warning, Unverified} {
		if text, ok := strings.CutPrefix(first, string(severity)+" "); ok {
			r.First = text
		}
	}
	return r, true
}
