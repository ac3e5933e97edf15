// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Fence is what the sidecar of a pod was seen to do.
type Fence string

// What a sidecar does. The empty Fence means that the kubelet has not told.
const (
	FenceStarting Fence = "Starting" // it has not served since it was started
	FenceServing  Fence = "Serving"
	FenceUnready  Fence = "Unready" // it has served, and does not now
	FenceFailed   Fence = "Failed"  // it ended with an error
)

// fenceOf reads what a pod's sidecar does, and its last words where it failed.
func fenceOf(pod *corev1.Pod) (state Fence, words string) {
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; status.Name == v1alpha1.FenceContainer {
			return fenceState(status)
		}
	}
	return "", ""
}

func fenceState(status *corev1.ContainerStatus) (state Fence, words string) {
	ended := status.State.Terminated
	if ended == nil && status.State.Waiting != nil {
		ended = status.LastTerminationState.Terminated
	}
	switch {
	case ended != nil && ended.ExitCode != 0:
		return FenceFailed, lastLine(ended.Message)
	case status.Ready:
		return FenceServing, ""
	case status.Started != nil && *status.Started:
		return FenceUnready, ""
	default:
		return FenceStarting, ""
	}
}

// lastLine is the line that a program ends with: why.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
