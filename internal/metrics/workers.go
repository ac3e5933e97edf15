// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// workers show at each scrape what the status of every QueueWorker said last, so
// that nobody has to teach their monitoring to read one. A QueueWorker's state
// is replaced as a whole: no scrape sees half of it.
type workers struct {
	count, stalled, grace *prometheus.Desc

	mu       sync.Mutex
	byObject map[object]state
}

type state struct {
	wanted, ready, draining int32
	stalled                 string // the reason; empty while it is not
	graceHonored            metav1.ConditionStatus
}

func newWorkers() *workers {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace", "name"}, more...), nil)
	}
	return &workers{
		count: desc("queueworker_workers",
			"Workers of a QueueWorker by state: wanted; ready; draining, that is asked to stop and still there.", "state"),
		stalled: desc("queueworker_stalled",
			"1 while a QueueWorker waits for what only a change can fix, by the reason of its condition Stalled. No series otherwise.", "reason"),
		grace: desc("queueworker_grace_honored",
			"Whether every worker has the grace that its chain promises (1) or one does not (0), by QueueWorker."),
		byObject: map[object]state{},
	}
}

// Describe implements prometheus.Collector.
func (w *workers) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.count
	ch <- w.stalled
	ch <- w.grace
}

// Collect implements prometheus.Collector.
func (w *workers) Collect(ch chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for of, s := range w.byObject {
		gauge(w.count, float64(s.wanted), of.namespace, of.name, "wanted")
		gauge(w.count, float64(s.ready), of.namespace, of.name, "ready")
		gauge(w.count, float64(s.draining), of.namespace, of.name, "draining")
		if s.stalled != "" {
			gauge(w.stalled, 1, of.namespace, of.name, s.stalled)
		}
		switch s.graceHonored {
		case metav1.ConditionTrue:
			gauge(w.grace, 1, of.namespace, of.name)
		case metav1.ConditionFalse:
			gauge(w.grace, 0, of.namespace, of.name)
		}
	}
}

func (w *workers) set(key object, s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byObject[key] = s
}

func (w *workers) forget(key object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byObject, key)
}

// SetStatus records what the status of a QueueWorker says. One that is being
// deleted wants no worker.
func (m *Metrics) SetStatus(qw *v1alpha1.QueueWorker, status *v1alpha1.QueueWorkerStatus) {
	s := state{ready: status.ReadyReplicas, draining: status.TerminatingReplicas}
	if qw.DeletionTimestamp.IsZero() {
		s.wanted = qw.Spec.EffectiveReplicas()
	}
	if stalled := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		s.stalled = stalled.Reason
	}
	if grace := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionGraceHonored); grace != nil {
		s.graceHonored = grace.Status
	}
	m.workers.set(object{qw.Namespace, qw.Name}, s)
}
