// SPDX-License-Identifier: Apache-2.0

package timelineview

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/queueworker/operator/internal/terminal"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Measures of the picture, in pixels.
const (
	svgWidth  = 860
	svgMargin = 24
	svgLeft   = 220 // where bars begin
	svgBars   = svgWidth - svgLeft - svgMargin - 16
	rowHeight = 40
	barHeight = 18
	lineStep  = 18
	// Characters that surely fit a line at 13 pixels, over the whole width and
	// over one of two columns.
	fullLine = 112
	halfLine = 42
)

// svgStyle has one set of colours for light and one for dark surroundings; the
// picture brings its own background, so that text keeps its contrast wherever it
// is shown. Contrast is at least 4.5 for text and 3 for bars.
const svgStyle = `
    text { font: 13px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328; }
    .card { fill: #ffffff; stroke: #d0d7de; }
    .title { font-size: 17px; font-weight: 600; }
    .head, .label { font-weight: 600; }
    .faint { fill: #59636e; }
    .axis { fill: #59636e; font-size: 11px; }
    .grid { stroke: #d8dee4; }
    .call { fill: #0969da; } .job { fill: #1a7f37; } .reservation { fill: #8250df; } .grace { fill: #57606a; }
    .hook { fill: #9a6700; } .pop { fill: #bf8700; }
    .late { fill: none; stroke-dasharray: 3 3; stroke: #1a7f37; }
    .stripes { fill: url(#%[1]s-stripes); } .stripe { stroke: #ffffff; }
    .bad { fill: #cf222e; } .risky { fill: #9a6700; } .good { fill: #1a7f37; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .card { fill: #0d1117; stroke: #30363d; }
      .faint, .axis { fill: #9198a1; }
      .grid { stroke: #262c36; }
      .call { fill: #4493f8; } .job { fill: #3fb950; } .reservation { fill: #ab7df8; } .grace { fill: #8b949e; }
      .hook { fill: #d29922; } .pop { fill: #e3b341; }
      .late { stroke: #3fb950; } .stripe { stroke: #0d1117; }
      .bad { fill: #ff7b72; } .risky { fill: #d29922; } .good { fill: #3fb950; }
    }
`

// SVG draws a picture that reads well in light and in dark surroundings.
func (d Drawing) SVG(w io.Writer) error {
	p := &svgDrawing{Drawing: d, scale: scaleOf(d.Timeline), y: 2 * svgMargin}
	p.header()
	p.bars()
	p.gaps()
	p.boundaries()
	p.findings()
	_, err := io.WriteString(w, p.document())
	return err
}

