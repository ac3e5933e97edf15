// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

func TestFenceOfAPod(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(code int32, words string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: words}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	log := "{\"level\":\"ERROR\"}\nfence: the table fence has no unique index\n"
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		want   rollout.Fence
		words  string
	}{
		"created":         {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}, rollout.FenceStarting, ""},
		"starting":        {corev1.ContainerStatus{State: running, Started: ptr.To(false)}, rollout.FenceStarting, ""},
		"serving":         {corev1.ContainerStatus{State: running, Started: ptr.To(true), Ready: true}, rollout.FenceServing, ""},
		"database away":   {corev1.ContainerStatus{State: running, Started: ptr.To(true)}, rollout.FenceUnready, ""},
		"failed":          {corev1.ContainerStatus{State: ended(1, log)}, rollout.FenceFailed, "fence: the table fence has no unique index"},
		"failed again":    {corev1.ContainerStatus{State: waiting, LastTerminationState: ended(1, log)}, rollout.FenceFailed, "fence: the table fence has no unique index"},
		"runs once more":  {corev1.ContainerStatus{State: running, LastTerminationState: ended(1, log)}, rollout.FenceStarting, ""},
		"stopped in time": {corev1.ContainerStatus{State: ended(0, "")}, rollout.FenceStarting, ""},
	} {
		c.status.Name = v1alpha1.FenceContainer
		other := corev1.ContainerStatus{Name: "proxy", Ready: true}
		pod := rollout.PodOf(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{other, c.status}}})
		if pod.Fence != c.want || pod.FenceWords != c.words {
			t.Errorf("%s: %q %q, want %q %q", name, pod.Fence, pod.FenceWords, c.want, c.words)
		}
	}
	if pod := rollout.PodOf(&corev1.Pod{}); pod.Fence != "" {
		t.Errorf("a pod without a fence has one that is %s", pod.Fence)
	}
}
