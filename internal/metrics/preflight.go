// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newPreflight() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "queueworker_preflight_passed",
		Help: "Whether the image of a QueueWorker's newest template keeps what is declared: 1 it does, 0 it does not. " +
			"No series while that is not known.",
	}, []string{"namespace", "name"})
}

// SetPreflight records the condition PreflightPassed of one QueueWorker.
func (m *Metrics) SetPreflight(namespace, name string, passed metav1.ConditionStatus) {
	setCondition(m.preflight, namespace, name, passed)
}

// setCondition shows a condition as 1 or 0, and by no series while it is unknown.
func setCondition(gauge *prometheus.GaugeVec, namespace, name string, status metav1.ConditionStatus) {
	switch status {
	case metav1.ConditionTrue:
		gauge.WithLabelValues(namespace, name).Set(1)
	case metav1.ConditionFalse:
		gauge.WithLabelValues(namespace, name).Set(0)
	default:
		gauge.DeleteLabelValues(namespace, name)
	}
}
