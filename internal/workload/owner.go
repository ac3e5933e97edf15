// SPDX-License-Identifier: Apache-2.0

package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Kind is the owner's kind.
const Kind = v1alpha1.Kind

// Selector is what selects the pods of a QueueWorker.
func Selector(qw *v1alpha1.QueueWorker) map[string]string {
	return map[string]string{v1alpha1.LabelName: qw.Name}
}

// Labels are on every object made for a QueueWorker. Its own labels are not
// passed on: tools that track objects by label would take ours for theirs.
func Labels(qw *v1alpha1.QueueWorker) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      qw.Name,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}
}

func owner(qw *v1alpha1.QueueWorker) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
		WithKind(v1alpha1.Kind).
		WithName(qw.Name).
		WithUID(qw.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// Ownership says whose an object is, seen from a QueueWorker.
type Ownership int

// The ownerships.
const (
	// Ours: controlled by this QueueWorker.
	Ours Ownership = iota
	// Orphaned: controlled by nobody and made by the operator for a QueueWorker
	// of this name. It is adopted.
	Orphaned
	// Leftover: controlled by an earlier QueueWorker of the same name; the
	// garbage collector removes it.
	Leftover
	// Foreign: anybody else's. It is left alone.
	Foreign
)

// OwnershipOf judges an object that has a name of ours.
func OwnershipOf(qw *v1alpha1.QueueWorker, object metav1.Object) Ownership {
	controller := metav1.GetControllerOfNoCopy(object)
	switch {
	case controller == nil && hasLabels(object, Labels(qw)):
		return Orphaned
	case controller == nil:
		return Foreign
	case controller.UID == qw.UID:
		return Ours
	case OfAWorker(object) && controller.Name == qw.Name:
		return Leftover
	default:
		return Foreign
	}
}

// OfAWorker says whether some QueueWorker controls the object.
func OfAWorker(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.Kind == v1alpha1.Kind && controller.APIVersion == v1alpha1.SchemeGroupVersion.String()
}

func hasLabels(object metav1.Object, labels map[string]string) bool {
	have := object.GetLabels()
	for key, value := range labels {
		if have[key] != value {
			return false
		}
	}
	return true
}
