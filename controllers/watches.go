// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/workload"
)

// workerOfPod maps an object with the QueueWorker's label to the QueueWorker.
func workerOfPod(_ context.Context, object client.Object) []reconcile.Request {
	name := cmp.Or(object.GetLabels()[v1alpha1.LabelName], object.GetLabels()[v1alpha1.LabelPreflight])
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}}
}

// uncontrolled lets objects pass that nobody controls: they may be adopted.
func uncontrolled() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		return metav1.GetControllerOfNoCopy(object) == nil
	})
}

// ofNoWorker lets objects pass that were not made for a QueueWorker: they
// concern whomever they select.
func ofNoWorker() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return !workload.OfAWorker(object) })
}

// workersOfBudget maps a disruption budget to the QueueWorkers whose pods it
// selects.
func (r *Reconciler) workersOfBudget(ctx context.Context, object client.Object) []reconcile.Request {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return nil
	}
	return r.requests(ctx, budget.Namespace, func(qw *v1alpha1.QueueWorker) bool {
		return qw.Name == budget.Name || selects(budget, podLabels(qw))
	})
}

// neighbours maps a QueueWorker to the others that poll the same queue of the
// same database: its change may break a rule there.
func (r *Reconciler) neighbours(ctx context.Context, object client.Object) []reconcile.Request {
	changed, ok := object.(*v1alpha1.QueueWorker)
	if !ok || changed.Spec.EffectiveDriver() != v1alpha1.DriverDatabase {
		return nil
	}
	return r.requests(ctx, changed.Namespace, func(qw *v1alpha1.QueueWorker) bool {
		return len(chainsource.Pollers(qw, []v1alpha1.QueueWorker{*changed})) > 0
	})
}

func (r *Reconciler) requests(ctx context.Context, namespace string, wanted func(*v1alpha1.QueueWorker) bool) []reconcile.Request {
	var list v1alpha1.QueueWorkerList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), shared); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing QueueWorkers", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// podLabels are the labels of a QueueWorker's pods.
func podLabels(qw *v1alpha1.QueueWorker) labels.Set {
	return labels.Merge(qw.Spec.Template.Labels, labels.Set{v1alpha1.LabelName: qw.Name})
}

func selects(budget *policyv1.PodDisruptionBudget, pod labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(pod)
}
