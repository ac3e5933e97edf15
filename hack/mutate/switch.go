// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// switchEnv names the mutant of a run: the number of its site, a blank, and what
// takes the place.
const switchEnv = "MUTANT"

// switches is what the sites of a package ask, but for the package's name.
const switches = `
import (
	"cmp"
	"os"
	"strconv"
	"strings"
)

var mutantSite, mutantNew = func() (int, string) {
	site, text, _ := strings.Cut(os.Getenv("` + switchEnv + `"), " ")
	n, _ := strconv.Atoi(site)
	return n, text
}()

func mutantOr(site int, old string) string {
	if site == mutantSite {
		return mutantNew
	}
	return old
}

func mutantOrder[T cmp.Ordered](site int, operator string, a, b T) bool {
	switch mutantOr(site, operator) {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	default:
		return a >= b
	}
}

func mutantSame[T comparable](site int, operator string, a, b T) bool {
	return (a == b) == (mutantOr(site, operator) == "==")
}

func mutantSum[T int | int64](site int, operator string, a, b T) T {
	if mutantOr(site, operator) == "+" {
		return a + b
	}
	return a - b
}

func mutantLogic(site int, operator string, a bool, b func() bool) bool {
	if mutantOr(site, operator) == "&&" {
		return a && b()
	}
	return a || b()
}

func mutantNumber(site int, n int64) int64 {
	if site == mutantSite {
		n, _ = strconv.ParseInt(mutantNew, 10, 64)
	}
	return n
}

func mutantSeverity(site int, s Severity) Severity {
	return map[string]Severity{"Error": Error, "Warning": Warning, "": s}[mutantOr(site, "")]
}
`

// edit puts a text in the place of a stretch of a file.
type edit struct {
	start, end int
	text       string
}

// switched is the file's text with a switch at each site that can have one.
func (f *file) switched() string {
	var edits []edit
	offset := func(pos token.Pos) int { return int(pos - f.tree.FileStart) }
	insert := func(at int, format string, args ...any) {
		edits = append(edits, edit{at, at, fmt.Sprintf(format, args...)})
	}
	var open []ast.Node
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if n == nil { // what was opened last ends: inner ends come before outer ones
			closing := open[len(open)-1]
			open = open[:len(open)-1]
			if place := f.sites[closing]; place != nil && place.switched {
				if binary, ok := closing.(*ast.BinaryExpr); ok {
					insert(offset(binary.End()), "%s", wrapping(binary).end)
				}
			}
			return true
		}
		open = append(open, n)
		place := f.sites[n]
		if place == nil || !place.switched {
			return true
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			w := wrapping(n)
			insert(offset(n.Pos()), "%s(%d, %q, ", w.function, place.number, place.old)
			edits = append(edits, edit{place.start, place.end, w.between})
		case *ast.BasicLit:
			name := types.TypeString(place.of, func(*types.Package) string { return "" })
			edits = append(edits, edit{place.start, place.end, fmt.Sprintf("%s(mutantNumber(%d, %s))", name, place.number, place.old)})
		case *ast.Ident:
			edits = append(edits, edit{place.start, place.end, fmt.Sprintf("mutantSeverity(%d, %s)", place.number, place.old)})
		}
		return true
	})
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	position := 0
	for _, e := range edits {
		b.WriteString(f.text[position:e.start] + e.text)
		position = e.end
	}
	return b.String() + f.text[position:]
}

// wrap turns an operation into a call. The right side of a condition is asked
// only where it decides.
type wrap struct{ function, between, end string }

func wrapping(n *ast.BinaryExpr) wrap {
	switch n.Op {
	case token.LAND, token.LOR:
		return wrap{"mutantLogic", ", func() bool { return (", ") })"}
	case token.EQL, token.NEQ:
		return wrap{"mutantSame", ", ", ")"}
	case token.ADD, token.SUB:
		return wrap{"mutantSum", ", ", ")"}
	default:
		return wrap{"mutantOrder", ", ", ")"}
	}
}
