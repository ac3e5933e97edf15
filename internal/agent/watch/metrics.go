// SPDX-License-Identifier: Apache-2.0

//go:build linux

package watch

import (
	"net/http"
	"time"

	"github.com/queueworker/operator/internal/agent/exposition"
	"github.com/queueworker/operator/internal/monitor"
)

// missed is after how many intervals without a look the watcher is not ready.
const missed = 3

// Handler serves the metrics and the readiness.
func (w *Watcher) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", exposition.ContentType)
		_, _ = out.Write(w.metrics())
	})
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		answered, ended := w.told.lastLook, w.told.ended
		w.mu.Unlock()
		// One that has worked and now says that nobody answers is needed more than ever.
		if answered.IsZero() || time.Since(ended) > missed*w.Config.Interval()+DefaultPatience {
			http.Error(out, "no look at the queues has ended for a while", http.StatusServiceUnavailable)
			return
		}
		_, _ = out.Write([]byte("ok\n"))
	})
	return mux
}

func (w *Watcher) metrics() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := exposition.New("queueworker", w.Config.Name)
	if w.told.state == "" {
		return t.Bytes() // nothing is known yet
	}
	if w.told.snapshot.Unanswered == "" {
		writeQueues(t, w.told.snapshot.Queues)
	}
	t.Family("queueworker_queue_state", exposition.Gauge, "1 for the state that holds.")
	for _, state := range monitor.States() {
		t.Sample("queueworker_queue_state", truth(state == w.told.state), "state", string(state))
	}
	t.Family("queueworker_failed_jobs_total", exposition.Counter, "Jobs that failed since the monitor began.")
	for _, f := range w.told.totals {
		t.Sample("queueworker_failed_jobs_total", float64(f.Count), "class", f.Class, "error", f.Error)
	}
	if w.told.stored != nil {
		t.Family("queueworker_failed_jobs_stored", exposition.Gauge, "Failed jobs in the application's store, 100000 standing for more.")
		t.Sample("queueworker_failed_jobs_stored", float64(*w.told.stored))
	}
	w.writeSelf(t)
	return t.Bytes()
}

// writeQueues writes what is known, and leaves out what is not.
func writeQueues(t *exposition.Text, queues []monitor.Queue) {
	t.Family("queueworker_queue_jobs", exposition.Gauge, "Jobs of a queue; each is in one status.")
	for _, q := range queues {
		for _, of := range []struct {
			status string
			n      *int64
		}{{"ready", q.Ready}, {"delayed", q.Delayed}, {"due", q.Due}, {"reserved", q.Reserved}, {"expired", q.Expired}} {
			if of.n != nil {
				t.Sample("queueworker_queue_jobs", float64(*of.n), "queue", q.Name, "status", of.status)
			}
		}
	}
	t.Family("queueworker_queue_depth", exposition.Gauge, "Jobs to be worked off by now: ready, due, reserved and expired.")
	for _, q := range queues {
		t.Sample("queueworker_queue_depth", float64(q.Depth()), "queue", q.Name)
	}
	t.Family("queueworker_queue_oldest_seconds", exposition.Gauge, "How long the first waiting job could have been taken.")
	for _, q := range queues {
		switch {
		case q.Oldest != nil:
			t.Sample("queueworker_queue_oldest_seconds", *q.Oldest, "queue", q.Name)
		case q.Waiting() == 0: // nobody waits
			t.Sample("queueworker_queue_oldest_seconds", 0, "queue", q.Name)
		}
	}
}

// writeSelf writes what the monitor knows of itself.
func (w *Watcher) writeSelf(t *exposition.Text) {
	t.Family("queueworker_monitor_up", exposition.Gauge, "Whether the last look was answered.")
	t.Sample("queueworker_monitor_up", truth(w.told.snapshot.Unanswered == ""))
	t.Family("queueworker_monitor_last_look_timestamp_seconds", exposition.Gauge, "When the script last answered.")
	if !w.told.lastLook.IsZero() {
		t.Sample("queueworker_monitor_last_look_timestamp_seconds", float64(w.told.lastLook.UnixMilli())/1000)
	}
	t.Family("queueworker_monitor_script_restarts_total", exposition.Counter, "Ends of the script that looks, by cause.")
	for _, cause := range Causes() {
		t.Sample("queueworker_monitor_script_restarts_total", float64(w.told.restarts[cause]), "cause", string(cause))
	}
	t.Family("queueworker_monitor_status_writes_total", exposition.Counter, "Writes of the QueueWorker's status.")
	t.Sample("queueworker_monitor_status_writes_total", float64(w.told.writes))
	t.Family("queueworker_monitor_api_errors_total", exposition.Counter, "Requests that the API server refused or did not answer.")
	t.Sample("queueworker_monitor_api_errors_total", float64(w.told.apiErrors))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
