// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// wish is what somebody wants of a QueueWorker, in the terms of the script.
type wish struct {
	image    int
	job      int32  // seconds
	replicas *int32 // nil: an autoscaler's
	recreate bool
	budget   string // maxUnavailable; empty: none
	unique   int32  // seconds; no worker acts on it
	label    int    // of the QueueWorker
}

func firstWish() wish { return wish{image: 1, job: 30, replicas: ptr.To[int32](2), unique: 300} }

// template tells the wishes apart that need different pods.
func (w wish) template() string { return fmt.Sprint(w.image, "/", w.job) }

func (w wish) object(namespace, name string) *v1alpha1.QueueWorker {
	qw := &v1alpha1.QueueWorker{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "QueueWorker"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"round": strconv.Itoa(w.label)}},
	}
	qw.Spec.Replicas = w.replicas
	qw.Spec.Queue = v1alpha1.Queue{Connection: "redis", Names: []string{name}}
	qw.Spec.Timeouts = v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](20), JobSeconds: w.job, RetryAfterSeconds: ptr.To[int32](90)}
	qw.Spec.Locks.UniqueForSeconds = &w.unique
	if w.recreate {
		qw.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	}
	if w.budget != "" {
		qw.Spec.PodDisruptionBudget = &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.Parse(w.budget))}
	}
	qw.Spec.Template = corev1.PodTemplateSpec{
		// Long enough to be seen draining.
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.TerminatingForAnnotation: "600ms"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: v1alpha1.WorkerContainer, Image: fmt.Sprintf("registry.example/shop:1.%d", w.image),
		}}},
	}
	return qw
}

// apply writes the wish as the script's own field manager. To repeat it after
// an unknown outcome changes nothing.
func (w wish) apply(ctx context.Context, namespace, name string) (*v1alpha1.QueueWorker, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.object(namespace, name))
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	if !w.recreate { // an empty struct is written as null where a field in it was owned, and refused
		unstructured.RemoveNestedField(fields, "spec", "strategy")
	}
	object := &unstructured.Unstructured{Object: fields}
	if err := k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("script"), client.ForceOwnership); err != nil {
		return nil, err
	}
	qw := &v1alpha1.QueueWorker{}
	return qw, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, qw)
}

// scale writes the scale subresource as an autoscaler does.
func scale(ctx context.Context, namespace, name string, replicas int32) error {
	qw := &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	return k8s.SubResource("scale").Patch(ctx, qw, patch, client.FieldOwner("autoscaler"))
}
