// SPDX-License-Identifier: Apache-2.0

// Package metrics holds every metric of the operator.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// otherRule stands for a rule that the registry does not know, so that no
// caller can add series without limit.
const otherRule = "other"

// Metrics are the operator's own metrics. Labels are bounded: rules by the rule
// registry, severities, strategies and reasons by their enumerations, namespaces
// and names by the QueueWorkers that there are.
type Metrics struct {
	findings          *findings
	endings           *endings
	workers           *workers
	fence             *prometheus.GaugeVec
	preflight         *prometheus.GaugeVec
	monitor           *prometheus.GaugeVec
	refused           *prometheus.CounterVec
	rollouts          *prometheus.CounterVec
	certificateExpiry prometheus.Gauge
}

// New makes the metrics and registers them.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		findings:  newFindings(),
		endings:   newEndings(),
		workers:   newWorkers(),
		fence:     newFence(),
		preflight: newPreflight(),
		monitor:   newMonitor(),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queueworker_admission_refused_total",
			Help: "Creates and updates of QueueWorkers that the webhook refused, by the rule that refused them; " +
				"one request counts once for each rule it breaks. Dry runs and what the schema already refuses are not counted.",
		}, []string{"rule"}),
		rollouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "queueworker_rollouts_total",
			Help: "Rollouts of a new pod template that were started, by the strategy they use.",
		}, []string{"strategy"}),
		certificateExpiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "queueworker_webhook_certificate_expiry_timestamp_seconds",
			Help: "When the certificate that the webhook serves expires, in seconds since 1970; 0 until there is one.",
		}),
	}
	for _, rule := range timeoutchain.Rules() {
		m.refused.WithLabelValues(rule.ID) // starts at 0, so that a rate sees the first refusal
	}
	for _, strategy := range []string{"RollingUpdate", "Recreate"} {
		m.rollouts.WithLabelValues(strategy)
	}
	reg.MustRegister(m.findings, m.workers, m.fence, m.refused, m.rollouts, m.preflight, m.monitor, m.certificateExpiry)
	reg.MustRegister(m.endings.collectors()...)
	return m
}

// Refused counts a request that the rule refused.
func (m *Metrics) Refused(rule string) {
	m.refused.WithLabelValues(knownRule(rule)).Inc()
}

// RolloutStarted counts the start of a rollout; strategy is RollingUpdate or
// Recreate.
func (m *Metrics) RolloutStarted(strategy string) {
	m.rollouts.WithLabelValues(strategy).Inc()
}

// SetFindings replaces what is known of one QueueWorker.
func (m *Metrics) SetFindings(namespace, name string, found []timeoutchain.Finding) {
	m.findings.set(namespace, name, found)
}

// Forget drops a QueueWorker that is gone.
func (m *Metrics) Forget(namespace, name string) {
	m.findings.set(namespace, name, nil)
	m.endings.forget(namespace, name)
	m.workers.forget(object{namespace, name})
	m.preflight.DeleteLabelValues(namespace, name)
	m.fence.DeleteLabelValues(namespace, name)
	m.monitor.DeleteLabelValues(namespace, name)
}

// CertificateExpires records when the serving certificate expires.
func (m *Metrics) CertificateExpires(at time.Time) {
	m.certificateExpiry.Set(float64(at.Unix()))
}

func knownRule(id string) string {
	if _, ok := timeoutchain.RuleByID(id); !ok {
		return otherRule
	}
	return id
}
