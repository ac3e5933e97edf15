// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"testing"

	"github.com/queueworker/operator/internal/fence"
)

// TestNoTwoKeysAreSentAlike: to a provider, a key of the app is never a later
// generation of another one.
func TestNoTwoKeysAreSentAlike(t *testing.T) {
	sent := map[string]fence.Row{}
	for _, id := range []string{
		"order", "order~", "order~0", "order~1", "order~01", "order~10", "order~1~", "order~1~0", "order~1~1", "order~0~1",
		"order~x1", "order~1x", "~", "~1", "~1~1", "1", "order~-1", "order~1.0",
	} {
		for generation := range 12 {
			row := fence.Row{Key: fence.Key{ID: id}, Generation: generation}
			if other, taken := sent[row.SentKey()]; taken {
				t.Errorf("%q is sent for %q in generation %d and for %q in generation %d",
					row.SentKey(), id, generation, other.Key.ID, other.Generation)
			}
			sent[row.SentKey()] = row
		}
	}
	for id, want := range map[string]string{"order": "order", "order~1": "order~1~0", "order~x": "order~x", "~": "~"} {
		if got := (fence.Row{Key: fence.Key{ID: id}}).SentKey(); got != want {
			t.Errorf("%q is sent as %q, want %q", id, got, want)
		}
	}
}
