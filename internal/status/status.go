// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fencesource"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/workload"
)

// Of is the whole status, its conditions without transition times.
func Of(o *rollout.Observed, plan *rollout.Plan) v1alpha1.QueueWorkerStatus {
	f := factsOf(o, plan)
	qw := o.QueueWorker
	out := v1alpha1.QueueWorkerStatus{
		ObservedGeneration:            qw.Generation,
		Chain:                         o.Chain.Summary(),
		TerminationGracePeriodSeconds: f.grace,
		Ready:                         fmt.Sprintf("%d/%d", f.available, f.wanted),
		Queues:                        qw.Spec.QueuesText(),
		Fence:                         fencesource.Kinds(&qw.Spec),
		Replicas:                      f.replicas,
		ReadyReplicas:                 f.ready,
		UpdatedReplicas:               f.updated,
		TerminatingReplicas:           f.terminating,
		Selector:                      labels.SelectorFromSet(workload.Selector(qw)).String(),
		LastDrain:                     o.LastDrain,
		LastKill:                      o.LastKill,
	}
	stalled := stalledCondition(&f)
	reconciling := reconcilingCondition(&f, &stalled)
	out.Conditions = []metav1.Condition{
		readyCondition(&f, &stalled, &reconciling),
		reconciling,
		stalled,
		chainCondition(o),
		drainingCondition(&f),
		graceCondition(o),
		preflightCondition(&f),
	}
	if qw.Spec.EffectiveFenceMode() == v1alpha1.FenceModeProxy {
		out.Conditions = append(out.Conditions, fenceCondition(o))
	}
	if consuming := consumingCondition(o, plan); consuming != nil {
		out.Conditions = append(out.Conditions, *consuming)
	}
	for i := range out.Conditions {
		out.Conditions[i].ObservedGeneration = qw.Generation
	}
	return out
}

// OfDeleted is the status of a QueueWorker that is being deleted: the last one,
// with what still drains.
func OfDeleted(o *rollout.Observed) v1alpha1.QueueWorkerStatus {
	f := factsOf(o, &rollout.Plan{})
	out := *o.QueueWorker.Status.DeepCopy()
	out.QueueState = nil // the monitor's, as is what it says
	out.Conditions = slices.DeleteFunc(out.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionConsuming })
	out.Replicas, out.ReadyReplicas, out.UpdatedReplicas = f.replicas, f.ready, f.updated
	out.TerminatingReplicas = f.terminating
	out.Ready = fmt.Sprintf("%d/%d", f.available, 0)
	out.LastDrain, out.LastKill = o.LastDrain, o.LastKill
	for _, condition := range []metav1.Condition{drainingCondition(&f), graceCondition(o)} {
		condition.ObservedGeneration = out.ObservedGeneration
		put(&out.Conditions, condition)
	}
	return out
}

// put replaces a condition; its transition time stays for whoever sets it.
func put(conditions *[]metav1.Condition, next metav1.Condition) {
	if before := meta.FindStatusCondition(*conditions, next.Type); before != nil {
		next.LastTransitionTime = before.LastTransitionTime
		*before = next
		return
	}
	*conditions = append(*conditions, next)
}

func condition(kind string, value bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if value {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

func isTrue(c *metav1.Condition) bool { return c.Status == metav1.ConditionTrue }
