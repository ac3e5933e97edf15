// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Dialect holds the words in which databases differ.
type Dialect struct {
	Param   func(n int) string         // the n-th parameter, from 1
	Now     string                     // the database's clock, fixed during one statement
	Plus    func(micros string) string // Now + so many microseconds
	TimeArg func(t time.Time) any      // a time as a parameter
	Quote   func(identifier string) string
	// Hidden keeps the planner from using a column's index: a guard's row must
	// be found by its key, however few rows are in the wanted state.
	Hidden func(column string) string
	// First is the number of a key's first attempt, 1, as a claim's INSERT has
	// it. Where no conflict clause names the key's index it does, so that a
	// claim fails once that is gone. Empty: 1.
	First  string
	Claim  func(insert, columns, readAt string, t Table, d Dialect) string // see Store.Claim
	Forget func(where string, limit string, t Table, d Dialect) string
}

// Conn runs one statement in a transaction of its own.
type Conn interface {
	// Exec returns how many rows the statement's condition matched.
	Exec(ctx context.Context, sql string, args []any) (matched int64, err error)
	// Query calls each for every row. A row may be scanned more than once; a
	// value whose destination is nil is left out.
	Query(ctx context.Context, sql string, args []any, each func(scan func(dest ...any) error) error) error
	// Transient reports whether the database rolled the statement back and
	// asks to run it again (deadlock, serialization, busy).
	Transient(err error) bool
}

// Table is a validated table name, with or without a schema.
type Table struct {
	Schema string // "" = the connection's own
	Name   string
}

// identifier is kept to what every database accepts without surprises, and
// leaves room for the names that are derived from a table's.
const identifier = `[a-z_][a-z0-9_]{0,47}`

// TablePattern is what a table's name must match.
const TablePattern = `^(` + identifier + `[.])?` + identifier + `$`

var tableName = regexp.MustCompile(TablePattern)

// ParseTable accepts "name" and "schema.name".
func ParseTable(text string) (Table, error) {
	if !tableName.MatchString(text) {
		return Table{}, fmt.Errorf(
			"table name %q: want name or schema.name, of lower-case letters, digits and underscores, not starting with a digit, at most 48 characters each", text)
	}
	if schema, name, dotted := strings.Cut(text, "."); dotted {
		return Table{Schema: schema, Name: name}, nil
	}
	return Table{Name: text}, nil
}

func (t Table) String() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Quoted is the name as it stands in a statement.
func (t Table) Quoted(d Dialect) string {
	if t.Schema == "" {
		return d.Quote(t.Name)
	}
	return d.Quote(t.Schema) + "." + d.Quote(t.Name)
}

// With returns a table beside this one.
func (t Table) With(suffix string) Table { return Table{Schema: t.Schema, Name: t.Name + suffix} }
