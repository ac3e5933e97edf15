// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/fence"
)

// GuardMutants drops one condition of one statement at a time and wants Guards
// to see each of them. texts are the statements; open gives a store over a
// fresh table that runs every text as rewrite leaves it.
func GuardMutants(t *testing.T, texts map[fence.Op]string, open func(t *testing.T, rewrite func(sql string) string) Opened) {
	n := 0
	for op, text := range texts {
		if op == fence.OpClaim {
			continue
		}
		set, where, _ := strings.Cut(text, " WHERE ")
		conditions := strings.Split(where, " AND ")
		for i, dropped := range conditions {
			n++
			t.Run(op.String()+" without "+dropped, func(t *testing.T) {
				rest := append([]string(nil), conditions...)
				rest[i] = "(1 = 1 OR " + dropped + ")" // its parameter stays
				mutant := set + " WHERE " + strings.Join(rest, " AND ")
				o := open(t, func(sql string) string { return strings.Replace(sql, text, mutant, 1) })
				if !o.seesWrong(t, op) {
					t.Error("not refused")
				}
			})
		}
	}
	t.Logf("%d mutants of %d statements", n, len(texts)-1)
}

func (o Opened) seesWrong(t *testing.T, op fence.Op) bool {
	t.Helper()
	if o.tryOthers(t, op) != "" {
		return true
	}
	for _, s := range situations() {
		if o.tryGuard(t, op, s) != "" {
			return true
		}
	}
	return false
}
