// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Problem is one reason why a table cannot serve, and how to mend it.
type Problem struct {
	What string
	Fix  string // a statement to run, or "" where there is none
}

// Unfit is the error of a table that lacks something.
type Unfit struct {
	Table    Table
	Problems []Problem
}

func (u *Unfit) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the fence table %s cannot be used:", u.Table)
	for _, p := range u.Problems {
		fmt.Fprintf(&b, "\n- %s", p.What)
		if p.Fix != "" {
			fmt.Fprintf(&b, "; run: %s", p.Fix)
		}
	}
	return b.String()
}

// Add notes a problem.
func (u *Unfit) Add(fix, what string, args ...any) {
	u.Problems = append(u.Problems, Problem{fmt.Sprintf(what, args...), fix})
}

// OrNil is u where something is wrong.
func (u *Unfit) OrNil() error {
	if len(u.Problems) == 0 {
		return nil
	}
	return u
}

// Index is a unique index as the database describes it.
type Index struct {
	Name    string
	Columns []string
}

// JudgeIndexes wants a unique index on the key, whose name it returns, and none
// that could make a claim collide with the row of another key.
func (u *Unfit) JudgeIndexes(unique []Index, create string) (key string) {
	for _, index := range unique {
		switch {
		case len(index.Columns) == 2 && slices.Contains(index.Columns, "scope") && slices.Contains(index.Columns, "idem_key"):
			key = index.Name
		case slices.ContainsFunc(index.Columns, func(name string) bool { return slices.Contains(Columns, name) }):
			u.Add("", "the unique index %s on (%s) would let one key refuse another", index.Name, strings.Join(index.Columns, ", "))
		}
	}
	if key == "" {
		u.Add(create, "no unique index on (scope, idem_key): two calls could both own one key")
	}
	return key
}

// ProbeWrites runs each kind of statement so that it changes no row, to learn
// now what the user is not allowed to do.
func (u *Unfit) ProbeWrites(ctx context.Context, conn Conn, d Dialect, grant string) {
	t := u.Table.Quoted(d)
	probes := []struct{ kind, sql string }{
		{"SELECT", fmt.Sprintf("SELECT %s FROM %s WHERE 1 = 0", columnList, t)},
		{"INSERT", fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE 1 = 0", t, columnList, columnList, t)},
		{"UPDATE", fmt.Sprintf("UPDATE %s SET attempt = attempt WHERE 1 = 0", t)},
		{"DELETE", fmt.Sprintf("DELETE FROM %s WHERE 1 = 0", t)},
	}
	for _, p := range probes {
		var err error
		if p.kind == "SELECT" {
			err = conn.Query(ctx, p.sql, nil, func(func(...any) error) error { return nil })
		} else {
			_, err = conn.Exec(ctx, p.sql, nil)
		}
		if err != nil {
			u.Add(grant, "the user may not %s: %v", p.kind, err)
		}
	}
}
