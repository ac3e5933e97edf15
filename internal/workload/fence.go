// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fencesource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const (
	fenceInImage = "/fence"

	// The worker waits for the fence's first answer, as long as it takes: a
	// fence without its database only waits for it. Restarting it helps nothing.
	fenceStartPeriod, fenceStartFailures = 1, 3600
	fenceReadyPeriod, fenceReadyFailures = 5, 3
	// The fence gives its database two seconds.
	fenceProbeTimeout = 4
)

// addFence adds the sidecar that calls the providers. It is a native one, so it
// serves until the worker has ended, and the last one, so that it starts after
// a user's own proxy to the database and stops before it. It has no hook: what
// it does at SIGTERM is to finish the calls under way.
func addFence(template *corev1.PodTemplateSpec, spec *v1alpha1.QueueWorkerSpec, chain *timeoutchain.Chain, image string) {
	if spec.EffectiveFenceMode() != v1alpha1.FenceModeProxy {
		return
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[v1alpha1.AnnotationFenceConfig] = fencesource.File(spec, chain)
	pod := &template.Spec
	pod.Volumes = append(pod.Volumes, fenceVolume(&spec.Fence))
	pod.InitContainers = append(pod.InitContainers, fenceContainer(pod.SecurityContext, image))
}

// fenceURL is where the worker finds the sidecar.
func fenceURL() string { return "http://" + fenceconfig.Default().BindAddress }

// fenceVolume is the sidecar's configuration, which stands on the pod itself,
// and its secrets, which nobody but the kubelet reads for it.
func fenceVolume(fence *v1alpha1.Fence) corev1.Volume {
	sources := []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
		Path:     fencesource.ConfigFile,
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + v1alpha1.AnnotationFenceConfig + "']"},
	}}}}}
	for _, secret := range fencesource.SecretFiles(fence) {
		sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret.Ref.Name},
			Items:                []corev1.KeyToPath{{Key: secret.Ref.EffectiveKey(), Path: secret.File}},
		}})
	}
	return corev1.Volume{
		Name:         v1alpha1.FenceContainer,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}},
	}
}

func fenceContainer(pod *corev1.PodSecurityContext, image string) corev1.Container {
	return corev1.Container{
		Name:            v1alpha1.FenceContainer,
		Image:           image,
		Command:         []string{fenceInImage, "-config=" + fencesource.Folder + "/" + fencesource.ConfigFile},
		RestartPolicy:   ptr.To(corev1.ContainerRestartPolicyAlways),
		Ports:           []corev1.ContainerPort{fenceStatus()},
		Resources:       fixed("250m", "128Mi"),
		SecurityContext: noRights(pod),
		VolumeMounts:    []corev1.VolumeMount{{Name: v1alpha1.FenceContainer, MountPath: fencesource.Folder, ReadOnly: true}},
		StartupProbe:    fenceProbe(fenceStartPeriod, fenceStartFailures),
		ReadinessProbe:  fenceProbe(fenceReadyPeriod, fenceReadyFailures),
		// The reason for which it cannot start is the last line of its log.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// fenceStatus is where the sidecar answers probes and scrapes. It has a name, so
// that a PodMonitor finds it.
func fenceStatus() corev1.ContainerPort {
	_, text, _ := net.SplitHostPort(fenceconfig.Default().StatusAddress)
	return corev1.ContainerPort{Name: v1alpha1.FencePort, ContainerPort: intstr.Parse(text).IntVal, Protocol: corev1.ProtocolTCP}
}

func fenceProbe(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(fenceStatus().ContainerPort)}},
		PeriodSeconds:    period,
		TimeoutSeconds:   fenceProbeTimeout,
		FailureThreshold: failures,
	}
}

// fenceInput is what the sidecar acts on of a fence.
func fenceInput(fence *v1alpha1.Fence) *v1alpha1.Fence {
	read := fence.DeepCopy()
	read.ProviderKeyTTLSeconds, read.Retention.FailedJobsSeconds = nil, nil
	return read
}
