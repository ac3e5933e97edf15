// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queueworker/operator/internal/fence"
)

// The explorer visits every state that a setup can reach, nearest first, so a
// harm is reported with a shortest story.

type visit struct {
	parent uint64
	action uint16 // its place among those possible in the parent
}

type exploration struct {
	states   int
	depth    int
	complete bool
	harm     string
	story    []string
}

type frontier struct {
	w  *world
	id uint64
}

// explore stops at the first harm, or after limit states.
func explore(s *setup, limit int, liveness int) exploration {
	start := newWorld(s)
	id := start.identity()
	visited := map[uint64]visit{id: {}}
	first := id
	level := []frontier{{start, id}}
	var result exploration
	for depth := 0; len(level) > 0; depth++ {
		result.depth = depth
		var nextLevel []frontier
		for _, f := range level {
			for i, a := range f.w.possible() {
				w := f.w.clone()
				a.do(w)
				id := w.identity()
				if _, seen := visited[id]; seen && w.harm == "" {
					continue
				}
				visited[id] = visit{f.id, uint16(i)}
				harm := w.check()
				if harm == "" && liveness > 0 && id%uint64(liveness) == 0 {
					harm = w.settles()
				}
				if harm != "" {
					result.states, result.harm, result.story = len(visited), harm, story(s, visited, first, id)
					return result
				}
				if w.goesOn() {
					nextLevel = append(nextLevel, frontier{w, id})
				}
			}
			if len(visited) >= limit {
				result.states = len(visited)
				return result
			}
		}
		level = nextLevel
	}
	result.states, result.complete = len(visited), true
	return result
}

// goesOn bounds how often a key is released anew: a provider that knows keys
// takes each generation for another key.
func (w *world) goesOn() bool {
	return !w.s.kind.keyed || w.row.Generation <= w.s.maxGen
}

// story walks back to the start and plays the steps again.
func story(s *setup, visited map[uint64]visit, first, id uint64) []string {
	var path []uint16
	for id != first {
		path = append(path, visited[id].action)
		id = visited[id].parent
	}
	slices.Reverse(path)
	return replay(s, path)
}

// replay names the actions of a path from the start.
func replay(s *setup, path []uint16) []string {
	w := newWorld(s)
	var steps []string
	for _, i := range path {
		a := w.possible()[i]
		w = w.clone()
		a.do(w)
		steps = append(steps, a.String())
	}
	return steps
}

func (e exploration) String() string {
	text := fmt.Sprintf("%d states, depth %d, complete %t", e.states, e.depth, e.complete)
	if e.harm != "" {
		text += fmt.Sprintf("\n%s after %d steps:\n  %s", e.harm, len(e.story), strings.Join(e.story, "\n  "))
	}
	return text
}

// settles runs the world on with faults off and no new deliveries, and says
// which row stays unsettled (I9).
func (w *world) settles() string {
	if w.row.State == fence.NoRow {
		return ""
	}
	c := w.clone()
	c.faults, c.jumps = 0, 0
	k := c.s.kind
	horizon := c.now + 4*(k.inFlight+k.lag+k.keyLife+8)
	claimedSince := -1
	for c.now < horizon {
		c.calm()
		switch {
		case c.row.State != fence.Claimed:
			claimedSince = -1
		case claimedSince < 0:
			claimedSince = c.now
		case c.now-claimedSince > 4:
			return "I9: the row stays claimed"
		}
		c.tick()
	}
	switch c.row.State {
	case fence.Claimed, fence.Unknown:
		return fmt.Sprintf("I9: the row stays %s (resends %d, doubt %d)", c.row.State, c.row.Resends, c.row.Doubt)
	}
	return c.check()
}

// calm completes what is under way; copies vanish and only the sweeper works.
func (w *world) calm() {
	if w.late != nil {
		st := *w.late
		w.late = nil
		w.apply(st)
	}
	for i := range w.s.copies {
		if w.actors[i] != nil {
			w.remove(i)
		}
	}
	sweeper := w.s.copies
	for range 20 {
		if w.actors[sweeper] == nil && w.s.sweeper && w.sweepable() {
			w.sweep()
		}
		if w.actors[sweeper] == nil {
			return
		}
		var as actions
		w.actorActions(&as, sweeper, w.actors[sweeper])
		as[0].do(w)
	}
}
