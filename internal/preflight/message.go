// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Heading sums the verdict up in one line.
func (v Verdict) Heading() string {
	return fmt.Sprintf("preflight %s: %d errors, %d warnings, %d not verified",
		v.Outcome, v.Count(timeoutchain.Error), v.Count(timeoutchain.Warning), v.Count(Unverified))
}

// Print writes everything, a finding a line.
func (v Verdict) Print(w io.Writer) {
	fmt.Fprintln(w, v.Heading())
	for _, f := range v.Findings {
		fmt.Fprintln(w, f.line())
	}
}

func (f Finding) line() string { return string(f.Severity) + " " + oneLine(f.Message()) }

// Brief is the verdict in at most the given number of bytes: the heading, then
// as many findings as fit, the most important first, a line each.
func (v Verdict) Brief(most int) string {
	lines := []string{v.Heading()}
	room := most - len(lines[0])
	for i, f := range v.Findings {
		line := f.line()
		more := fmt.Sprintf("and %d more: kubectl logs POD -c queueworker-preflight", len(v.Findings)-i)
		left := room - 1 // for the line break
		if i < len(v.Findings)-1 {
			left -= len(more) + 1
		}
		if len(line) > left && i > 0 {
			lines = append(lines, more)
			break
		}
		line = cut(line, left)
		lines = append(lines, line)
		room -= len(line) + 1
	}
	return strings.Join(lines, "\n")
}

// cut shortens a line without leaving half a character.
func cut(line string, most int) string {
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most-3], "") + "..."
}

// oneLine keeps foreign text from breaking a message apart.
func oneLine(text string) string {
	return strings.ToValidUTF8(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' }), " "), "?")
}
