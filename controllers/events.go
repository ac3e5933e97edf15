// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
)

// Reasons of events that are not reasons of a condition. They are stable API.
const (
	// EventRolledOut: every worker runs the newest template, the older ones are
	// gone.
	EventRolledOut = "RolledOut"
	// EventRecovered: what was stalled is not any more.
	EventRecovered = "Recovered"
	// EventMayBeCut: a worker is being stopped with less time than it was
	// promised.
	EventMayBeCut = "MayBeCut"
	// EventConsuming: the queue is in no trouble any more.
	EventConsuming = "Consuming"
)

const action = "Reconcile"

// event is one thing to tell.
type event struct{ kind, reason, note string }

// tell sends the events of a stored change.
func (r *Reconciler) tell(o *rollout.Observed, plan *rollout.Plan, old, next *v1alpha1.QueueWorkerStatus) {
	for _, e := range eventsOf(old, next, status.Notes(o, plan)) {
		r.events.Eventf(o.QueueWorker, nil, e.kind, e.reason, action, "%s", e.note)
	}
}

// eventsOf says what a change of the status is worth telling: each state once
// when it begins, however often its numbers change.
func eventsOf(old, next *v1alpha1.QueueWorkerStatus, notes []status.Note) []event {
	var told []event
	add := func(kind, reason, note string) { told = append(told, event{kind, reason, note}) }

	stalled, was := find(next, v1alpha1.ConditionStalled), find(old, v1alpha1.ConditionStalled)
	switch {
	case isTrue(stalled) && !(isTrue(was) && was.Reason == stalled.Reason && !worthRepeating(was, stalled)):
		add(corev1.EventTypeWarning, stalled.Reason, stalled.Message)
	case !isTrue(stalled) && isTrue(was):
		add(corev1.EventTypeNormal, EventRecovered, "No longer stalled by "+was.Reason+".")
	}
	reconciling, was := find(next, v1alpha1.ConditionReconciling), find(old, v1alpha1.ConditionReconciling)
	switch {
	case rollingOut(reconciling) && !inRollout(was):
		add(corev1.EventTypeNormal, reconciling.Reason, reconciling.Message)
	case inRollout(was) && !isTrue(reconciling) && !isTrue(stalled):
		add(corev1.EventTypeNormal, EventRolledOut, reconciling.Message)
	}
	honored, was := find(next, v1alpha1.ConditionGraceHonored), find(old, v1alpha1.ConditionGraceHonored)
	if honored.Reason == v1alpha1.ReasonAdmittedWithLess && was.Reason != honored.Reason {
		add(corev1.EventTypeWarning, honored.Reason, honored.Message)
	}
	passed, was := find(next, v1alpha1.ConditionPreflightPassed), find(old, v1alpha1.ConditionPreflightPassed)
	if passed.Reason == v1alpha1.ReasonPreflightWarned && was.Message != passed.Message {
		add(corev1.EventTypeWarning, passed.Reason, passed.Message)
	}
	draining, was := find(next, v1alpha1.ConditionDraining), find(old, v1alpha1.ConditionDraining)
	if draining.Reason == v1alpha1.ReasonDrainOverdue && was.Reason != draining.Reason {
		add(corev1.EventTypeWarning, draining.Reason, draining.Message)
	}
	fenceEvent(old, next, add)
	before := find(old, v1alpha1.ConditionReady).Message
	for _, note := range notes {
		if !note.ToldIn(before) {
			add(corev1.EventTypeWarning, note.Reason, note.Text)
		}
	}
	return told
}

// worthRepeating says whether a stall that goes on has another cause now.
// Messages of the other reasons only differ in numbers.
func worthRepeating(was, now metav1.Condition) bool {
	switch now.Reason {
	case v1alpha1.ReasonChainBroken, v1alpha1.ReasonDeploymentRefused, v1alpha1.ReasonPreflightRefused:
		return was.Message != now.Message
	default:
		return false
	}
}

func rollingOut(c metav1.Condition) bool {
	return isTrue(c) && c.Reason == v1alpha1.ReasonRollingOut
}

func inRollout(c metav1.Condition) bool {
	return isTrue(c) && (c.Reason == v1alpha1.ReasonRollingOut || c.Reason == v1alpha1.ReasonDrainingOldPods)
}

func isTrue(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue }

// find is the condition, empty where there is none.
func find(s *v1alpha1.QueueWorkerStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// tellKill counts a kill and tells it by an event of its own. The pod is part of
// the event: without it, the kills of two pods would be one event and a count.
func (r *Reconciler) tellKill(ctx context.Context, qw *v1alpha1.QueueWorker, ending *outcome.Ending) {
	if r.options.Metrics != nil {
		r.options.Metrics.Killed(qw.Namespace, qw.Name, ending.Reason)
	}
	ctrl.LoggerFrom(ctx).Info("Worker was killed", "pod", ending.Pod, "reason", ending.Reason, "job", ending.JobText())
	pod := podReference(qw.Namespace, ending.Pod, ending.UID)
	r.events.Eventf(qw, pod, corev1.EventTypeWarning, string(ending.Reason), action, "%s", ending.Text())
}

func (r *Reconciler) tellCut(qw *v1alpha1.QueueWorker, cut *cut) {
	pod := podReference(cut.pod.Namespace, cut.pod.Name, cut.uid)
	r.events.Eventf(qw, pod, corev1.EventTypeWarning, EventMayBeCut, action,
		"Worker %s is being stopped within %d s, and was promised %d s: its job may be cut. Delete, drain and evict without a grace period of their own.",
		cut.pod.Name, cut.grace.Granted, cut.grace.Promised)
}

func (r *Reconciler) countDrain(qw *v1alpha1.QueueWorker, took time.Duration) {
	if r.options.Metrics != nil {
		r.options.Metrics.Drained(qw.Namespace, qw.Name, took)
	}
}

func podReference(namespace, name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: uid}
}
