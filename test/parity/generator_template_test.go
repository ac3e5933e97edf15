// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
)

func (g *generator) template(s *v1alpha1.QueueWorkerSpec) {
	worker := corev1.Container{Name: v1alpha1.WorkerContainer, Image: "registry.example/shop:1.4.2"}
	if (s.Runtime == v1alpha1.RuntimeGeneric) != g.slip() {
		worker.Command = []string{"/usr/bin/worker"}
	}
	if g.slip() && g.chance(20) {
		worker.Args = []string{"--verbose"}
	}
	if g.slip() && g.chance(20) {
		worker.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	} else if g.chance(5) {
		worker.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	}
	g.env(s, &worker)

	pod := &s.Template.Spec
	pod.Containers = []corev1.Container{worker}
	if g.slip() && g.chance(15) {
		pod.Containers[0].Name = pick(g, "work", "worker2", "queue")
	}
	if g.chance(20) {
		pod.Containers = append(pod.Containers, corev1.Container{Name: "proxy", Image: "registry.example/proxy:1", Command: []string{"/proxy"}})
	}
	if g.chance(20) {
		pod.InitContainers = []corev1.Container{{Name: "migrate", Image: "registry.example/shop:1.4.2"}}
	}
	if g.chance(20) {
		pod.Volumes = []corev1.Volume{{Name: pick(g, "data", "queueworkers", "my-queueworker")}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: pod.Volumes[0].Name, MountPath: pick(g, "/data", "/queueworkers", "/app/queueworker")}}
	}
	g.owned(pod)
	g.podFields(pod)
}

// env sets variables, among them those that carry the reservation.
func (g *generator) env(s *v1alpha1.QueueWorkerSpec, worker *corev1.Container) {
	if g.chance(20) {
		worker.Env = append(worker.Env, corev1.EnvVar{Name: pick(g, "APP_ENV", "QUEUEWORKER", "queueworker_x"), Value: "production"})
	}
	if g.chance(30) {
		value := strconv.Itoa(int(ptr.Deref(s.Timeouts.RetryAfterSeconds, 90)))
		if g.slip() {
			value = pick(g, "91", "", "0"+value, value+" ")
		}
		name := pick(g, "REDIS_QUEUE_RETRY_AFTER", "DB_QUEUE_RETRY_AFTER", "BEANSTALKD_QUEUE_RETRY_AFTER")
		if own := chainsource.RetryAfterEnv(s.EffectiveRuntime(), s.EffectiveDriver()); own != "" && g.chance(70) {
			name = own
		}
		variable := corev1.EnvVar{Name: name, Value: value}
		if g.slip() && g.chance(30) {
			variable.Value = ""
			variable.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
		}
		worker.Env = append(worker.Env, variable)
	}
	if g.slip() && g.chance(15) {
		worker.Env = append(worker.Env, corev1.EnvVar{Name: pick(g, "QUEUEWORKER_CHAIN", "QUEUEWORKER_"), Value: "{}"})
	}
}

// owned uses names that are kept for the operator.
func (g *generator) owned(pod *corev1.PodSpec) {
	if !g.slip() || g.chance(60) {
		return
	}
	switch g.IntN(6) {
	case 0:
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: pick(g, "queueworker", "queueworker-agent")})
	case 1:
		pod.Containers = append(pod.Containers, corev1.Container{Name: "queueworker-x", Image: "registry.example/x:1"})
	case 2:
		pod.InitContainers = append(pod.InitContainers, corev1.Container{Name: "queueworker", Image: "registry.example/x:1"})
	case 3:
		i := g.IntN(len(pod.Containers))
		pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: pick(g, "/queueworker", "/queueworker/", "/queueworker/bin")})
	case 4:
		i := g.IntN(len(pod.Containers))
		pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts, corev1.VolumeMount{Name: pick(g, "queueworker", "queueworker-x"), MountPath: "/shared"})
	default:
		pod.InitContainers = append(pod.InitContainers, corev1.Container{
			Name: "copy", Image: "registry.example/x:1",
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/queueworker"}},
		})
	}
}

func (g *generator) podFields(pod *corev1.PodSpec) {
	if g.slip() && g.chance(20) {
		pod.TerminationGracePeriodSeconds = ptr.To(int64(g.IntN(120)))
	}
	if g.slip() && g.chance(20) {
		pod.ActiveDeadlineSeconds = ptr.To(int64(1 + g.IntN(3600)))
	}
	if g.chance(15) {
		pod.RestartPolicy = corev1.RestartPolicyAlways
	}
	if g.slip() && g.chance(20) {
		pod.RestartPolicy = pick(g, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
	}
}
