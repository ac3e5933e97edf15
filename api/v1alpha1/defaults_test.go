// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"math"
	"slices"
	"testing"
)

func TestEffectiveBackoff(t *testing.T) {
	for _, tc := range []struct {
		tries int32
		want  []int32
	}{
		{math.MinInt32, []int32{10, 60}}, {-1, []int32{10, 60}}, // the schema refuses them, but nothing may panic
		{0, []int32{10, 60}}, {1, nil}, {2, []int32{10}}, {3, []int32{10, 60}}, {math.MaxInt32, []int32{10, 60}},
	} {
		spec := QueueWorkerSpec{Retries: Retries{Tries: &tc.tries}}
		if got := spec.EffectiveBackoff(); !slices.Equal(got, tc.want) {
			t.Errorf("tries %d: backoff %v, want %v", tc.tries, got, tc.want)
		}
	}
}
