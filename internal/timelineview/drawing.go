// SPDX-License-Identifier: Apache-2.0

// Package timelineview draws a timeout chain for people: as text for a
// terminal, as SVG for a README or a pull request. What happens when is known by
// internal/timeoutchain; here is only how it looks.
package timelineview

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Drawing is everything that is drawn of one QueueWorker.
type Drawing struct {
	Name     string // namespace/name, or the name alone
	Subtitle string // runtime, driver, and the chain in one word
	Timeline timeoutchain.Timeline
	// Findings are about the times that are drawn.
	Findings []timeoutchain.Finding
	// Elsewhere is the number of findings about anything else.
	Elsewhere int
}

// New prepares the drawing of a QueueWorker.
func New(qw *v1alpha1.QueueWorker, opts chainsource.Options) Drawing {
	chain := chainsource.FromQueueWorker(qw, opts)
	d := Drawing{Name: qw.Name, Timeline: chain.Timeline()}
	if qw.Namespace != "" {
		d.Name = qw.Namespace + "/" + qw.Name
	}
	words := []string{string(chain.Runtime)}
	if chain.Driver != "" {
		words = append(words, "on "+string(chain.Driver))
	}
	d.Subtitle = strings.Join(words, " ") + ", " + chain.Summary()
	for _, f := range timeoutchain.Check(chain) {
		if d.Timeline.Shows(f) {
			d.Findings = append(d.Findings, f)
		} else {
			d.Elsewhere++
		}
	}
	return d
}

// labels are the bars' and parts' names for people.
var labels = map[timeoutchain.Link]string{
	timeoutchain.LinkTotalHTTP:  "HTTP calls",
	timeoutchain.LinkHTTP:       "call",
	timeoutchain.LinkJob:        "job",
	timeoutchain.LinkRetryAfter: "reservation",
	timeoutchain.LinkDrain:      "drain",
	timeoutchain.LinkGrace:      "grace",
	timeoutchain.LinkBeforeStop: "beforeStop",
	timeoutchain.LinkBlockFor:   "pop",
}

// clocks are the headings of what happens.
var clocks = []struct {
	clock   timeoutchain.Clock
	heading string
}{
	{timeoutchain.JobClock, "From the moment a worker takes a job"},
	{timeoutchain.StopClock, "From the moment a pod is stopped"},
}

// lengthText is the value column of a bar.
func lengthText(b timeoutchain.Bar) string {
	switch b.Extent {
	case timeoutchain.Endless:
		return "no limit"
	case timeoutchain.Undeclared:
		return "not set"
	case timeoutchain.Absent:
		return "none"
	default:
		return fmt.Sprintf("%d s", b.End)
	}
}

// note explains a bar beyond its length.
func note(b timeoutchain.Bar) string {
	switch {
	case b.Derived:
		return "derived"
	case len(b.Parts) > 0:
		return drainNote(b)
	case b.Link == timeoutchain.LinkJob && b.Extent == timeoutchain.Bounded && !b.Latest.Declared():
		return "longer when a call holds it: no limit is declared for calls"
	case b.Latest.Or(0) > b.End:
		return fmt.Sprintf("%d s when caught in a call", b.Latest.Or(0))
	default:
		return ""
	}
}

func drainNote(b timeoutchain.Bar) string {
	var words []string
	for _, p := range b.Parts {
		if p.To <= b.End {
			words = append(words, fmt.Sprintf("%s %d", labels[p.Link], p.To-p.From))
		}
	}
	text := ""
	if len(words) > 1 {
		text = strings.Join(words, " + ")
	}
	if late := b.Latest.Or(0); late > b.End {
		text = strings.TrimPrefix(text+fmt.Sprintf("; %d s when caught in a call", late), "; ")
	}
	return text
}

// gapText says how two bars lie to each other.
func gapText(g timeoutchain.Gap) string {
	relation, distance := "<", fmt.Sprintf("%s to spare", secondsText(g.Seconds))
	switch {
	case g.Seconds == 0:
		relation, distance = "=", "they end together"
	case g.Seconds < 0:
		relation, distance = ">", fmt.Sprintf("%s too long", secondsText(-g.Seconds))
	}
	if g.Keeping == timeoutchain.Waived {
		distance += ", given up on purpose"
	}
	return fmt.Sprintf("%s %s %s: %s", labels[g.Inner], relation, labels[g.Outer], distance)
}

// overrun is where a bar outlasts one that it must lie inside; found is false
// where it keeps inside all of them.
func overrun(t timeoutchain.Timeline, b timeoutchain.Bar) (from int64, found bool) {
	from = b.End
	for _, g := range t.Gaps {
		if g.Inner != b.Link || g.Keeping != timeoutchain.Broken {
			continue
		}
		outer, _ := t.Bar(g.Outer)
		from, found = min(from, outer.End), true
	}
	return from, found
}

// secondsText is a time in seconds, and in larger units where that helps.
func secondsText(n int64) string {
	if n < 120 {
		return fmt.Sprintf("%d s", n)
	}
	return fmt.Sprintf("%d s (%s)", n, unitsText(n))
}

// unitsText is a time in its two largest units: 1 h 30 min.
func unitsText(n int64) string {
	var words []string
	for _, u := range []struct {
		seconds int64
		name    string
	}{{86_400, "d"}, {3_600, "h"}, {60, "min"}, {1, "s"}} {
		if n >= u.seconds && len(words) < 2 {
			words = append(words, fmt.Sprintf("%d %s", n/u.seconds, u.name))
			n %= u.seconds
		}
	}
	if len(words) == 0 {
		return "0 s"
	}
	return strings.Join(words, " ")
}

// moments are the boundaries of one clock.
func (d Drawing) moments(c timeoutchain.Clock) []timeoutchain.Boundary {
	var moments []timeoutchain.Boundary
	for _, b := range d.Timeline.Boundaries {
		if b.Clock == c {
			moments = append(moments, b)
		}
	}
	return moments
}
