// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/queueworker/operator/internal/terminal"
)

// styleOf uses colour and the window's width on a terminal only. NO_COLOR, set
// to anything, and TERM=dumb turn colour off.
func styleOf(w io.Writer) terminal.Style {
	file, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return terminal.Style{}
	}
	style := terminal.Style{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		style.Width = width
	}
	return style
}
