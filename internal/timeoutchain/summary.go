// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"strconv"
	"strings"
)

// Summary is the chain in one word: 20<30<90<100. A link that does not hold
// shows as >=, one that is deliberately not kept (graceOutlasts: Job) as ~; ? is
// a number nobody declared, - one that does not exist.
func (c *Chain) Summary() string {
	reservation := "?"
	if c.Runtime == Generic {
		reservation = "-"
	}
	links := []struct {
		text    string
		value   int64
		present bool
	}{
		{"?", c.TotalHTTP(), c.HTTP.Declared()},
		{"-", c.Job.N(), c.Job.Positive()},
		{reservation, c.RetryAfter.N(), c.RetryAfter.Positive()},
		{"?", c.GracePeriod(), c.graceKnown()},
	}
	var b strings.Builder
	var inner int64
	var known bool
	for i, l := range links {
		if i > 0 {
			b.WriteString(c.relation(i == len(links)-1, known && l.present && inner >= l.value))
		}
		if !l.present {
			b.WriteString(l.text)
			continue
		}
		b.WriteString(strconv.FormatInt(l.value, 10))
		inner, known = l.value, true
	}
	return b.String()
}

func (c *Chain) relation(last, broken bool) string {
	switch {
	case !broken:
		return "<"
	case last && c.GraceOutlasts == OutlastsJob && c.DrainTime() < c.GracePeriod():
		return "~"
	default:
		return ">="
	}
}
