// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// unknownStatus is the kubelet's reason for a container of which it found
// nothing any more: its exit code is made up.
const unknownStatus = "ContainerStatusUnknown"

// Run is one run of a pod's worker container that is over.
type Run struct {
	ID    string // tells it from the other runs of the pod
	State *corev1.ContainerStateTerminated
}

// Runs are the runs that the pod still tells of, the older first: at most two,
// since a status keeps one state besides the present.
func Runs(pod *corev1.Pod) []Run {
	status := workerStatus(pod)
	if status == nil {
		return nil
	}
	now, before := status.State.Terminated, status.LastTerminationState.Terminated
	var runs []Run
	if before != nil {
		last := status.RestartCount
		if now != nil || status.State.Running != nil {
			last-- // the present run has the number
		}
		runs = append(runs, newRun(before, last))
	}
	if now != nil {
		runs = append(runs, newRun(now, status.RestartCount))
	}
	return runs
}

// newRun names the run by its container, where the runtime says which it was,
// else by its number.
func newRun(state *corev1.ContainerStateTerminated, number int32) Run {
	if state.ContainerID != "" {
		return Run{ID: state.ContainerID, State: state}
	}
	return Run{ID: fmt.Sprintf("run %d", number), State: state}
}

// Running says whether the pod's worker runs, as far as the pod tells.
func Running(pod *corev1.Pod) bool {
	status := workerStatus(pod)
	return status != nil && status.State.Running != nil
}

// Ended says whether the pod's worker has ended and is not started again.
func Ended(pod *corev1.Pod) bool {
	status := workerStatus(pod)
	return status != nil && status.State.Terminated != nil
}

func workerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == v1alpha1.WorkerContainer {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
