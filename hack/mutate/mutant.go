// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mutant is one change at one place.
type mutant struct {
	site       *site
	new        string
	sourceLine string
}

// site is a place that can be changed.
type site struct {
	number     int
	file       string // as it was found
	start, end int    // of the operator, number or name
	line       int
	old        string
	// switched says that a value read at run time can take the place. A constant
	// must be compiled anew.
	switched bool
	node     ast.Node
	of       types.Type // of the operands, or of the number
}

// String says where and what.
func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s", filepath.Base(m.site.file), m.site.line, m.change())
}

// key names a mutant without its line number, so that an explanation survives
// edits elsewhere in the file.
func (m mutant) key() string { return filepath.Base(m.site.file) + ": " + m.change() }

func (m mutant) change() string {
	return fmt.Sprintf("%s -> %s in `%s`", m.site.old, m.new, strings.TrimSpace(m.sourceLine))
}

// source is a package with everything that can be changed in it.
type source struct {
	dir     string
	files   []*file
	mutants []mutant
}

type file struct {
	name string
	text string
	tree *ast.File
	// sites are in the order in which the tree is walked.
	sites map[ast.Node]*site
}

func readSource(dir string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	s, set := &source{dir: dir}, token.NewFileSet()
	var trees []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			return nil, err
		}
		s.files, trees = append(s.files, &file{name: name, text: string(text), tree: tree}), append(trees, tree)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
	if _, err := config.Check(dir, set, trees, info); err != nil {
		return nil, err
	}
	for _, f := range s.files {
		s.find(f, set, info)
	}
	if len(s.mutants) == 0 {
		return nil, fmt.Errorf("no Go code to break in %s", dir)
	}
	return s, nil
}

// find lists the mutants of a file in the order of its text.
func (s *source) find(f *file, set *token.FileSet, info *types.Info) {
	f.sites = map[ast.Node]*site{}
	lines := strings.Split(f.text, "\n")
	constant := constants(f.tree)
	add := func(n ast.Node, pos token.Pos, old string, of types.Type, switched bool, others ...string) {
		at := set.Position(pos)
		place := &site{
			number: len(s.mutants) + 1, file: f.name, start: at.Offset, end: at.Offset + len(old), line: at.Line, old: old,
			switched: switched && !constant[n], node: n, of: of,
		}
		f.sites[n] = place
		for _, other := range others {
			s.mutants = append(s.mutants, mutant{site: place, new: other, sourceLine: lines[at.Line-1]})
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			of := operands(n, info)
			if others := otherOperators[n.Op]; len(others) > 0 && !(n.Op == token.ADD && isText(of)) {
				add(n, n.OpPos, n.Op.String(), of, types.Comparable(of), others...)
			}
		case *ast.BasicLit:
			if others := otherNumbers(n.Value); n.Kind == token.INT && len(others) > 0 {
				add(n, n.Pos(), n.Value, info.TypeOf(n), !untyped(info.TypeOf(n)), others...)
			}
		case *ast.Ident:
			if other, ok := otherSeverity[n.Name]; ok && n.Obj == nil {
				add(n, n.Pos(), n.Name, nil, true, other)
			}
		}
		return true
	})
}

// constants are the nodes whose value the compiler must know.
func constants(tree *ast.File) map[ast.Node]bool {
	found := map[ast.Node]bool{}
	all := func(n ast.Node) {
		ast.Inspect(n, func(inner ast.Node) bool {
			found[inner] = true
			return true
		})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if n.Tok == token.CONST {
				all(n)
			}
		case *ast.ArrayType:
			if n.Len != nil {
				all(n.Len)
			}
		}
		return true
	})
	return found
}

// operands is the type of both operands; that of nil says nothing.
func operands(n *ast.BinaryExpr, info *types.Info) types.Type {
	of := info.TypeOf(n.X)
	if basic, ok := of.(*types.Basic); ok && basic.Kind() == types.UntypedNil {
		of = info.TypeOf(n.Y)
	}
	return of
}

// untyped is the type of a number inside a constant such as -1.
func untyped(of types.Type) bool {
	basic, ok := of.(*types.Basic)
	return ok && basic.Info()&types.IsUntyped != 0
}

func isText(of types.Type) bool {
	basic, ok := of.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// otherOperators moves an edge by one and turns a condition around.
var otherOperators = map[token.Token][]string{
	token.LSS:  {"<=", ">="},
	token.LEQ:  {"<", ">"},
	token.GTR:  {">=", "<="},
	token.GEQ:  {">", "<"},
	token.EQL:  {"!="},
	token.NEQ:  {"=="},
	token.LAND: {"||"},
	token.LOR:  {"&&"},
	token.SUB:  {"+"},
	token.ADD:  {"-"},
}

var otherSeverity = map[string]string{"Error": "Warning", "Warning": "Error"}

func otherNumbers(text string) []string {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	if err != nil {
		return nil
	}
	if n == 0 {
		return []string{"1"}
	}
	return []string{strconv.FormatInt(n+1, 10), strconv.FormatInt(n-1, 10)}
}
