// SPDX-License-Identifier: Apache-2.0

// Package tally counts what the workers of one pod have done. It is pure.
package tally

import (
	"maps"
	"slices"
	"time"

	"github.com/queueworker/operator/internal/agent/exposition"
	"github.com/queueworker/operator/internal/monitor"
)

// mostClasses is how many job classes are kept apart; the others are "other".
const mostClasses = 50

const other = "other"

// Result is how a run of a job ended.
type Result string

// The results.
const (
	Processed Result = "processed" // done
	Failed    Result = "failed"    // failed for good
	Exception Result = "exception" // threw, and goes back to the queue
	Released  Result = "released"  // went back to the queue by its own wish
	Timeout   Result = "timeout"   // ended by its own time limit or by the watchdog
)

func results() []Result { return []Result{Processed, Failed, Exception, Released, Timeout} }

// Run is one run of a job.
type Run struct {
	Class   string
	Result  Result
	Attempt int
	Took    time.Duration
}

var bounds = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800}

type class struct {
	results      map[Result]int64
	redeliveries int64
	buckets      []int64
	seconds      float64
}

// Tally is the counts of a pod's life.
type Tally struct {
	classes  map[string]*class
	recycles map[string]int64
	drains   map[string]int64
	kills    int64
	lost     int64
}

// Running is a job that runs now.
type Running struct {
	Class string
	Age   time.Duration
	Bound time.Duration // 0 = none
}

// Now is what holds at the moment of a scrape.
type Now struct {
	Heartbeats []time.Duration // ages
	Running    []Running
}

// Ran counts a run.
func (t *Tally) Ran(r Run) {
	c := t.class(r.Class)
	c.results[r.Result]++
	if r.Attempt > 1 {
		c.redeliveries++
	}
	seconds := max(r.Took, 0).Seconds()
	at, _ := slices.BinarySearch(bounds, seconds)
	c.buckets[at]++
	c.seconds += seconds
}

func (t *Tally) class(name string) *class {
	name = monitor.ClassName(name)
	if c := t.classes[name]; c != nil {
		return c
	}
	if len(t.classes) >= mostClasses && name != other {
		return t.class(other)
	}
	if t.classes == nil {
		t.classes = map[string]*class{}
	}
	c := &class{results: map[Result]int64{}, buckets: make([]int64, len(bounds)+1)}
	t.classes[name] = c
	return c
}

// Lost counts runs that nobody was in time to hear of.
func (t *Tally) Lost(n int64) { t.lost += n }

// Recycled counts a worker that was started anew.
func (t *Tally) Recycled(cause string) { count(&t.recycles, cause) }

// Drained counts the end of a drain.
func (t *Tally) Drained(outcome string) { count(&t.drains, outcome) }

// Killed counts a kill by the watchdog.
func (t *Tally) Killed() { t.kills++ }

func count(in *map[string]int64, key string) {
	if *in == nil {
		*in = map[string]int64{}
	}
	(*in)[key]++
}

// Text is everything as metrics.
func (t *Tally) Text(now Now) []byte {
	text := exposition.New()
	t.writeNow(text, now)
	names := slices.Sorted(maps.Keys(t.classes))
	t.writeRuns(text, names)
	text.Family("queueworker_worker_recycles_total", exposition.Counter, "Workers that ended on purpose and were started anew, by cause.")
	writeCounts(text, "queueworker_worker_recycles_total", "cause", t.recycles)
	text.Family("queueworker_worker_watchdog_kills_total", exposition.Counter, "Jobs that outlived every limit and were killed.")
	text.Sample("queueworker_worker_watchdog_kills_total", float64(t.kills))
	text.Family("queueworker_worker_drains_total", exposition.Counter, "Ends of drains, by outcome.")
	writeCounts(text, "queueworker_worker_drains_total", "outcome", t.drains)
	text.Family("queueworker_worker_lost_runs_total", exposition.Counter, "Runs that are missing in the other counts.")
	text.Sample("queueworker_worker_lost_runs_total", float64(t.lost))
	return text.Bytes()
}

func writeCounts(text *exposition.Text, name, label string, counts map[string]int64) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		text.Sample(name, float64(counts[key]), label, key)
	}
}

// writeNow writes what holds now. Of several workers the worst counts.
func (t *Tally) writeNow(text *exposition.Text, now Now) {
	if len(now.Heartbeats) > 0 {
		text.Family("queueworker_worker_heartbeat_age_seconds", exposition.Gauge, "Time since the worker last said anything, the longest of several.")
		text.Sample("queueworker_worker_heartbeat_age_seconds", slices.Max(now.Heartbeats).Seconds())
	}
	ages, bound := map[string]float64{}, 0.0
	for _, r := range now.Running {
		name := monitor.ClassName(r.Class)
		if len(ages) >= mostClasses {
			name = other
		}
		ages[name] = max(ages[name], r.Age.Seconds())
		if seconds := r.Bound.Seconds(); seconds > 0 && (bound == 0 || seconds < bound) {
			bound = seconds
		}
	}
	if len(ages) == 0 {
		return
	}
	text.Family("queueworker_worker_job_seconds", exposition.Gauge, "Age of the running job.")
	for _, name := range slices.Sorted(maps.Keys(ages)) {
		text.Sample("queueworker_worker_job_seconds", ages[name], "class", name)
	}
	if bound > 0 {
		text.Family("queueworker_worker_job_bound_seconds", exposition.Gauge, "Age at which the watchdog kills the running job, the least of several.")
		text.Sample("queueworker_worker_job_bound_seconds", bound)
	}
}

func (t *Tally) writeRuns(text *exposition.Text, names []string) {
	text.Family("queueworker_worker_jobs_total", exposition.Counter, "Runs of jobs by class and result.")
	for _, name := range names {
		for _, result := range results() {
			if n := t.classes[name].results[result]; n > 0 {
				text.Sample("queueworker_worker_jobs_total", float64(n), "class", name, "result", string(result))
			}
		}
	}
	text.Family("queueworker_worker_job_duration_seconds", exposition.Histogram, "How long runs took.")
	for _, name := range names {
		text.Bounds("queueworker_worker_job_duration_seconds", bounds, t.classes[name].buckets, t.classes[name].seconds, "class", name)
	}
	text.Family("queueworker_worker_redeliveries_total", exposition.Counter, "Runs that were not a job's first.")
	for _, name := range names {
		text.Sample("queueworker_worker_redeliveries_total", float64(t.classes[name].redeliveries), "class", name)
	}
	text.Family("queueworker_worker_releases_total", exposition.Counter, "Runs after which the job went back to the queue.")
	for _, name := range names {
		c := t.classes[name]
		text.Sample("queueworker_worker_releases_total", float64(c.results[Released]+c.results[Exception]), "class", name)
	}
}
