// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/preflight"
)

// trialGrace is how long a pod may take to stop that runs only a preflight, in
// seconds. Nothing in it needs to be finished.
const trialGrace = 5

// addPreflight adds the init container that compares the application in the
// image with the spec. It is the last one: what the user's own prepare, such as
// files or a proxy to the database, is there.
func addPreflight(template *corev1.PodTemplateSpec, qw *v1alpha1.QueueWorker) {
	policy := qw.Spec.EffectivePreflightPolicy()
	if policy == v1alpha1.PreflightDisabled {
		return
	}
	for i := range template.Spec.Containers {
		if worker := &template.Spec.Containers[i]; worker.Name == v1alpha1.WorkerContainer {
			template.Spec.InitContainers = append(template.Spec.InitContainers, preflightOf(worker, qw, policy))
		}
	}
}

// preflightOf is the worker's container with another first process: whatever
// decides what the application reads is the same.
func preflightOf(worker *corev1.Container, qw *v1alpha1.QueueWorker, policy v1alpha1.PreflightPolicy) corev1.Container {
	same := worker.DeepCopy()
	c := corev1.Container{
		Name:            v1alpha1.PreflightContainer,
		Image:           same.Image,
		ImagePullPolicy: same.ImagePullPolicy,
		Command:         []string{agentInPod, "preflight", "--policy=" + string(policy), "--"},
		Args:            same.Args,
		WorkingDir:      same.WorkingDir,
		EnvFrom:         same.EnvFrom,
		Env:             same.Env,
		Resources:       same.Resources,
		VolumeMounts:    same.VolumeMounts,
		VolumeDevices:   same.VolumeDevices,
		SecurityContext: same.SecurityContext,
		// A runtime that cannot start it, or the kernel, leaves no message.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	setEnv(&c, preflight.DeclaredEnv, literal([]string{chainsource.Declared(qw).Encode()})[0])
	// Without a limit the downward API gives the node's memory.
	if _, limited := worker.Resources.Limits[corev1.ResourceMemory]; limited {
		c.Env = append(c.Env, corev1.EnvVar{Name: preflight.MemoryLimitEnv, ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits." + string(corev1.ResourceMemory)},
		}})
	}
	return c
}

// HasPreflight says whether the pods of a template run a preflight.
func HasPreflight(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.InitContainers, isPreflight)
}

func isPreflight(c corev1.Container) bool { return c.Name == v1alpha1.PreflightContainer }

// Trial is a pod that runs the preflight of a template without its worker: the
// preflight is its only container. It has the labels of the user's template,
// which a network policy may select, and is in no worker's selector. It is nil
// where the template has no preflight, or one that refuses nothing.
func Trial(qw *v1alpha1.QueueWorker, template Template) (*corev1.Pod, error) {
	if qw.Spec.EffectivePreflightPolicy() != v1alpha1.PreflightEnforce {
		return nil, nil
	}
	text, err := json.Marshal(template.Pod)
	if err != nil {
		return nil, err
	}
	var rendered corev1.PodTemplateSpec
	if err := json.Unmarshal(text, &rendered); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rendered.Spec.InitContainers, isPreflight)
	if at < 0 {
		return nil, nil
	}
	spec := rendered.Spec
	spec.Containers = []corev1.Container{spec.InitContainers[at]}
	spec.InitContainers = spec.InitContainers[:at] // what comes after it, such as the fence, is for the worker
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	spec.TerminationGracePeriodSeconds = ptr.To[int64](trialGrace)

	labels := maps.Clone(rendered.Labels)
	maps.Copy(labels, map[string]string{
		v1alpha1.LabelName: "", v1alpha1.LabelPreflight: qw.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	})
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: qw.Name + "-preflight-" + template.InputHash[:10], Namespace: qw.Namespace,
			Labels: labels, Annotations: rendered.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(qw, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))},
		},
		Spec: spec,
	}, nil
}

// OfATrial says whether a pod runs only a preflight.
func OfATrial(pod metav1.Object) bool {
	return pod.GetLabels()[v1alpha1.LabelPreflight] != "" && pod.GetLabels()[v1alpha1.LabelName] == ""
}
