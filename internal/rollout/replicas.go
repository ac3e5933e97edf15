// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// replicas is the number to apply, and who else owns it where it is not ours to
// say. A number that somebody else set is left to them: leaving the field out
// keeps it, writing it would start a fight with, say, an autoscaler. It is ours
// again as soon as the other's number is the wanted one.
func replicas(qw *v1alpha1.QueueWorker, live *appsv1.Deployment) (number *int32, otherOwner string) {
	wanted := qw.Spec.EffectiveReplicas()
	if live == nil {
		return &wanted, ""
	}
	for i := range live.ManagedFields {
		entry := &live.ManagedFields[i]
		if !ownsReplicas(entry) {
			continue
		}
		if entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return &wanted, ""
		}
		otherOwner = entry.Manager
	}
	if otherOwner == "" || live.Spec.Replicas != nil && *live.Spec.Replicas == wanted {
		return &wanted, ""
	}
	return nil, otherOwner
}

// ReadFields keeps of a Deployment's managed fields what this package reads of
// them: our own, and who else owns the replicas.
func ReadFields(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != v1alpha1.FieldManager && !ownsReplicas(&entry)
	})
}

func ownsReplicas(entry *metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields struct {
		Spec struct {
			Replicas *struct{} `json:"f:replicas"`
		} `json:"f:spec"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	return fields.Spec.Replicas != nil
}
