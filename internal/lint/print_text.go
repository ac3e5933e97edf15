// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/queueworker/operator/internal/terminal"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Text prints the report for people. Faults are not part of it: they go to
// another stream, see [Report.Faults].
func (r Report) Text(w io.Writer, style terminal.Style) error {
	p := textPrinter{w: bufio.NewWriter(w), style: style}
	p.column = r.widest(func(f Finding) string { return f.Rule })
	p.severity = max(len(timeoutchain.Warning), r.widest(func(f Finding) string { return string(f.Severity) }))
	for _, in := range r.Inputs {
		p.input(in)
	}
	p.line("%s", r.Counts().summary(style))
	return p.w.Flush()
}

type textPrinter struct {
	w      *bufio.Writer
	style  terminal.Style
	column int // width of the rule column
	// severity is the width of the severity column.
	severity int
}

func (p *textPrinter) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p *textPrinter) input(in Input) {
	if len(in.Objects) == 0 {
		return
	}
	p.line("%s", p.style.Strong(terminal.Clean(in.Name)))
	for i := range in.Objects {
		p.object(&in.Objects[i])
	}
	p.line("")
}

func (p *textPrinter) object(o *Object) {
	name := p.style.Strong(terminal.Clean(o.Namespace + "/" + o.Name))
	switch {
	case len(o.Faults) > 0:
		p.line("  %s %s", name, p.style.Bad("not readable"))
	case o.Verdict() == Reject:
		p.line("  %s %s", name, p.style.Bad("refused"))
	default:
		p.line("  %s %s", name, p.style.Good("accepted"))
	}
	for _, f := range o.Findings {
		p.finding(f)
	}
}

// margin is where the text of a finding begins: behind its severity.
func (p *textPrinter) margin() int { return 4 + p.severity + 2 }

func (p *textPrinter) finding(f Finding) {
	severity := fmt.Sprintf("%-*s", p.severity, f.Severity)
	if f.Severity == timeoutchain.Error {
		severity = p.style.Bad(severity)
	} else {
		severity = p.style.Risky(severity)
	}
	p.line("    %s  %-*s  line %-4d %s", severity, p.column, f.Rule, f.Line, terminal.Clean(f.Field))
	p.paragraph(f.Message)
	if f.Fix != "" {
		p.paragraph("fix: " + f.Fix)
	}
}

func (p *textPrinter) paragraph(text string) {
	for _, line := range p.style.Wrap(terminal.Clean(text), p.margin()) {
		p.line("%s%s", strings.Repeat(" ", p.margin()), line)
	}
}

// widest is the width of the longest of a column's texts.
func (r Report) widest(column func(Finding) string) int {
	widest := 0
	for _, in := range r.Inputs {
		for i := range in.Objects {
			for _, f := range in.Objects[i].Findings {
				widest = max(widest, len(column(f)))
			}
		}
	}
	return widest
}

func (c Counts) summary(style terminal.Style) string {
	parts := []string{
		plural(c.Workers, "QueueWorker"),
		fmt.Sprintf("%d accepted", c.Accepted),
		highlight(c.Refused, fmt.Sprintf("%d refused", c.Refused), style.Bad),
		highlight(c.Warnings, plural(c.Warnings, "warning"), style.Risky),
		plural(c.PassedOver, "other object") + " passed over",
	}
	if c.Faults > 0 {
		parts = append(parts, style.Bad(plural(c.Faults, "fault")+" in the input"))
	}
	return strings.Join(parts, ", ")
}

func highlight(n int, text string, paint func(string) string) string {
	if n == 0 {
		return text
	}
	return paint(text)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
