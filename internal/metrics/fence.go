// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newFence() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "queueworker_fence_ready",
		Help: "Whether the fence of every worker serves (1) or one does not (0), by QueueWorker. " +
			"No series where there is no fence, or while none has served yet.",
	}, []string{"namespace", "name"})
}

// SetFence records the condition FenceReady of one QueueWorker.
func (m *Metrics) SetFence(namespace, name string, ready metav1.ConditionStatus) {
	setCondition(m.fence, namespace, name, ready)
}
