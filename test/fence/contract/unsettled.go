// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// unsettled: people see what nobody knows, and no claim that is at work.
func unsettled(t *testing.T, o Opened) {
	reviewer, ok := o.Store.(fence.Reviewer)
	if !ok {
		t.Fatalf("%T tells people nothing", o.Store)
	}
	now := time.Now().UTC()
	want := map[string]bool{}
	var counted fence.Census
	for i, s := range situations() {
		row := s.row(fence.Key{Scope: scope, ID: fmt.Sprintf("unsettled-%d", i)}, now)
		o.put(t, row)
		switch {
		case s.state == fence.NeedsReview:
			counted.NeedsReview++
		case s.state == fence.Unknown || s.state == fence.Claimed && s.leaseOver:
			counted.Unknown++
		case s.state == fence.Claimed:
			counted.Claimed++
			continue
		default:
			continue
		}
		want[row.Key.ID] = true
	}
	oldest := situation{state: fence.NeedsReview}.row(fence.Key{Scope: "other", ID: "oldest"}, now)
	oldest.LeaseUntil = now.Add(-90 * time.Hour)
	o.put(t, oldest)

	rows, err := reviewer.Unsettled(t.Context(), fence.Unsettled{Limit: 10_000})
	if err != nil || len(rows) == 0 || rows[0].Key != oldest.Key || len(rows) != len(want)+1 {
		t.Fatalf("%d rows of all scopes, want %d (%v)", len(rows), len(want)+1, err)
	}
	rows, err = reviewer.Unsettled(t.Context(), fence.Unsettled{Scope: scope, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !want[row.Key.ID] || row.ReadAt.IsZero() {
			t.Errorf("%s is settled or at work, read at %s", row.Key.ID, row.ReadAt)
		}
		delete(want, row.Key.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d rows were not found", len(want))
	}
	if rows, err = reviewer.Unsettled(t.Context(), fence.Unsettled{Scope: scope, Limit: 3}); len(rows) != 3 || err != nil {
		t.Errorf("at most 3, and there are %d (%v)", len(rows), err)
	}
	census(t, reviewer, counted)
}

func census(t *testing.T, reviewer fence.Reviewer, want fence.Census) {
	t.Helper()
	got, err := reviewer.Census(t.Context(), scope)
	if err != nil || got.Claimed != want.Claimed || got.Unknown != want.Unknown || got.NeedsReview != want.NeedsReview {
		t.Errorf("counted %+v, want %+v (%v)", got, want, err)
	}
	other, err := reviewer.Census(t.Context(), "other")
	if err != nil || other.NeedsReview != 1 || other.OldestUnknown != 0 || other.OldestReview < 90*time.Hour || other.OldestReview > 91*time.Hour {
		t.Errorf("counted %+v of another scope (%v)", other, err)
	}
}
