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

func TestMonitorDefaults(t *testing.T) {
	off, retryAfter, long := false, int32(90), int32(31_536_000)
	for name, tc := range map[string]struct {
		spec      QueueWorkerSpec
		monitored bool
		enabled   bool
		stuck     int64
	}{
		"nothing declared":    {QueueWorkerSpec{Timeouts: Timeouts{JobSeconds: 30, RetryAfterSeconds: &retryAfter}}, true, true, 270},
		"the job is longer":   {QueueWorkerSpec{Timeouts: Timeouts{JobSeconds: 100, RetryAfterSeconds: &retryAfter}}, true, true, 300},
		"no reservation":      {QueueWorkerSpec{Timeouts: Timeouts{JobSeconds: 60}}, true, true, 180},
		"the longest allowed": {QueueWorkerSpec{Timeouts: Timeouts{JobSeconds: 1, RetryAfterSeconds: &long}}, true, true, 31_536_000},
		"declared":            {QueueWorkerSpec{Timeouts: Timeouts{JobSeconds: 30}, Monitor: Monitor{StuckAfterSeconds: &retryAfter}}, true, true, 90},
		"off":                 {QueueWorkerSpec{Monitor: Monitor{Enabled: &off}}, false, false, 0},
		"no app to ask":       {QueueWorkerSpec{Runtime: RuntimeGeneric}, false, true, 0},
	} {
		if got := tc.spec.Monitored(); got != tc.monitored {
			t.Errorf("%s: monitored %t", name, got)
		}
		if got := tc.spec.MonitorEnabled(); got != tc.enabled {
			t.Errorf("%s: enabled %t", name, got)
		}
		if got := tc.spec.EffectiveStuckAfter(); got != tc.stuck {
			t.Errorf("%s: stuck after %d, want %d", name, got, tc.stuck)
		}
	}
}
