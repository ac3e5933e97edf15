// SPDX-License-Identifier: Apache-2.0

//go:build linux

package watch

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/agent/kubeapi"
	"github.com/queueworker/operator/internal/monitor"
)

// API is the one object of the cluster that a watcher reads and writes.
type API interface {
	Get(context.Context) (kubeapi.Object, error)
	Apply(context.Context, monitor.Status, monitor.Condition) error
}

// Watcher looks once per interval, judges, and tells.
type Watcher struct {
	Config monitor.Config
	Script *Script
	API    API // nil = there is no cluster to tell
	Log    io.Writer

	judgement           monitor.Judgement
	resumed             bool
	spoke               bool // the script has answered once
	ages                monitor.Ages
	failures            monitor.Failures
	complaints, earlier map[string]bool // of this look, and of the one before

	mu   sync.Mutex
	told told
}

// told is what the metrics are made of.
type told struct {
	snapshot  monitor.Snapshot
	state     monitor.State
	stored    *int64
	totals    []monitor.Failing
	lastLook  time.Time // the last line of the script
	ended     time.Time // the last look, answered or not
	restarts  map[Cause]int64
	writes    int64
	apiErrors int64
}

// Run looks until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	defer w.Script.Close()
	ticker := time.NewTicker(w.Config.Interval())
	defer ticker.Stop()
	for {
		w.Once(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Once is one look and what follows from it.
func (w *Watcher) Once(ctx context.Context) {
	w.earlier, w.complaints = w.complaints, map[string]bool{}
	record, err := w.Script.Look(ctx)
	if ctx.Err() != nil {
		return // it is over
	}
	now := time.Now()
	snapshot := monitor.Snapshot{At: now}
	if err != nil {
		snapshot.Unanswered = err.Error()
	} else {
		snapshot = w.ages.Complete(record.Snapshot(now))
		w.count(record, now)
	}
	object, known := w.object(ctx)
	if known && !w.resumed {
		w.resume(object, now)
	}
	w.resumed = w.resumed || known
	workers := monitor.Workers{}
	if known {
		workers = object.Workers()
	}
	before := w.judgement.State
	w.judgement = w.judgement.Next(snapshot, workers, w.Config.Thresholds())
	if w.judgement.State != before {
		w.logf("%s: %s", w.judgement.State, w.judgement.Message)
	}
	var failed []monitor.Failing
	if err == nil && record.Failed != nil {
		failed = w.failures.Recent(now)
	}
	w.spoke = w.spoke || err == nil
	// Before its first line an older monitor may still have more to say.
	wrote := known && w.spoke && w.write(ctx, object, monitor.StatusOf(w.judgement, snapshot, failed))
	w.tell(snapshot, record, err, wrote)
}

func (w *Watcher) count(record Record, now time.Time) {
	for _, t := range record.Troubles {
		w.complain(fmt.Errorf("%s cannot be asked: %s", t.What, t))
	}
	if record.Failed == nil {
		return
	}
	for _, c := range record.Failed.Counts {
		at := time.Unix(c.At, 0)
		if at.After(now) {
			at = now
		}
		w.failures.Add(c.Kind, c.Count, at, c.Before)
	}
}

func (w *Watcher) object(ctx context.Context) (object kubeapi.Object, known bool) {
	if w.API == nil {
		return object, false
	}
	object, err := w.API.Get(ctx)
	if err != nil {
		w.complain(err)
		w.failedRequest()
		return object, false
	}
	return object, true
}

// resume goes on where an earlier watcher ended, unless that is long ago.
func (w *Watcher) resume(object kubeapi.Object, now time.Time) {
	if last := object.Status.QueueState; last != nil && now.Sub(last.ObservedTime) < 2*monitor.Heartbeat && w.judgement.State == "" {
		w.judgement = monitor.Resume(last.State, last.Since)
	}
}

func (w *Watcher) write(ctx context.Context, object kubeapi.Object, status monitor.Status) bool {
	condition := monitor.ConditionOf(status, object.Consuming(), object.Metadata.Generation)
	last := object.Status.QueueState
	if last != nil && !status.Worth(*last) && !condition.Differs(object.Consuming()) {
		return false
	}
	if err := w.API.Apply(ctx, status, condition); err != nil {
		w.complain(err)
		w.failedRequest()
		return false
	}
	return true
}

func (w *Watcher) tell(snapshot monitor.Snapshot, record Record, err error, wrote bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.snapshot, w.told.state, w.told.totals = snapshot, w.judgement.State, w.failures.Totals()
	w.told.stored = nil
	w.told.ended = snapshot.At
	if err == nil {
		w.told.lastLook = snapshot.At
		if record.Failed != nil {
			w.told.stored = record.Failed.Stored
		}
	}
	w.told.restarts = map[Cause]int64{}
	for cause, n := range w.Script.Restarts {
		w.told.restarts[cause] = n
	}
	if wrote {
		w.told.writes++
	}
}

func (w *Watcher) failedRequest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.apiErrors++
}

// complain reports an error that may come again at every look, once.
func (w *Watcher) complain(err error) {
	text := err.Error()
	if !w.complaints[text] && !w.earlier[text] {
		w.logf("%s", text)
	}
	w.complaints[text] = true
}

func (w *Watcher) logf(format string, args ...any) {
	fmt.Fprintf(w.Log, "queueworker: "+format+"\n", args...)
}
