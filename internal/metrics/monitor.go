// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queueworker/operator/api/v1alpha1"
)

func newMonitor() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "queueworker_monitor_silent",
		Help: "Whether the monitor of a QueueWorker has said nothing for long, or cannot be made (1), or speaks (0). " +
			"No series where there is none, or while a new one has not looked yet.",
	}, []string{"namespace", "name"})
}

// SetMonitor records the reason of the condition Consuming of one QueueWorker.
func (m *Metrics) SetMonitor(namespace, name, reason string) {
	switch reason {
	case v1alpha1.ReasonMonitorSilent:
		m.monitor.WithLabelValues(namespace, name).Set(1)
	case "", v1alpha1.ReasonUnwatched, v1alpha1.ReasonMonitorStarting:
		m.monitor.DeleteLabelValues(namespace, name)
	default:
		m.monitor.WithLabelValues(namespace, name).Set(0)
	}
}
