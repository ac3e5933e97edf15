// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/internal/workload"
)

// Grace is what a pod was promised to finish its job, and what it gets. All
// numbers are seconds.
type Grace struct {
	Promised int64     // by the chain that it was made with; 0 = not known
	Admitted int64     // its own terminationGracePeriodSeconds; 0 = not known
	Stopping bool      // somebody asked it to stop
	Granted  int64     // the grace of that request, as it is now
	Asked    time.Time // when that was
}

// GraceOf reads a pod. The last request of a deletion, made by the kubelet once
// every container has ended, sets the granted grace to 0: look before that.
func GraceOf(pod *corev1.Pod) Grace {
	var g Grace
	if wire, err := workload.WireOf(&pod.Spec); err == nil {
		g.Promised = wire.GraceSeconds
	}
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		g.Admitted = *own
	}
	if pod.DeletionTimestamp != nil {
		g.Stopping = true
		if granted := pod.DeletionGracePeriodSeconds; granted != nil {
			g.Granted = *granted
		}
		// The API server moves both together, so this stays.
		g.Asked = pod.DeletionTimestamp.Add(-time.Duration(g.Granted) * time.Second)
	}
	return g
}

// AdmittedWithLess says that the pod was admitted with less than the promise:
// something between us and the API server's storage lowered it.
func (g Grace) AdmittedWithLess() bool {
	return g.Promised > 0 && g.Admitted > 0 && g.Admitted < g.Promised
}

// MayBeCut says that a request to stop grants less than the pod's own grace and
// less than the promise. Whether the kubelet cuts is another matter: one that
// waits in a hook may let a job run on after a second, shorter request.
func (g Grace) MayBeCut() bool {
	return g.Stopping && g.Promised > 0 && g.Granted < g.Promised && g.Granted < g.Admitted
}
