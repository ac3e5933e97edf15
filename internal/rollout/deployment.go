// SPDX-License-Identifier: Apache-2.0

package rollout

import appsv1 "k8s.io/api/apps/v1"

// ReasonDeploymentComplete is the reason of a Deployment's Progressing condition
// once every worker of the newest template was available.
const ReasonDeploymentComplete = "NewReplicaSetAvailable"

// ReasonDeadlineExceeded is its reason where pods of the newest template do not
// get ready in time.
const ReasonDeadlineExceeded = "ProgressDeadlineExceeded"

// DeploymentCondition is the condition of that type; nil = there is none.
func DeploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}
