// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// OwnedDeployment is the part of a Deployment that the operator owns. A field
// that somebody else changed is no longer part of it.
func OwnedDeployment(live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, error) {
	owned, err := appsv1ac.ExtractDeployment(live, v1alpha1.FieldManager)
	if err != nil {
		return nil, err
	}
	owned.Status = nil // never ours, whatever an API server notes down
	return owned, nil
}

// OwnedBudget is the part of a disruption budget that the operator owns.
func OwnedBudget(live *policyv1.PodDisruptionBudget) (*policyv1ac.PodDisruptionBudgetApplyConfiguration, error) {
	owned, err := policyv1ac.ExtractPodDisruptionBudget(live, v1alpha1.FieldManager)
	if err != nil {
		return nil, err
	}
	owned.Status = nil
	return owned, nil
}

// OwnedPart is the part of an object that the operator owns, as an apply
// configuration; nil for nil.
func OwnedPart(live Object) (any, error) {
	switch live := live.(type) {
	case *appsv1.Deployment:
		return OwnedDeployment(live)
	case *policyv1.PodDisruptionBudget:
		return OwnedBudget(live)
	case *corev1.ServiceAccount:
		return corev1ac.ExtractServiceAccount(live, v1alpha1.FieldManager)
	case *rbacv1.Role:
		return rbacv1ac.ExtractRole(live, v1alpha1.FieldManager)
	case *rbacv1.RoleBinding:
		return rbacv1ac.ExtractRoleBinding(live, v1alpha1.FieldManager)
	default:
		return nil, nil
	}
}

// Same says whether two apply configurations say the same, so that there is
// nothing to write.
func Same(wanted, owned any) bool { return equality.Semantic.DeepEqual(wanted, owned) }
