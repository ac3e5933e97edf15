// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// revisionAnnotation counts the templates that a Deployment has rolled out.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Prepare sets what the controller needs of its manager: which objects are
// cached and in what form, and that warnings of the API server do not fill the
// log. Call it before ctrl.NewManager.
func Prepare(config *rest.Config, options *ctrl.Options) {
	config.WarningHandlerWithContext = quietWarnings{}

	labelled := labelledObjects()
	if options.Cache.ByObject == nil {
		options.Cache.ByObject = map[client.Object]cache.ByObject{}
	}
	options.Cache.ByObject[&v1alpha1.QueueWorker{}] = cache.ByObject{Transform: trimQueueWorker}
	options.Cache.ByObject[&appsv1.Deployment{}] = cache.ByObject{Label: labelled, Transform: trimDeployment}
	for _, ofMonitor := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		options.Cache.ByObject[ofMonitor] = cache.ByObject{Label: labelled}
	}
	options.Cache.ByObject[&appsv1.ReplicaSet{}] = cache.ByObject{Label: labelled, Transform: trimReplicaSet}
	options.Cache.ByObject[&corev1.Pod{}] = cache.ByObject{Label: labelled, Transform: trimPod}

	if options.Client.Cache == nil {
		options.Client.Cache = &client.CacheOptions{}
	}
	options.Client.Cache.DisableFor = append(options.Client.Cache.DisableFor, &corev1.Secret{}, &corev1.ConfigMap{})
}

func labelledObjects() labels.Selector {
	named, err := labels.NewRequirement(v1alpha1.LabelName, selection.Exists, nil)
	if err != nil {
		panic(err) // a constant that is no label: found by every test
	}
	return labels.NewSelector().Add(*named)
}

// workerIndex is the index of cached objects by the QueueWorker they are made
// for. Without it every look passes over all pods of the namespace.
const workerIndex = "worker"

func indexByWorker(ctx context.Context, indexer client.FieldIndexer) error {
	for _, object := range []client.Object{&corev1.Pod{}, replicaSetMetadata()} {
		if err := indexer.IndexField(ctx, object, workerIndex, indexedWorker); err != nil {
			return err
		}
	}
	return nil
}

func indexedWorker(object client.Object) []string {
	if workload.OfATrial(object) {
		return []string{trialIndex(object.GetLabels()[v1alpha1.LabelPreflight])}
	}
	return []string{object.GetLabels()[v1alpha1.LabelName]}
}

func replicaSetMetadata() *metav1.PartialObjectMetadata {
	set := &metav1.PartialObjectMetadata{}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return set
}

// trimPod keeps of a pod what is looked at, which is a tenth of it: its
// metadata, its grace, the chain that it was made with, the names of its
// containers, and how they are and ended.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields, pod.Annotations, pod.OwnerReferences = nil, nil, trimTrial(pod)
	pod.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		Containers:                    trimContainers(pod.Spec.Containers),
	}
	pod.Status = corev1.PodStatus{
		Phase:                 pod.Status.Phase,
		Reason:                pod.Status.Reason,
		Conditions:            trimConditions(pod.Status.Conditions),
		InitContainerStatuses: trimStatuses(pod.Status.InitContainerStatuses),
		ContainerStatuses:     trimStatuses(pod.Status.ContainerStatuses),
	}
	return pod, nil
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, len(containers))
	for i := range containers {
		kept[i].Name = containers[i].Name
		if kept[i].Name != v1alpha1.WorkerContainer {
			continue
		}
		for _, env := range containers[i].Env {
			if env.Name == timeoutchain.WireEnv {
				kept[i].Env = []corev1.EnvVar{{Name: env.Name, Value: env.Value}}
			}
		}
	}
	return kept
}

func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var kept []corev1.PodCondition
	for i := range conditions {
		if kind := conditions[i].Type; kind == corev1.PodReady || kind == corev1.DisruptionTarget {
			kept = append(kept, corev1.PodCondition{Type: kind, Status: conditions[i].Status, Reason: conditions[i].Reason})
		}
	}
	return kept
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		status := &statuses[i]
		trimmed := corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, RestartCount: status.RestartCount,
			State: status.State, LastTerminationState: status.LastTerminationState,
		}
		switch status.Name {
		case v1alpha1.WorkerContainer:
		case v1alpha1.PreflightContainer:
			trimmed.State.Terminated = trimVerdict(status.State.Terminated)
			trimmed.LastTerminationState.Terminated = trimVerdict(status.LastTerminationState.Terminated)
		case v1alpha1.FenceContainer:
			trimmed.Ready, trimmed.Started = status.Ready, status.Started
			trimmed.State.Terminated = trimFence(status.State.Terminated)
			trimmed.LastTerminationState.Terminated = trimFence(status.LastTerminationState.Terminated)
		default: // nobody reads their last words
			trimmed.State.Terminated, trimmed.LastTerminationState.Terminated = nil, nil
		}
		kept = append(kept, trimmed)
	}
	return kept
}

// trimQueueWorker drops what only kubectl and the API server read, which is as
// large as the rest.
func trimQueueWorker(object any) (any, error) {
	qw, ok := object.(*v1alpha1.QueueWorker)
	if !ok {
		return object, nil
	}
	qw.ManagedFields = nil
	delete(qw.Annotations, corev1.LastAppliedConfigAnnotation)
	return qw, nil
}

// trimDeployment keeps of the managed fields those that are read.
func trimDeployment(object any) (any, error) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return object, nil
	}
	deployment.ManagedFields = rollout.ReadFields(deployment.ManagedFields)
	return deployment, nil
}

// trimReplicaSet keeps of a ReplicaSet's annotations only the revision: the
// Deployment's are copied there, the stored template among them.
func trimReplicaSet(object any) (any, error) {
	set, err := meta.Accessor(object)
	if err != nil {
		return object, nil //nolint:nilerr // a tombstone, passed through
	}
	set.SetManagedFields(nil)
	set.SetAnnotations(map[string]string{revisionAnnotation: set.GetAnnotations()[revisionAnnotation]})
	return object, nil
}

// quietWarnings logs warnings of the API server for those who debug only: an
// old object that newer rules refuse gives one at every write of its status.
type quietWarnings struct{}

func (quietWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == 299 && text != "" {
		logr.FromContextOrDiscard(ctx).V(1).Info("Warning of the API server", "warning", text)
	}
}
