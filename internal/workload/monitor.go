// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/monitor"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const (
	monitorInImage = "/monitor"
	monitorInPod   = v1alpha1.ReservedMountPath + "/monitor"
	// monitorCopier brings the monitor along.
	monitorCopier = v1alpha1.ReservedName + "-monitor"

	monitorPort, workerMetricsPort = 9464, 9465
	workerAddress                  = ":9465"

	// monitorGrace is how long a monitor may take to stop, in seconds.
	monitorGrace = 10
	// A monitor that ends no look is unready soon; nobody sends it anything, but a
	// rollout waits for the new one.
	monitorProbePeriod, monitorProbeFailures = 10, 3
	// monitorRevisions is how many old templates are kept to go back to.
	monitorRevisions = 2
)

// MonitorDeployment is the Deployment of a QueueWorker's monitor. The older one
// goes on until the newer has ended a first look: an image that cannot boot
// blinds nobody.
func MonitorDeployment(qw *v1alpha1.QueueWorker, template Template) *appsv1ac.DeploymentApplyConfiguration {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	spec := appsv1ac.DeploymentSpec().
		WithReplicas(1).
		WithRevisionHistoryLimit(monitorRevisions).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(monitorSelector(qw))).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().WithMaxSurge(one).WithMaxUnavailable(none))).
		WithTemplate(template.Pod)
	return appsv1ac.Deployment(MonitorName(qw.Name), qw.Namespace).
		WithLabels(Labels(qw)).
		WithAnnotations(map[string]string{
			v1alpha1.AnnotationInputHash:       template.InputHash,
			v1alpha1.AnnotationAppliedTemplate: template.Stored,
		}).
		WithOwnerReferences(owner(qw)).
		WithSpec(spec)
}

func monitorSelector(qw *v1alpha1.QueueWorker) map[string]string {
	return map[string]string{v1alpha1.LabelMonitor: qw.Name}
}

// WithMonitor renders the pod of the monitor of this image: the application's
// image with the worker's environment and files, and whatever has to run before
// or beside it as an init container, such as a proxy to the database. What is
// about the workers as a group is left out: their labels, since a Service, a
// budget or an affinity of the user's may select by them, and where they may not
// stand beside each other.
func WithMonitor(image string) Renderer {
	return func(qw *v1alpha1.QueueWorker, _ timeoutchain.Chain) corev1.PodTemplateSpec {
		template := *qw.Spec.Template.DeepCopy()
		template.Labels = maps.Clone(qw.Spec.Monitor.Labels)
		if template.Labels == nil {
			template.Labels = map[string]string{}
		}
		delete(template.Labels, v1alpha1.LabelName)
		maps.Copy(template.Labels, monitorSelector(qw))
		pod := &template.Spec
		port := freePort(pod)
		for i := range pod.Containers {
			if pod.Containers[i].Name == v1alpha1.WorkerContainer {
				pod.Containers = []corev1.Container{monitorContainer(&pod.Containers[i], qw, port)}
				break
			}
		}
		pod.HostNetwork = false // a second monitor on the node would find the port taken
		pod.TopologySpreadConstraints = nil
		pod.ReadinessGates = nil // nobody opens them for it
		if pod.Affinity != nil {
			pod.Affinity.PodAffinity, pod.Affinity.PodAntiAffinity = nil, nil
		}
		pod.TerminationGracePeriodSeconds = ptr.To[int64](monitorGrace)
		pod.ServiceAccountName, pod.DeprecatedServiceAccount = MonitorAccount(qw), ""
		pod.AutomountServiceAccountToken = ptr.To(false) // only the one container gets it
		pod.Volumes = append(pod.Volumes, tokenVolume())
		inject(&template, copier(pod.SecurityContext, image, monitorCopier, monitorInImage))
		return template
	}
}

// monitorContainer is the worker's container with another first process.
func monitorContainer(worker *corev1.Container, qw *v1alpha1.QueueWorker, port int32) corev1.Container {
	same := worker.DeepCopy()
	c := corev1.Container{
		Name:            v1alpha1.MonitorContainer,
		Image:           same.Image,
		ImagePullPolicy: same.ImagePullPolicy,
		Command:         []string{monitorInPod, "run", "--"},
		Args:            workerWords(&qw.Spec, same),
		WorkingDir:      same.WorkingDir,
		EnvFrom:         same.EnvFrom,
		Env:             same.Env,
		Resources:       monitorResources(&qw.Spec.Monitor),
		VolumeMounts:    append(withoutToken(same.VolumeMounts), agentMount(), tokenMount()),
		VolumeDevices:   same.VolumeDevices,
		SecurityContext: same.SecurityContext,
		Ports:           []corev1.ContainerPort{{Name: v1alpha1.MonitorPort, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(port)}},
			PeriodSeconds:    monitorProbePeriod,
			FailureThreshold: monitorProbeFailures,
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	fillRetryAfter(&c, &qw.Spec)
	setEnv(&c, monitor.ConfigEnv, literal([]string{monitorConfig(qw, port).Encode()})[0])
	return c
}

func monitorConfig(qw *v1alpha1.QueueWorker, port int32) monitor.Config {
	spec := &qw.Spec
	return monitor.Config{
		Namespace:         qw.Namespace,
		Name:              qw.Name,
		Runtime:           timeoutchain.Runtime(spec.EffectiveRuntime()),
		Connection:        spec.Queue.Connection,
		Driver:            timeoutchain.Driver(spec.EffectiveDriver()),
		Queues:            spec.Queue.Names,
		IntervalSeconds:   int64(spec.EffectiveInterval()),
		StuckAfterSeconds: spec.EffectiveStuckAfter(),
		RetryAfterSeconds: int64(ptr.Deref(spec.Timeouts.RetryAfterSeconds, 0)),
		MetricsAddress:    fmt.Sprintf(":%d", port),
	}
}

func monitorResources(m *v1alpha1.Monitor) corev1.ResourceRequirements {
	if m.Resources != nil {
		return *m.Resources.DeepCopy()
	}
	out := fixed("500m", "256Mi")
	out.Requests = fixed("10m", "64Mi").Requests
	return out
}

// addMetrics lets the workers' agents serve metrics. Where another container, or
// another pod on the same host, may have the port there are none.
func addMetrics(template *corev1.PodTemplateSpec, spec *v1alpha1.QueueWorkerSpec) {
	if !spec.MonitorEnabled() || template.Spec.HostNetwork || taken(slices.Concat(template.Spec.Containers, template.Spec.InitContainers), workerMetricsPort, v1alpha1.WorkerMetricsPort) {
		return
	}
	for i := range template.Spec.Containers {
		if worker := &template.Spec.Containers[i]; worker.Name == v1alpha1.WorkerContainer {
			worker.Ports = append(worker.Ports, corev1.ContainerPort{
				Name: v1alpha1.WorkerMetricsPort, ContainerPort: workerMetricsPort, Protocol: corev1.ProtocolTCP,
			})
			setEnv(worker, v1alpha1.MetricsEnv, workerAddress)
		}
	}
}

// freePort is the monitor's port, or the next that no init container declares: a
// native sidecar that listened there would keep the monitor from starting.
func freePort(pod *corev1.PodSpec) int32 {
	port := int32(monitorPort)
	for taken(pod.InitContainers, port, "") {
		port++
	}
	return port
}

// taken says whether a container declares the port, or one of that name.
func taken(containers []corev1.Container, port int32, name string) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == port || name != "" && p.Name == name
		})
	})
}
