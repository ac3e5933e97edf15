// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"fmt"
	"strings"
)

var strategyOverridden = Rule{
	ID:       "strategy-overridden",
	Severity: Warning,
	Sections: SectionStrategy | SectionPreflight | SectionRuntime,
	Doc: Doc{
		When:   "The preflight is enforced (`preflight.policy`, Enforce when not set), and `strategy.rollingUpdate` has a `maxUnavailable` above 0 or a `maxSurge` of 0.",
		Why:    "Either lets a rollout stop an older worker before a new one has passed its preflight, and an image that is refused would cost workers. So maxUnavailable is rendered as 0 and maxSurge as at least 1, whatever is declared.",
		Remedy: "leave maxUnavailable out and maxSurge above 0, use strategy type Recreate, or set preflight.policy to Warn",
	},
	check: func(c *Chain) []Finding {
		s := &c.Strategy
		if !s.PreflightFirst {
			return nil
		}
		var numbers, rendered []string
		link := LinkMaxSurge
		if s.MaxUnavailable != "" && !IsNone(s.MaxUnavailable) {
			numbers, rendered = append(numbers, "maxUnavailable "+s.MaxUnavailable), append(rendered, "0")
			link = LinkMaxUnavailable
		}
		if s.MaxSurge != "" && IsNone(s.MaxSurge) {
			numbers, rendered = append(numbers, "maxSurge "+s.MaxSurge), append(rendered, "1")
		}
		if len(numbers) == 0 {
			return nil
		}
		return []Finding{{
			Link:        link,
			Problem:     fmt.Sprintf("%s would let an older worker leave before a new one has passed its preflight", strings.Join(numbers, " and ")),
			Consequence: fmt.Sprintf("rendered as %s instead", strings.Join(rendered, " and ")),
		}}
	},
}

// IsNone says whether a number of a strategy, such as 0 or 0%, asks for no pod.
func IsNone(number string) bool {
	digits := strings.TrimSuffix(number, "%")
	return digits != "" && strings.Trim(digits, "0") == ""
}
