// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Covering visits the same states as exploring, but keeps only a fingerprint of
// those that are behind, and goes on with the youngest of those ahead, which
// are then few. So tens of millions fit into little memory; the story of a harm
// is not a shortest one.

// fingerprints is a set of 64-bit numbers in one array; 0 is an empty place.
// Two states with one fingerprint would be taken for one: among n states that
// happens with a probability below n*n / 2^65.
type fingerprints struct {
	places []uint64
	n      int
}

func newFingerprints() *fingerprints { return &fingerprints{places: make([]uint64, 1<<16)} }

// add reports whether the fingerprint is new.
func (f *fingerprints) add(id uint64) bool {
	id = max(id, 1)
	if 4*f.n >= 3*len(f.places) {
		old := f.places
		f.places, f.n = make([]uint64, 2*len(old)), 0
		for _, id := range old {
			if id != 0 {
				f.add(id)
			}
		}
	}
	mask := uint64(len(f.places) - 1)
	at := id & mask
	for ; f.places[at] != 0; at = (at + 1) & mask {
		if f.places[at] == id {
			return false
		}
	}
	f.places[at] = id
	f.n++
	return true
}

// trail leads from a world back to the start; worlds share what they have in
// common.
type trail struct {
	before *trail
	action uint16
}

type ahead struct {
	w *world
	*trail
}

type coverage struct {
	exploration
	most int // worlds ahead at one time
	took time.Duration
}

// cover stops at the first harm, after limit states (0: none), or when all
// states were visited.
func cover(s *setup, limit, liveness int) coverage {
	began := time.Now()
	start := newWorld(s)
	seen := newFingerprints()
	seen.add(start.identity())
	todo := []ahead{{start, nil}}
	var c coverage
	for len(todo) > 0 && (limit == 0 || seen.n < limit) {
		c.most = max(c.most, len(todo))
		from := todo[len(todo)-1]
		todo[len(todo)-1] = ahead{}
		todo = todo[:len(todo)-1]
		for i, a := range from.w.possible() {
			w := from.w.clone()
			a.do(w)
			id := w.identity()
			if !seen.add(id) && w.harm == "" {
				continue
			}
			here := &trail{from.trail, uint16(i)}
			harm := w.check()
			if harm == "" && liveness > 0 && id%uint64(liveness) == 0 {
				harm = w.settles()
			}
			if harm != "" {
				c.harm, c.story = harm, replay(s, here.path())
				todo = nil
				break
			}
			if w.goesOn() {
				todo = append(todo, ahead{w, here})
			}
		}
	}
	c.states, c.complete, c.took = seen.n, len(todo) == 0 && c.harm == "", time.Since(began)
	return c
}

func (t *trail) path() []uint16 {
	var path []uint16
	for ; t != nil; t = t.before {
		path = append(path, t.action)
	}
	slices.Reverse(path)
	return path
}

func (c coverage) String() string {
	n := float64(c.states)
	text := fmt.Sprintf("%d states in %s (%.0f/s), complete %t; at most %d ahead; two taken for one with probability below %.0e",
		c.states, c.took.Round(time.Second), n/c.took.Seconds(), c.complete, c.most, n*n/math.Exp2(65))
	if c.harm != "" {
		text += fmt.Sprintf("\n%s after %d steps:\n  %s", c.harm, len(c.story), strings.Join(c.story, "\n  "))
	}
	return text
}
