// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"slices"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 13, []string{"one two three"}},
		{"one two three", 12, []string{"one two", "three"}},
		{"a-word-that-is-too-long b", 10, []string{"a-word-that-is-too-long", "b"}},
		{"zählt Zeichen", 13, []string{"zählt Zeichen"}},
		{"  one \n two ", 10, []string{"one two"}},
	} {
		if got := Wrap(tc.text, tc.width); !slices.Equal(got, tc.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

func TestStyle(t *testing.T) {
	if got := (Style{}).Bad("x"); got != "x" {
		t.Errorf("without colour: %q", got)
	}
	if got := (Style{Color: true}).Bad("x"); got != "\x1b[31;1mx\x1b[0m" {
		t.Errorf("with colour: %q", got)
	}
	if got := (Style{Color: true}).Bad(""); got != "" {
		t.Errorf("nothing, coloured: %q", got)
	}
	long := "one two three four five six"
	if got := (Style{}).Wrap(long, 50); len(got) != 1 {
		t.Errorf("unlimited, but wrapped: %q", got)
	}
	if got := (Style{Width: 30}).Wrap(long, 4); !slices.Equal(got, []string{"one two three four five", "six"}) {
		t.Errorf("30 columns, 4 of them indentation: %q", got)
	}
}

func TestClean(t *testing.T) {
	if got := Clean("a\x1b[31mb\nc\td\x7f\u009bé"); got != "a?[31mb?c?d??é" {
		t.Errorf("Clean gives %q", got)
	}
}
