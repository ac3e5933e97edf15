// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// minReadySeconds is how long a worker must have lived before it counts as
// available. One that dies at its boot, for a wrong password say, would count in
// between and let a rollout stop the next old worker.
const minReadySeconds = 10

// Deployment is the Deployment of a QueueWorker. Replicas nil leaves the number
// to whoever owns it.
func Deployment(qw *v1alpha1.QueueWorker, template Template, replicas *int32) *appsv1ac.DeploymentApplyConfiguration {
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(qw))).
		WithStrategy(strategy(qw)).
		WithMinReadySeconds(minReadySeconds).
		WithTemplate(template.Pod)
	spec.Replicas = replicas
	return appsv1ac.Deployment(qw.Name, qw.Namespace).
		WithLabels(Labels(qw)).
		WithAnnotations(map[string]string{
			v1alpha1.AnnotationInputHash:       template.InputHash,
			v1alpha1.AnnotationAppliedTemplate: template.Stored,
		}).
		WithOwnerReferences(owner(qw)).
		WithSpec(spec)
}

// EffectiveStrategy is the declared strategy; where the preflight is enforced, no
// older worker leaves a rolling update before a new one has passed it.
func EffectiveStrategy(qw *v1alpha1.QueueWorker) appsv1.DeploymentStrategy {
	strategy := DeclaredStrategy(qw)
	if rolling := strategy.RollingUpdate; rolling != nil && qw.Spec.EffectivePreflightPolicy() == v1alpha1.PreflightEnforce {
		rolling.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		if timeoutchain.IsNone(rolling.MaxSurge.String()) {
			rolling.MaxSurge = ptr.To(intstr.FromInt32(1))
		}
	}
	return strategy
}

// DeclaredStrategy is the declared strategy with both numbers filled in for a
// rolling update. They are always written: numbers that the API server had
// defaulted would make it refuse a later switch to Recreate.
func DeclaredStrategy(qw *v1alpha1.QueueWorker) appsv1.DeploymentStrategy {
	if qw.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return *qw.Spec.Strategy.DeepCopy()
	}
	quarter := intstr.FromString("25%")
	rolling := appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter}
	if declared := qw.Spec.Strategy.RollingUpdate; declared != nil {
		if declared.MaxSurge != nil {
			rolling.MaxSurge = declared.MaxSurge
		}
		if declared.MaxUnavailable != nil {
			rolling.MaxUnavailable = declared.MaxUnavailable
		}
	}
	kind := qw.Spec.Strategy.Type
	if kind == "" {
		kind = appsv1.RollingUpdateDeploymentStrategyType
	}
	return appsv1.DeploymentStrategy{Type: kind, RollingUpdate: &rolling}
}

func strategy(qw *v1alpha1.QueueWorker) *appsv1ac.DeploymentStrategyApplyConfiguration {
	effective := EffectiveStrategy(qw)
	out := appsv1ac.DeploymentStrategy().WithType(effective.Type)
	if rolling := effective.RollingUpdate; rolling != nil {
		numbers := appsv1ac.RollingUpdateDeployment()
		numbers.MaxSurge, numbers.MaxUnavailable = rolling.MaxSurge, rolling.MaxUnavailable
		out.WithRollingUpdate(numbers)
	}
	return out
}
