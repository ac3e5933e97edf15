// SPDX-License-Identifier: Apache-2.0

package workload

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// DisruptionBudget is the PodDisruptionBudget of a QueueWorker, nil where none
// is asked for. Workers that are not ready may always be evicted: a worker that
// crashes in a loop must not hold up a node drain.
func DisruptionBudget(qw *v1alpha1.QueueWorker) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	asked := qw.Spec.PodDisruptionBudget
	if asked == nil {
		return nil
	}
	spec := policyv1ac.PodDisruptionBudgetSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(qw))).
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow)
	spec.MaxUnavailable, spec.MinAvailable = asked.MaxUnavailable, asked.MinAvailable
	return policyv1ac.PodDisruptionBudget(qw.Name, qw.Namespace).
		WithLabels(Labels(qw)).
		WithOwnerReferences(owner(qw)).
		WithSpec(spec)
}
