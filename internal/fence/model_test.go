// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"flag"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// full is the long profile, chosen by FENCE_MODEL=full.
var full = os.Getenv("FENCE_MODEL") == "full"

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the searches are all allocation
	debug.SetMemoryLimit(3 << 30)
	_ = flag.Set("rapid.nofailfile", "true")
	_ = flag.Set("rapid.seed", "1") // the short profile draws the same runs each time
	if full {
		_ = flag.Set("rapid.checks", "3000")
		_ = flag.Set("rapid.seed", "0")
	}
	os.Exit(m.Run())
}

// modelRuns are the worlds that must hold. Where limit is 0 the whole reachable
// space is visited.
type modelRun struct {
	setup setup
	limit int
}

func shortRuns() []modelRun {
	const near = 60_000
	return []modelRun{
		{setupD(2, 0), 0},
		{setupC(2, 0), 0},
		{setupStrict(1, 0), 0},
		{retention(), near},
		{named("D, person", with(setupD(2, 0), onePerson)), near},
		{named("A, narrow", keyedOnly(kindA(), 422)), near},
		{named("B, narrow", keyedOnly(kindB(), 422)), near},
		{named("A, three copies", setupA(3, 2)), near},
		{named("B, three copies", setupB(3, 2)), near},
		{named("C, three copies", setupC(3, 2)), near},
		{named("D, three copies", setupD(3, 2)), near},
		{named("A with lookup, fault", keyedWithLookup("A", kindA(), 2, 1)), near},
		{named("B with lookup, fault", keyedWithLookup("B", kindB(), 2, 1)), near},
	}
}

// longRuns end with the largest. The last ones have a limit, which their names
// show.
func longRuns() []modelRun {
	const part = 12_000_000
	return []modelRun{
		{named("D, two copies", setupD(2, 0)), 0},
		{named("D, two copies, fault", setupD(2, 1)), 0},
		{named("D, two copies, person", with(setupD(2, 0), onePerson)), 0},
		{named("C, two copies", setupC(2, 0)), 0},
		{named("C-strict, two copies", setupStrict(2, 0)), 0},
		{named("retention, two copies", retention()), 0},
		{named("A, one copy, fault", setupA(1, 1)), 0},
		{named("B, two copies", setupB(2, 0)), 0},
		{named("A, two copies", setupA(2, 0)), 0},
		{named("D, three copies", setupD(3, 0)), 0},
		{named("D, two copies, two faults", setupD(2, 2)), 0},
		{named("C, two copies, fault", setupC(2, 1)), 0},
		{named("B with lookup, two copies", keyedWithLookup("B", kindB(), 2, 0)), 0},
		{named("B, two copies, fault", setupB(2, 1)), 0},
		{named("A with lookup, two copies, first 12 million", keyedWithLookup("A", kindA(), 2, 0)), part},
		{named("A, two copies, fault, first 12 million", setupA(2, 1)), part},
	}
}

func onePerson(s *setup) { s.persons = 1 }

func named(name string, s setup) setup {
	s.name = name
	return s
}

func TestProtocolHolds(t *testing.T) {
	for _, run := range shortRuns() {
		t.Run(run.setup.name, func(t *testing.T) {
			t.Parallel()
			limit := run.limit
			if limit == 0 {
				limit = 1 << 40
			}
			e := explore(&run.setup, limit, 64)
			t.Log(e)
			switch {
			case e.harm != "":
				t.Error("the protocol is broken")
			case run.limit == 0 && !e.complete:
				t.Error("the space was not visited as a whole")
			}
		})
	}
}

// TestProtocolHoldsEverywhere is the long profile: one space after the other,
// on one core and within 4 GB.
func TestProtocolHoldsEverywhere(t *testing.T) {
	if !full {
		t.Skip("FENCE_MODEL=full visits whole spaces")
	}
	for _, run := range longRuns() {
		t.Run(run.setup.name, func(t *testing.T) {
			c := cover(&run.setup, run.limit, 64)
			t.Log(c)
			switch {
			case c.harm != "":
				t.Error("the protocol is broken")
			case run.limit == 0 && !c.complete:
				t.Error("the space was not visited as a whole")
			}
		})
	}
}

// TestCoverSeesWhatExploreSees: the same states in another order, and harm where
// there is one.
func TestCoverSeesWhatExploreSees(t *testing.T) {
	t.Parallel()
	d := setupD(2, 0)
	e, c := explore(&d, 1<<40, 0), cover(&d, 0, 0)
	if e.states != c.states || !c.complete || c.harm != "" {
		t.Errorf("explored %v\ncovered %v", e, c)
	}
	late := setupC(2, 0)
	late.kind.inFlight += 3 // a request that acts after its declared time
	if c := cover(&late, 0, 0); !strings.HasPrefix(c.harm, "I") || c.complete || len(c.story) == 0 {
		t.Errorf("a request that acts late does no harm: %v", c)
	}
}

func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.id, func(t *testing.T) {
			t.Parallel()
			s := m.in
			s.mutant = &m
			liveness := 0 // costs most of the time, and only one mutant breaks it
			if !s.sweeper {
				liveness = 1
			}
			e := explore(&s, 2_000_000, liveness)
			t.Log(m.wrong, e)
			if e.harm == "" {
				t.Errorf("not caught: %s", m.wrong)
			}
		})
	}
}

// TestHarmlessAlone: a 409 taken for a refusal does no harm as long as a
// refusal under doubt is not final. It is wrong all the same, see mutant 16.
func TestHarmlessAlone(t *testing.T) {
	t.Parallel()
	s := keyedOnly(kindB(), 409)
	s.mutant = &mutant{event: heardAs(409, 422)}
	limit := 60_000
	if full {
		limit = 2_000_000
	}
	if e := explore(&s, limit, 0); e.harm != "" {
		t.Error(e)
	}
}
