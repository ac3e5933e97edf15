// SPDX-License-Identifier: Apache-2.0

// Package terminal lays text out for people: colour where it is wanted, lines
// that end before the window does. It asks no terminal anything; whoever makes a
// [Style] has done that.
package terminal

import (
	"strings"
	"unicode/utf8"
)

// Style is how text is printed. The zero Style has no colour and never breaks a
// line.
type Style struct {
	Color bool
	// Width is the number of columns; 0 means unlimited.
	Width int
}

// Bad is for what blocks.
func (s Style) Bad(text string) string { return s.paint("31;1", text) }

// Risky is for what warns.
func (s Style) Risky(text string) string { return s.paint("33", text) }

// Good is for what holds.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Strong is for names.
func (s Style) Strong(text string) string { return s.paint("1", text) }

// Faint is for what can be skipped.
func (s Style) Faint(text string) string { return s.paint("2", text) }

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// leastWidth is the narrowest column that text is wrapped in.
const leastWidth = 20

// Wrap breaks text into lines that fit behind an indentation of so many
// columns. A word that is too long for a line has one of its own.
func (s Style) Wrap(text string, indent int) []string {
	if s.Width == 0 {
		return []string{text}
	}
	return Wrap(text, max(s.Width-indent, leastWidth))
}

// Wrap breaks text between words into lines of at most width characters.
func Wrap(text string, width int) []string {
	var lines []string
	var line strings.Builder
	length := 0
	for _, word := range strings.Fields(text) {
		size := utf8.RuneCountInString(word)
		if length > 0 && length+1+size > width {
			lines = append(lines, line.String())
			line.Reset()
			length = 0
		}
		if length > 0 {
			line.WriteByte(' ')
			length++
		}
		line.WriteString(word)
		length += size
	}
	return append(lines, line.String())
}

// Clean removes control characters from a text that came from a file, so that
// no file can steer the terminal.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, text)
}
