// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// fenceWords is how much of a sidecar's last words is kept, in bytes: its last
// line is what matters.
const fenceWords = 1024

// trimFence keeps how a sidecar ended.
func trimFence(ended *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if ended == nil {
		return nil
	}
	words := ended.Message
	return &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Message: words[max(0, len(words)-fenceWords):]}
}

// fenceEvent tells once that sidecars stopped serving, and that they serve
// again.
func fenceEvent(old, next *v1alpha1.QueueWorkerStatus, add func(kind, reason, note string)) {
	now, was := find(next, v1alpha1.ConditionFenceReady), find(old, v1alpha1.ConditionFenceReady)
	switch {
	case now.Status == metav1.ConditionFalse && was.Reason != now.Reason:
		add(corev1.EventTypeWarning, now.Reason, now.Message)
	case isTrue(now) && was.Status == metav1.ConditionFalse:
		add(corev1.EventTypeNormal, now.Reason, now.Message)
	}
}

// measureFence shows the condition as a metric.
func (r *Reconciler) measureFence(qw *v1alpha1.QueueWorker, next *v1alpha1.QueueWorkerStatus) {
	if r.options.Metrics != nil {
		r.options.Metrics.SetFence(qw.Namespace, qw.Name, find(next, v1alpha1.ConditionFenceReady).Status)
	}
}
