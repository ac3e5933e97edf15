// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// WireOf reads the chain that a pod was made with. It fails where the pod has
// none or one that this program does not understand.
func WireOf(pod *corev1.PodSpec) (timeoutchain.Wire, error) {
	for i := range pod.Containers {
		if pod.Containers[i].Name != v1alpha1.WorkerContainer {
			continue
		}
		for _, env := range pod.Containers[i].Env {
			if env.Name == timeoutchain.WireEnv {
				return timeoutchain.DecodeWire(env.Value)
			}
		}
	}
	return timeoutchain.Wire{}, fmt.Errorf("the container %s has no %s", v1alpha1.WorkerContainer, timeoutchain.WireEnv)
}
