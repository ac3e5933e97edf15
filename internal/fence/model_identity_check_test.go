// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestEqualWorldsGoOnAlike: where two worlds count as one, the same may follow
// from both. Otherwise the explorer would leave out what only the second one
// can do. A sample of the duplicates, over the whole space, is compared with
// the worlds that stood for them.
func TestEqualWorldsGoOnAlike(t *testing.T) {
	limit, sample := 60_000, uint64(16)
	if full {
		limit, sample = 1_000_000, 8
	}
	for _, s := range []setup{
		setupA(2, 1), setupB(2, 1), setupC(2, 1), named("D, person", with(setupD(2, 1), onePerson)), setupStrict(2, 0), retention(),
		keyedWithLookup("A", kindA(), 2, 1), keyedWithLookup("B", kindB(), 2, 1),
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			start := newWorld(&s)
			seen := map[uint64]bool{start.identity(): true}
			known := map[uint64][]uint64{}
			todo := []*world{start}
			compared := 0
			for len(todo) > 0 && len(seen) < limit {
				from := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				for _, a := range from.possible() {
					w := from.clone()
					a.do(w)
					id := w.identity()
					if !seen[id] && w.goesOn() {
						todo = append(todo, w)
					}
					seen[id] = true
					if id%sample != 0 {
						continue
					}
					after, other := known[id], w.following()
					known[id] = other
					if after == nil {
						continue
					}
					compared++
					if !slices.Equal(after, other) {
						t.Fatalf("after %s: %d of %d worlds that may follow are others\n%s", a, differing(after, other), len(after), w.details())
					}
				}
			}
			if compared < 1000 {
				t.Errorf("only %d worlds were reached twice", compared)
			}
			t.Logf("%d states, %d compared", len(seen), compared)
		})
	}
}

// following is the set of worlds that may come next.
func (w *world) following() []uint64 {
	next := map[uint64]bool{}
	for _, a := range w.possible() {
		c := w.clone()
		a.do(c)
		next[c.identity()] = true
	}
	return slices.Sorted(maps.Keys(next))
}

func differing(a, b []uint64) int {
	n := 0
	for _, id := range a {
		if !slices.Contains(b, id) {
			n++
		}
	}
	return n
}

func (w *world) details() string {
	text := fmt.Sprintf("now %d, row %+v, records %v, orphans %v", w.now, w.row, w.records, w.orphans)
	for _, a := range w.actors {
		if a != nil {
			text += fmt.Sprintf("\n%+v", a)
		}
	}
	return text
}
