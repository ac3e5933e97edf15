// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestAReportIsWhatTheVerdictBegins(t *testing.T) {
	t.Parallel()
	finding := func(rule string, s timeoutchain.Severity) Finding {
		return Finding{Rule: rule, Severity: s, Problem: "a problem\nof two lines", Consequence: "so be it", Fix: "mend it"}
	}
	for name, c := range map[string]struct {
		verdict Verdict
		want    Report
	}{
		"nothing": {Verdict{Outcome: Passed}, Report{Outcome: Passed}},
		"a warning": {Verdict{Passed, []Finding{finding("log-not-writable", timeoutchain.Warning), finding("class-broken", Unverified)}},
			Report{Passed, 0, 1, 1, "log-not-writable: a problem of two lines: so be it; mend it"}},
		"errors": {Verdict{Refused, []Finding{finding("a", timeoutchain.Error), finding("b", timeoutchain.Error)}},
			Report{Refused, 2, 0, 0, "a: a problem of two lines: so be it; mend it"}},
		"unfinished": {Verdict{Unjudged, []Finding{finding("preflight-unfinished", timeoutchain.Error)}},
			Report{Unjudged, 1, 0, 0, "preflight-unfinished: a problem of two lines: so be it; mend it"}},
	} {
		brief := c.verdict.Brief(4096)
		for _, text := range []string{brief, Head(brief)} {
			if got, ok := ReadBrief(text); !ok || got != c.want {
				t.Errorf("%s: %v %+v, want %+v\n%s", name, ok, got, c.want, text)
			}
		}
		if lines := strings.Count(Head(brief), "\n") + 1; lines > headLines {
			t.Errorf("%s: a head of %d lines", name, lines)
		}
	}
	for _, text := range []string{"", "exec: php: not found", "preflight Fine: 0 errors, 0 warnings, 0 not verified", "preflight Passed"} {
		if got, ok := ReadBrief(text); ok {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}
