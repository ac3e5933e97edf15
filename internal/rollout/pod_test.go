// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/rollout"
)

func TestPodOf(t *testing.T) {
	ready := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "worker", Image: "x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}}
	}
	initWaiting := waiting("InvalidImageName")
	initWaiting.InitContainerStatuses, initWaiting.ContainerStatuses = initWaiting.ContainerStatuses, nil
	crashed := waiting("CrashLoopBackOff")
	crashed.ContainerStatuses[0].RestartCount = 3
	asked := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	deleted := metav1.ObjectMeta{Name: "a", DeletionTimestamp: ptr.To(metav1.NewTime(asked.Add(100 * time.Second))), DeletionGracePeriodSeconds: ptr.To[int64](100)}
	stopping := outcome.Grace{Stopping: true, Granted: 100, Asked: asked}
	workerEnded := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "worker", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}},
	}}}

	workerRuns := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "worker", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}

	for name, c := range map[string]struct {
		pod  corev1.Pod
		want rollout.Pod
	}{
		"version":      {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"pod-template-hash": "f00"}}, Status: ready}, rollout.Pod{Name: "a", Version: "f00"}},
		"starting":     {corev1.Pod{Status: waiting("ContainerCreating")}, rollout.Pod{Starting: true}},
		"no image":     {corev1.Pod{Status: waiting("ErrImagePull")}, rollout.Pod{Starting: true, ImageProblem: "container worker, image x:1: ErrImagePull"}},
		"no image yet": {corev1.Pod{Status: waiting("ImagePullBackOff")}, rollout.Pod{Starting: true, ImageProblem: "container worker, image x:1: ImagePullBackOff"}},
		"init":         {corev1.Pod{Status: initWaiting}, rollout.Pod{Starting: true, ImageProblem: "container worker, image x:1: InvalidImageName"}},
		"crashed":      {corev1.Pod{Status: crashed}, rollout.Pod{}},
		"terminating":  {corev1.Pod{ObjectMeta: deleted, Status: waiting("ErrImagePull")}, rollout.Pod{Name: "a", Terminating: true, Ended: true, Grace: stopping}},
		"draining":     {corev1.Pod{ObjectMeta: deleted, Status: workerRuns}, rollout.Pod{Name: "a", Terminating: true, Grace: stopping}},
		"worker ended": {corev1.Pod{ObjectMeta: deleted, Status: workerEnded}, rollout.Pod{Name: "a", Terminating: true, Ended: true, Grace: stopping}},
		"ended":        {corev1.Pod{ObjectMeta: deleted, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, rollout.Pod{Name: "a", Ended: true, Grace: stopping}},
		"evicted":      {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, rollout.Pod{Ended: true}},
		"beside":       {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy"}, {Name: "worker"}, {Name: "mesh"}}}}, rollout.Pod{Starting: true, Beside: "proxy,mesh"}},
	} {
		c.want.WireUnreadable = true // none of them has one
		if got := rollout.PodOf(&c.pod); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestOverdue(t *testing.T) {
	asked := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	pod := rollout.Pod{Terminating: true, Grace: outcome.Grace{Stopping: true, Granted: 100, Asked: asked}}
	for after, want := range map[time.Duration]bool{0: false, 104 * time.Second: false, 105 * time.Second: true} {
		if got := pod.Overdue(asked.Add(after)); got != want {
			t.Errorf("after %v: %v", after, got)
		}
	}
	pod.Terminating = false
	if pod.Overdue(asked.Add(time.Hour)) {
		t.Error("a pod that nobody stops is overdue")
	}
}
