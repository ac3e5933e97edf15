// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
	"github.com/queueworker/operator/internal/workload"
)

const (
	// statusPause is the least time between two writes of a status in which no
	// condition flips: a rollout moves counters many times a second.
	statusPause = time.Second
	// foreignPause is how often a foreign object with our name is looked at; it
	// has no label that would bring its changes here.
	foreignPause = 15 * time.Second
	// refusalPause is how often a refusal is tried again that a change out of
	// our sight may end, such as a larger quota.
	refusalPause = time.Minute
)

// report stores the status where it changed, then sends the events that speak
// of the change. Plan is nil for an object that is being deleted.
func (r *Reconciler) report(ctx context.Context, known *known, o *rollout.Observed, plan *rollout.Plan, next v1alpha1.QueueWorkerStatus) (ctrl.Result, error) {
	result := ctrl.Result{RequeueAfter: sooner(sooner(lookAgain(known, plan), untilOverdue(o)), untilSilent(o))}
	now := r.options.Clock.Now()
	old := o.QueueWorker.Status
	if plan != nil {
		r.countPreflight(o.QueueWorker, &next)
	}
	r.measureFence(o.QueueWorker, &next)
	r.tellConsuming(known, o.QueueWorker, &next)
	if r.options.Metrics != nil {
		r.options.Metrics.SetStatus(o.QueueWorker, &next)
	}
	flips := setTransitionTimes(&next, old.Conditions, metav1.NewTime(now).Rfc3339Copy())
	forgotten := status.Forgotten(o.QueueWorker, &next)
	same := sameStatus(&old, &next)
	if same && !forgotten {
		return result, nil
	}
	if pause := known.statusWritten.Add(statusPause).Sub(now); !flips && pause > 0 {
		result.RequeueAfter = sooner(result.RequeueAfter, pause)
		return result, nil
	}
	if !same {
		if err := r.writeStatus(ctx, known, o.QueueWorker, &next); err != nil {
			return ctrl.Result{}, err
		}
		known.statusWritten = now
		if plan != nil {
			r.tell(o, plan, &old, &next)
		}
	}
	if forgotten { // last, since what Consuming says of them can be said only while they are there
		return result, client.IgnoreNotFound(r.forgetNumbers(ctx, known, o.QueueWorker))
	}
	return result, nil
}

// writeStatus applies our part of the status; conditions of others stay.
func (r *Reconciler) writeStatus(ctx context.Context, known *known, qw *v1alpha1.QueueWorker, next *v1alpha1.QueueWorkerStatus) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(workload.Kind))
	object.SetName(qw.Name)
	object.SetNamespace(qw.Namespace)
	object.SetUID(qw.UID)
	object.SetResourceVersion(qw.ResourceVersion) // the API server ignores the UID here if the name is in use again
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	if apierrors.IsNotFound(err) { // gone meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	stored := &v1alpha1.QueueWorker{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stored); err != nil {
		return err
	}
	known.reported = reportedAs(stored)
	qw.ResourceVersion = stored.ResourceVersion
	return nil
}

// setTransitionTimes keeps the time of each condition whose status stays and
// says whether any flips.
func setTransitionTimes(next *v1alpha1.QueueWorkerStatus, old []metav1.Condition, now metav1.Time) (flips bool) {
	for i := range next.Conditions {
		condition := &next.Conditions[i]
		before := meta.FindStatusCondition(old, condition.Type)
		if before != nil && before.Status == condition.Status {
			condition.LastTransitionTime = before.LastTransitionTime
			continue
		}
		condition.LastTransitionTime = now
		flips = true
	}
	return flips
}

// sameStatus compares our part of the status, the conditions by type.
func sameStatus(old, next *v1alpha1.QueueWorkerStatus) bool {
	a, b := *old, *next
	a.Conditions, b.Conditions = nil, nil
	a.QueueState = nil // the monitor's
	if !equality.Semantic.DeepEqual(a, b) {
		return false
	}
	for i := range next.Conditions {
		before := meta.FindStatusCondition(old.Conditions, next.Conditions[i].Type)
		if before == nil || !equality.Semantic.DeepEqual(*before, next.Conditions[i]) {
			return false
		}
	}
	return true
}

// lookAgain is when to look again although nothing brings a change here; 0 =
// never.
func lookAgain(known *known, plan *rollout.Plan) time.Duration {
	switch {
	case plan == nil:
		return 0
	case plan.Monitor.Problem != "":
		return refusalPause
	case plan.Stall == nil:
		return 0
	case plan.Stall.Reason == v1alpha1.ReasonForeignObject:
		return foreignPause
	case known.deployment.mayRetry() || known.budget.mayRetry() || known.trial.mayRetry():
		return refusalPause
	default:
		return 0
	}
}

func (w *written) mayRetry() bool { return w.refused != nil && w.refused.retry }

// untilOverdue is when the next worker that drains should be gone; 0 = none.
func untilOverdue(o *rollout.Observed) time.Duration {
	var until time.Duration
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod.Terminating && !pod.Overdue(o.Now) {
			until = sooner(until, pod.Due().Sub(o.Now))
		}
	}
	return until
}

// sooner is the shorter pause; 0 = never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
