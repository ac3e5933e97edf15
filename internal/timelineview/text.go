// SPDX-License-Identifier: Apache-2.0

package timelineview

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/queueworker/operator/internal/terminal"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Widths of the text drawing, in columns.
const (
	defaultWidth = 80
	leastWidth   = 52
	mostWidth    = 132
	labelWidth   = 13
	lengthWidth  = 12
	momentWidth  = 20
	barsFrom     = 2 + labelWidth + lengthWidth + 2
)

// Text draws for a terminal.
func (d Drawing) Text(w io.Writer, style terminal.Style) error {
	if style.Width == 0 {
		style.Width = defaultWidth
	}
	style.Width = min(max(style.Width, leastWidth), mostWidth)
	p := textDrawing{Drawing: d, style: style, scale: scaleOf(d.Timeline), width: style.Width - barsFrom - 2}
	p.header()
	for _, b := range d.Timeline.Bars {
		p.bar(b)
	}
	p.gaps()
	p.boundaries()
	p.findings()
	_, err := io.WriteString(w, p.out.String())
	return err
}

type textDrawing struct {
	Drawing
	out   strings.Builder
	style terminal.Style
	scale scale
	width int // of the longest bar
}

func (p *textDrawing) line(text string) {
	p.out.WriteString(strings.TrimRight(text, " ") + "\n")
}

// item writes a text behind a head, wrapped under itself.
func (p *textDrawing) item(head, text string) {
	indent := utf8.RuneCountInString(stripped(head))
	for i, line := range p.style.Wrap(text, indent) {
		if i == 0 {
			p.line(head + line)
		} else {
			p.line(strings.Repeat(" ", indent) + line)
		}
	}
}

// stripped is a head without its colours.
func stripped(s string) string {
	var b strings.Builder
	inside := false
	for _, r := range s {
		switch {
		case r == '\x1b':
			inside = true
		case inside && r == 'm':
			inside = false
		case !inside:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (p *textDrawing) header() {
	p.line(p.style.Strong(terminal.Clean(p.Name)) + "  " + p.Subtitle)
	p.line("")
	if p.Timeline.Length() == 0 {
		return // nothing has an end, so there is nothing to measure
	}
	axis := []rune(strings.Repeat(" ", p.width+2))
	used := 0
	for _, tick := range p.scale.ticks(max(p.width/10, 2)) {
		label, at := []rune(unitsText(tick)), p.column(tick)
		if at < used || at+len(label) > len(axis) {
			continue
		}
		copy(axis[at:], label)
		used = at + len(label) + 2
	}
	legend := ""
	if p.scale.logarithmic {
		legend = "logarithmic scale"
	}
	p.line(p.style.Faint(fmt.Sprintf("  %-*s%s", barsFrom-2, legend, strings.TrimRight(string(axis), " "))))
}

func (p *textDrawing) column(seconds int64) int {
	return int(math.Round(p.scale.at(seconds) * float64(p.width)))
}

// fills are the characters of a drain's parts.
var fills = map[timeoutchain.Link]string{
	timeoutchain.LinkBeforeStop: "▒",
	timeoutchain.LinkBlockFor:   "▓",
}

func (p *textDrawing) bar(b timeoutchain.Bar) {
	from, broken := overrun(p.Timeline, b)
	length := fmt.Sprintf("%*s", lengthWidth-2, lengthText(b))
	mark := "  "
	if broken {
		length, mark = p.style.Bad(length), p.style.Bad("✗")+" "
	}
	p.line(fmt.Sprintf("  %-*s%s  %s%s", labelWidth, labels[b.Link], length, mark, p.drawn(b, from)))
	if text := note(b); text != "" {
		for _, line := range p.style.Wrap(text, barsFrom) {
			p.line(strings.Repeat(" ", barsFrom) + p.style.Faint(line))
		}
	}
}

// drawn is the bar itself: what holds, what outlasts the next link, and how
// much longer a call can make it.
func (p *textDrawing) drawn(b timeoutchain.Bar, overrunFrom int64) string {
	if b.Extent == timeoutchain.Endless {
		return strings.Repeat("█", p.width-1) + "▶"
	}
	if b.Extent != timeoutchain.Bounded {
		return ""
	}
	var out strings.Builder
	end := max(p.column(b.End), 1)
	good := min(p.column(overrunFrom), end)
	column := 0
	for _, part := range b.Parts {
		if fill, special := fills[part.Link]; special {
			to := min(p.column(part.To), good)
			out.WriteString(strings.Repeat(fill, max(to-column, 0)))
			column = max(column, to)
		}
	}
	out.WriteString(strings.Repeat("█", max(good-column, 0)))
	out.WriteString(p.style.Bad(strings.Repeat("╳", end-good)))
	out.WriteString(p.style.Faint(strings.Repeat("░", max(p.column(b.Latest.Or(0))-end, 0))))
	return out.String()
}

func (p *textDrawing) gaps() {
	if len(p.Timeline.Gaps) > 0 {
		p.line("")
	}
	for _, g := range p.Timeline.Gaps {
		switch text := gapText(g); g.Keeping {
		case timeoutchain.Broken:
			p.line("  " + p.style.Bad("✗ "+text))
		case timeoutchain.Waived:
			p.line("  " + p.style.Risky("~ "+text))
		default:
			p.line("  " + p.style.Good("✓") + " " + text)
		}
	}
}

func (p *textDrawing) boundaries() {
	for _, c := range clocks {
		moments := p.moments(c.clock)
		if len(moments) == 0 {
			continue
		}
		p.line("")
		p.line("  " + p.style.Strong(c.heading))
		for _, b := range moments {
			p.item(fmt.Sprintf("  %*s  ", momentWidth, secondsText(b.At)), b.What)
		}
	}
}

func (p *textDrawing) findings() {
	for _, f := range p.Findings {
		p.line("")
		mark := p.style.Risky("!")
		if f.Severity == timeoutchain.Error {
			mark = p.style.Bad("✗")
		}
		p.line("  " + mark + " " + p.style.Strong(f.Rule))
		p.item("    ", terminal.Clean(f.Problem+": "+f.Consequence))
		p.item("    fix: ", terminal.Clean(f.Fix.String()))
	}
	if p.Elsewhere > 0 {
		p.line("")
		p.item("  ", elsewhereText(p.Elsewhere))
	}
}

func elsewhereText(n int) string {
	if n == 1 {
		return "One more finding is about something else: kubectl queueworker lint prints it."
	}
	return fmt.Sprintf("%d more findings are about something else: kubectl queueworker lint prints them.", n)
}
