// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// vocabulary gives words a meaning. A word in an expression starts with "$".
type vocabulary map[string]string

// inlined is the length up to which an expression is repeated rather than bound.
const inlined = 24

var (
	word        = regexp.MustCompile(`\$[A-Za-z]+`)
	placeholder = regexp.MustCompile(`\{([^{}]+)\}`)
)

// meaning is the word's own meaning here, else the common one. An unknown word is
// a mistake in this program's tables.
func (v vocabulary) meaning(w string) string {
	w = strings.TrimPrefix(w, "$")
	if m, ok := v[w]; ok {
		return m
	}
	if m, ok := terms[w]; ok {
		return m
	}
	if m, ok := phrases[w]; ok {
		return m
	}
	if m, ok := numbers[w]; ok {
		return m
	}
	panic("no meaning for $" + w)
}

// expand replaces every word by its meaning.
func (v vocabulary) expand(expression string) string {
	return word.ReplaceAllStringFunc(expression, func(w string) string { return v.expand(v.meaning(w)) })
}

// condition renders an expression that is true or false.
func (v vocabulary) condition(expression string) string {
	body, bound := v.compile(expression)
	for i := len(bound) - 1; i >= 0; i-- {
		body = fmt.Sprintf("[%s].all(%s, %s)", bound[i].meaning, bound[i].name, body)
	}
	return body
}

// message renders a text whose {…} hold expressions.
func (v vocabulary) message(text string) string {
	var arguments []string
	format := placeholder.ReplaceAllStringFunc(text, func(p string) string {
		arguments = append(arguments, strings.Trim(p, "{}"))
		return "%s"
	})
	quoted := "'" + strings.ReplaceAll(format, "'", `\'`) + "'"
	if len(arguments) == 0 {
		return quoted
	}
	body, bound := v.compile(quoted + ".format([" + strings.Join(arguments, ", ") + "])")
	for i := len(bound) - 1; i >= 0; i-- {
		body = fmt.Sprintf("[%s].map(%s, %s)[0]", bound[i].meaning, bound[i].name, body)
	}
	return body
}

// binding names a value that an expression uses several times. The rules of a
// CRD have no variables, but a list of one element can be walked with one.
type binding struct{ name, meaning string }

// compile replaces the words of an expression: those that are long and used
// more than once, or in a loop, by a variable, the others by their meaning.
// Bindings come in the order in which they build on each other.
func (v vocabulary) compile(expression string) (body string, bound []binding) {
	uses := map[string]int{}
	var order []string
	v.count(expression, 1, uses, &order)
	named := func(w string) bool {
		return uses[w] > 1 && len(v.expand(w)) > inlined && !isPhrase(w)
	}
	var replace func(string) string
	replace = func(e string) string {
		return word.ReplaceAllStringFunc(e, func(w string) string {
			if named(w) {
				return strings.TrimPrefix(w, "$")
			}
			return replace(v.meaning(w))
		})
	}
	for _, w := range order {
		if named(w) {
			bound = append(bound, binding{strings.TrimPrefix(w, "$"), replace(v.meaning(w))})
		}
	}
	return replace(expression), bound
}

// count counts how often each word is used, a word's own meaning once, and
// lists the words so that each comes after those it builds on. A use in a loop
// counts as many.
func (v vocabulary) count(expression string, times int, uses map[string]int, order *[]string) {
	for _, w := range word.FindAllString(expression, -1) {
		first := uses[w] == 0
		uses[w] += times
		if !first {
			continue
		}
		inside := 1
		if isPhrase(w) {
			inside = 2
		}
		v.count(v.meaning(w), inside, uses, order)
		*order = append(*order, w)
	}
}

func isPhrase(w string) bool {
	_, ok := phrases[strings.TrimPrefix(w, "$")]
	return ok
}
