// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

func TestPeopleDecide(t *testing.T) {
	parked := fence.Row{State: fence.NeedsReview, Token: fence.Token{1}, QuietUntil: epoch, Generation: 1}
	done, err := fence.ResolveDone(parked, "ann", "seen in the dashboard", fence.Response{ProviderID: "ch_1"})
	if err != nil {
		t.Fatal(err)
	}
	if row, ok := fence.Apply(parked, done, epoch); !ok || row.State != fence.Done || row.Outcome != fence.Effect || row.SettledWho != "ann" || row.Reason != "seen in the dashboard" || row.SettledBy != fence.ByPerson {
		t.Errorf("%t %+v", ok, row)
	}
	for _, force := range []bool{false, true} {
		free, err := fence.ResolveReleased(parked, "ann", "no charge in the dashboard", force)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := fence.Apply(parked, free, epoch); ok != force {
			t.Errorf("at the last moment before quiet, force %t: applied %t", force, ok)
		}
		row, ok := fence.Apply(parked, free, epoch.Add(time.Microsecond))
		if !ok || row.State != fence.Released || row.Generation != 2 || row.Reason == "" {
			t.Errorf("quiet, force %t: %t %+v", force, ok, row)
		}
		if _, ok := fence.Apply(fence.Row{State: fence.NeedsReview, Token: fence.Token{2}}, free, epoch.Add(time.Hour)); ok {
			t.Error("a person's word about one attempt was taken for another")
		}
	}
}

func TestPeopleSayWhoAndWhy(t *testing.T) {
	for _, response := range []fence.Response{{}, {Body: []byte("x")}} {
		if _, err := fence.ResolveDone(fence.Row{}, "ann", "why", response); err == nil {
			t.Errorf("done with %+v", response)
		}
	}
	for _, c := range [][2]string{{"", "why"}, {"ann", ""}} {
		if _, err := fence.ResolveReleased(fence.Row{}, c[0], c[1], true); err == nil {
			t.Errorf("released by %q because %q", c[0], c[1])
		}
		if _, err := fence.ResolveDone(fence.Row{}, c[0], c[1], fence.Response{Status: 200}); err == nil {
			t.Errorf("done by %q because %q", c[0], c[1])
		}
	}
}
