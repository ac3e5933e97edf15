// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// faultsAt are the faults that mean something at a point.
func faultsAt(point string) []fault {
	faults := []fault{killFence, killClient}
	statement, isBefore := strings.CutPrefix(point, "before ")
	isStatement := isBefore && !slices.Contains([]string{"send", "lookup", "answer"}, statement)
	if isStatement {
		faults = append(faults, cutDatabase, loseReply)
	}
	if isStatement && statement != "read" {
		faults = append(faults, lateStatement)
	}
	if slices.Contains([]string{"after claim", "after reclaim", "after resend", "before send", "connected"}, point) {
		faults = append(faults, freeze)
	}
	return faults
}

// everyPoint must be hit in each database.
var everyPoint = []string{
	"request", "before claim", "after claim", "before reclaim", "after reclaim", "before resend", "after resend",
	"before expire", "after expire", "before effect", "after effect", "before refuse", "after refuse",
	"before release", "after release", "before unknown", "after unknown", "before absent", "after absent",
	"before refuse by lookup", "after refuse by lookup", "before note", "after note", "before park", "after park",
	"before read", "after read", "before send", "connected", "send written", "after send", "send read",
	"before lookup", "lookup written", "after lookup", "lookup read", "before answer", "answered",
}

// quietCells are runs without a fault, to learn which points there are.
func quietCells(databases int) []cell {
	var cells []cell
	for _, k := range kinds {
		for _, b := range behaviours {
			for store := range databases {
				for copies := 1; copies <= 2; copies++ {
					cells = append(cells, cell{kind: k, first: b, fault: none, store: store, copies: copies})
				}
			}
		}
	}
	return cells
}

// orphan is where a first fence dies in cells about leases that end.
const orphan = "after claim"

// cellsOf is the whole matrix: every fault at every point that a run without a
// fault has reached, and at the end of a lease, which takes an owner that died.
func cellsOf(runs []*run) []cell {
	var cells []cell
	for _, from := range runs {
		add := func(point, orphan string) {
			for _, f := range faultsAt(point) {
				c := from.cell
				c.point, c.fault, c.orphan = point, f, orphan
				cells = append(cells, c)
			}
		}
		for _, point := range slices.Sorted(maps.Keys(from.points)) {
			add(point, "")
		}
		add("before expire", orphan)
		add("after expire", orphan)
	}
	return cells
}

// sample takes n cells, by a seed, and returns those it leaves too. It begins
// with kills at each place and, where there is room, for each kind.
func sample(cells []cell, n int, seed uint64) (chosen, left []cell) {
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	if n >= len(cells) {
		return cells, nil
	}
	type corner struct {
		place
		kind string
	}
	of := func(c cell) corner {
		if n > 1000 {
			return corner{c.place(), c.kind.name}
		}
		return corner{c.place(), ""}
	}
	const each = 3
	seen := map[corner]int{}
	for _, c := range cells {
		if c.fault == killFence && seen[of(c)] < each {
			seen[of(c)]++
			chosen = append(chosen, c)
			continue
		}
		left = append(left, c)
	}
	more := max(0, n-len(chosen))
	return append(chosen, left[:more]...), left[more:]
}

// oneOfEach takes one of the cells for each place.
func oneOfEach(places []place, cells []cell) (chosen, left []cell) {
	wanted := map[place]bool{}
	for _, p := range places {
		wanted[p] = true
	}
	for _, c := range cells {
		if wanted[c.place()] {
			wanted[c.place()] = false
			chosen = append(chosen, c)
			continue
		}
		left = append(left, c)
	}
	return chosen, left
}
