// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// way is what a run consists of.
type way string

const (
	calls  way = "call"   // the job calls a provider through the fence
	claims way = "claim"  // the job works itself, under a claim
	sweeps way = "upkeep" // the job came once and comes no more
)

// ofUpkeep begins the names of the upkeep's points.
const ofUpkeep = "upkeep: "

// faultsAt are the faults that mean something at a point.
func faultsAt(point string) []fault {
	faults := []fault{killFence}
	if !strings.HasPrefix(point, ofUpkeep) {
		faults = append(faults, killClient)
	}
	statement, isBefore := strings.CutPrefix(strings.TrimPrefix(point, ofUpkeep), "before ")
	isStatement := isBefore && !slices.Contains([]string{"send", "lookup", "answer"}, statement)
	if isStatement {
		faults = append(faults, cutDatabase, loseReply)
	}
	if isStatement && statement != "read" {
		faults = append(faults, lateStatement)
	}
	if slices.Contains(standstills, point) {
		faults = append(faults, freeze)
	}
	return faults
}

// standstills are the points at which what a fence knows can grow old.
var standstills = []string{
	"after claim", "after reclaim", "after resend", "before send", "connected",
	ofUpkeep + "found", ofUpkeep + "lookup read",
}

// everyPoint must be hit in each database.
var everyPoint = map[way][]string{
	calls: {
		"request", "before claim", "after claim", "before reclaim", "after reclaim", "before resend", "after resend",
		"before expire", "after expire", "before effect", "after effect", "before refuse", "after refuse",
		"before release", "after release", "before unknown", "after unknown", "before absent", "after absent",
		"before refuse by lookup", "after refuse by lookup", "before note", "after note", "before park", "after park",
		"before read", "after read", "before send", "connected", "send written", "after send", "send read",
		"before lookup", "lookup written", "after lookup", "lookup read", "before answer", "answered",
	},
	claims: {
		"request", "before claim", "after claim", "before reclaim", "after reclaim", "before expire", "after expire",
		"before effect", "after effect", "before release", "after release", "before unknown", "after unknown",
		"before absent", "after absent", "before park", "after park", "before read", "after read", "before answer", "answered",
	},
	sweeps: {
		ofUpkeep + "found", ofUpkeep + "before expire", ofUpkeep + "after expire",
		ofUpkeep + "before lookup", ofUpkeep + "lookup written", ofUpkeep + "after lookup", ofUpkeep + "lookup read",
		ofUpkeep + "before effect", ofUpkeep + "after effect", ofUpkeep + "before refuse by lookup", ofUpkeep + "after refuse by lookup",
		ofUpkeep + "before absent", ofUpkeep + "after absent", ofUpkeep + "before note", ofUpkeep + "after note",
		ofUpkeep + "before park", ofUpkeep + "after park",
	},
}

// ways in the order in which they are shown.
var ways = []way{calls, claims, sweeps}

// orphan is where a first fence dies in cells about leases that end.
const orphan = "after claim"

// beginnings are what can happen in a run without a fault.
func beginnings() []cell {
	var all []cell
	for _, k := range kinds {
		if k.claims {
			for _, b := range []behaviour{works, diesBefore, diesAfter, worksLate, declines, cannotTell} {
				all = append(all, cell{way: claims, kind: k, first: b})
			}
			for _, b := range []behaviour{diesBefore, worksLate, cannotTell} {
				all = append(all, cell{way: sweeps, kind: k, first: b})
			}
			continue
		}
		for _, b := range behaviours {
			all = append(all, cell{way: calls, kind: k, first: b})
		}
		for _, b := range []behaviour{acts, neverArrives, actsLate, refuses, fails} {
			all = append(all, cell{way: sweeps, kind: k, first: b, orphan: "send written"})
		}
		all = append(all, cell{way: sweeps, kind: k, first: acts, orphan: orphan})
	}
	return all
}

// quietCells are runs without a fault, to learn which points there are. Where a
// second copy brings no new ones, it is left out.
func quietCells(databases int) []cell {
	var cells []cell
	for _, c := range beginnings() {
		for c.store = range databases {
			for c.copies = 1; c.copies <= 2; c.copies++ {
				c.fault = none
				if c.way == calls || c.copies == 1 {
					cells = append(cells, c)
				}
			}
		}
	}
	return cells
}

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
				if c.way != calls {
					c.copies = 2
					cells = append(cells, c)
				}
			}
		}
		for _, point := range slices.Sorted(maps.Keys(from.points)) {
			if from.way != sweeps || strings.HasPrefix(point, ofUpkeep) {
				add(point, from.orphan)
			}
		}
		if from.way == calls {
			add("before expire", orphan)
			add("after expire", orphan)
		}
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
