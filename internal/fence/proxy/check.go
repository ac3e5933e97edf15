// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"regexp"
	"strings"
)

// CheckKey compiles a key's expression as the sidecar does when it starts; an
// empty one is none. The error is one line and names the place.
func CheckKey(text string) error {
	if text == "" {
		return nil
	}
	_, err := compileKey(text)
	return placed(err)
}

// CheckAsking judges, as the sidecar does when it starts, what is declared to
// learn of an effect: the lookup, its lag and the provider's id. The error is
// one line, begins with the field, and names the place in an expression.
func (p *Provider) CheckAsking() error { return placed(p.validateAsking()) }

var place = regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): `)

// placed puts the place of the first mistake in words and leaves out the drawing
// below it, and further mistakes.
func placed(err error) error {
	if err == nil {
		return nil
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(place.ReplaceAllString(first, "line $1, column $2: "))
}