type svgDrawing struct {
	Drawing
	body  strings.Builder
	scale scale
	y     int // baseline of the next text
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

func (p *svgDrawing) add(format string, args ...any) {
	fmt.Fprintf(&p.body, "  "+format+"\n", args...)
}

func (p *svgDrawing) text(x, y int, class, text string) {
	p.add(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escape(text))
}

// paragraph writes wrapped lines and returns the baseline after them.
func (p *svgDrawing) paragraph(x, y, width int, class, text string) int {
	for _, line := range terminal.Wrap(text, width) {
		p.text(x, y, class, line)
		y += lineStep
	}
	return y
}

func (p *svgDrawing) x(seconds int64) int {
	return svgLeft + int(p.scale.at(seconds)*svgBars+0.5)
}

func (p *svgDrawing) header() {
	p.text(svgMargin, p.y-8, "title", p.Name)
	p.text(svgMargin, p.y+14, "faint", p.Subtitle)
	p.y += 48
	if p.scale.logarithmic {
		p.text(svgMargin, p.y, "axis", "logarithmic scale")
	}
	if p.Timeline.Length() == 0 {
		p.y += 10
		return // nothing has an end, so there is nothing to measure
	}
	bottom := p.y + 10 + rowHeight*len(p.Timeline.Bars)
	used := 0
	for _, tick := range p.scale.ticks(8) {
		label, x := unitsText(tick), p.x(tick)
		half := 4 * len(label)
		if x-half < used {
			continue
		}
		used = x + half
		p.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="grid"/>`, x, p.y+6, x, bottom)
		p.add(`<text x="%d" y="%d" class="axis" text-anchor="middle">%s</text>`, x, p.y, escape(label))
	}
	p.y += 10
}

// classes are the colours of the links.
var classes = map[timeoutchain.Link]string{
	timeoutchain.LinkTotalHTTP:  "call",
	timeoutchain.LinkJob:        "job",
	timeoutchain.LinkRetryAfter: "reservation",
	timeoutchain.LinkDrain:      "job",
	timeoutchain.LinkGrace:      "grace",
	timeoutchain.LinkBeforeStop: "hook",
	timeoutchain.LinkBlockFor:   "pop",
}

func (p *svgDrawing) bars() {
	for _, b := range p.Timeline.Bars {
		p.bar(b, p.y+4)
		p.y += rowHeight
	}
	p.y += lineStep + 8
}

func (p *svgDrawing) bar(b timeoutchain.Bar, top int) {
	from, broken := overrun(p.Timeline, b)
	label := "label"
	if broken {
		p.text(svgMargin, top+14, "bad label", "✗")
		label = "bad label"
	}
	p.text(svgMargin+18, top+14, label, labels[b.Link])
	p.add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, svgLeft-16, top+14, escape(lengthText(b)))
	switch b.Extent {
	case timeoutchain.Bounded:
		p.stretches(b, from, top)
	case timeoutchain.Endless:
		p.add(`<path d="M%d %dh%dl10 %dl-10 %dH%dz" class="%s"/>`,
			svgLeft, top, svgBars-10, barHeight/2, barHeight/2, svgLeft, classes[b.Link])
	}
	if text := note(b); text != "" {
		p.text(svgLeft, top+barHeight+13, "axis", text)
	}
}

// stretches are the parts of a bar: what holds, what outlasts the next link,
// and how much longer a call can make it.
func (p *svgDrawing) stretches(b timeoutchain.Bar, overrunFrom int64, top int) {
	start := int64(0)
	for _, part := range b.Parts {
		if part.Link == timeoutchain.LinkBeforeStop || part.Link == timeoutchain.LinkBlockFor {
			p.stretch(start, min(part.To, overrunFrom), top, classes[part.Link])
			start = part.To
		}
	}
	p.stretch(start, overrunFrom, top, classes[b.Link])
	p.stretch(max(start, overrunFrom), b.End, top, "bad")
	p.stretch(max(start, overrunFrom), b.End, top, "stripes") // red and green alone look alike to many
	if late := b.Latest.Or(0); late > b.End {
		x := p.x(b.End)
		p.add(`<rect x="%d.5" y="%d.5" width="%d" height="%d" class="late"/>`, x, top, max(p.x(late)-x-1, 1), barHeight-1)
	}
}

func (p *svgDrawing) stretch(from, to int64, top int, class string) {
	if to <= from {
		return
	}
	x := p.x(from)
	p.add(`<rect x="%d" y="%d" width="%d" height="%d" class="%s"/>`, x, top, max(p.x(to)-x, 2), barHeight, class)
}

func (p *svgDrawing) gaps() {
	columns := 2
	for i, g := range p.Timeline.Gaps {
		x := svgMargin + i%columns*(svgWidth/columns-svgMargin/2)
		mark, class, textClass := "✓", "good", ""
		switch g.Keeping {
		case timeoutchain.Broken:
			mark, class, textClass = "✗", "bad label", "bad"
		case timeoutchain.Waived:
			mark, class = "~", "risky label"
		}
		p.text(x, p.y, class, mark)
		p.text(x+18, p.y, textClass, gapText(g))
		if i%columns == columns-1 || i == len(p.Timeline.Gaps)-1 {
			p.y += lineStep
		}
	}
	p.y += lineStep
}

func (p *svgDrawing) boundaries() {
	bottom := p.y
	column := 0
	for _, c := range clocks {
		moments := p.moments(c.clock)
		if len(moments) == 0 {
			continue
		}
		x, y := svgMargin+column*(svgWidth/2-svgMargin/2), p.y
		column++
		p.text(x, y, "head", c.heading)
		y += lineStep + 2
		for _, b := range moments {
			p.add(`<text x="%d" y="%d" text-anchor="end" class="faint">%s</text>`, x+74, y, escape(unitsText(b.At)))
			y = p.paragraph(x+84, y, halfLine, "", b.What)
		}
		bottom = max(bottom, y)
	}
	p.y = bottom
}

func (p *svgDrawing) findings() {
	for _, f := range p.Findings {
		p.y += lineStep / 2
		mark, class := "!", "risky label"
		if f.Severity == timeoutchain.Error {
			mark, class = "✗", "bad label"
		}
		p.text(svgMargin, p.y, class, mark)
		p.text(svgMargin+18, p.y, class, f.Rule)
		p.y += lineStep
		p.y = p.paragraph(svgMargin+18, p.y, fullLine, "", f.Problem+": "+f.Consequence)
		p.y = p.paragraph(svgMargin+18, p.y, fullLine, "faint", "Fix: "+f.Fix.String())
	}
	if p.Elsewhere > 0 {
		p.y = p.paragraph(svgMargin, p.y+lineStep/2, fullLine, "faint", elsewhereText(p.Elsewhere))
	}
}

// document puts the frame around what was drawn.
func (p *svgDrawing) document() string {
	height := p.y + svgMargin - lineStep/2
	id := "qw-" + strings.Map(idLetter, p.Name)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-title %s-desc">`+"\n",
		svgWidth, height, svgWidth, height, id, id)
	fmt.Fprintf(&b, "  <title id=\"%s-title\">%s</title>\n", id, escape("Timeout chain of "+p.Name))
	fmt.Fprintf(&b, "  <desc id=\"%s-desc\">%s</desc>\n", id, escape(p.spoken()))
	fmt.Fprintf(&b, "  <style>"+svgStyle+"  </style>\n", id)
	fmt.Fprintf(&b, `  <pattern id="%s-stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke-width="3" class="stripe" opacity="0.6"/></pattern>`+"\n", id)
	fmt.Fprintf(&b, "  <rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\" class=\"card\"/>\n", svgWidth-1, height-1)
	b.WriteString(p.body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// spoken is the picture for somebody who does not see it.
func (p *svgDrawing) spoken() string {
	var sentences []string
	for _, b := range p.Timeline.Bars {
		text := labels[b.Link] + " " + lengthText(b)
		if n := note(b); n != "" {
			text += " (" + n + ")"
		}
		sentences = append(sentences, text)
	}
	for _, g := range p.Timeline.Gaps {
		if g.Keeping != timeoutchain.Kept {
			sentences = append(sentences, gapText(g))
		}
	}
	for _, f := range p.Findings {
		sentences = append(sentences, f.Message())
	}
	return strings.Join(sentences, ". ") + "."
}

func idLetter(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}
