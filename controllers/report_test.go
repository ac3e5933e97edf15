// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A status may be held back for a second; the metrics tell at once, and nothing
// of a QueueWorker that is gone.
func TestMetricsTellWhatTheStatusWill(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.counters(1)
	w.clock.SetTime(w.clock.Now().Add(300 * time.Millisecond))
	w.reconcile()
	if w.statuses != 1 {
		t.Fatalf("%d statuses: nothing was held back", w.statuses)
	}
	w.expectWorkers(`
# HELP queueworker_workers Workers of a QueueWorker by state: wanted; ready; draining, that is asked to stop and still there.
# TYPE queueworker_workers gauge
queueworker_workers{name="mail",namespace="shop",state="draining"} 0
queueworker_workers{name="mail",namespace="shop",state="ready"} 1
queueworker_workers{name="mail",namespace="shop",state="wanted"} 2
`)
	if err := w.client.Delete(context.Background(), w.worker()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.expectWorkers("")
}

func (w *world) expectWorkers(text string) {
	w.t.Helper()
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(text), "queueworker_workers"); err != nil {
		w.t.Error(err)
	}
}
