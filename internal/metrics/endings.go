// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queueworker/operator/api/v1alpha1"
)

// endings count how workers ended. Their series are made with the first ending
// and go with the QueueWorker.
type endings struct {
	kills      *prometheus.CounterVec
	drains     *prometheus.HistogramVec
	unobserved *prometheus.CounterVec
}

func newEndings() *endings {
	labels := []string{"namespace", "name"}
	return &endings{
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queueworker_kills_total",
			Help: "Workers that were killed or crashed, by QueueWorker and reason (GraceEnded, GraceCut, Overran, OOMKilled, " +
				"Evicted, Crashed). At least so many: see queueworker_unobserved_endings_total.",
		}, append(labels, "reason")),
		drains: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "queueworker_drain_duration_seconds",
			Help:    "Time from the request to stop to the worker's end, of workers that stopped with no job disturbed.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400},
		}, labels),
		unobserved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queueworker_unobserved_endings_total",
			Help: "Workers that are gone and of which nobody saw how they ended: deleted by force, lost with their node, " +
				"or gone while no manager ran.",
		}, labels),
	}
}

func (e *endings) collectors() []prometheus.Collector {
	return []prometheus.Collector{e.kills, e.drains, e.unobserved}
}

func (e *endings) forget(namespace, name string) {
	of := prometheus.Labels{"namespace": namespace, "name": name}
	e.kills.DeletePartialMatch(of)
	e.drains.DeletePartialMatch(of)
	e.unobserved.DeletePartialMatch(of)
}

// Killed counts a worker that was killed or crashed.
func (m *Metrics) Killed(namespace, name string, reason v1alpha1.KillReason) {
	m.endings.kills.WithLabelValues(namespace, name, string(reason)).Inc()
}

// Drained counts a worker that stopped with no job disturbed.
func (m *Metrics) Drained(namespace, name string, took time.Duration) {
	m.endings.drains.WithLabelValues(namespace, name).Observe(took.Seconds())
}

// Unobserved counts workers that are gone without a trace.
func (m *Metrics) Unobserved(namespace, name string, workers int) {
	m.endings.unobserved.WithLabelValues(namespace, name).Add(float64(workers))
}
