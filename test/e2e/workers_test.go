// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/hack/node/image"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// shopLabel marks the pods of a shop's workers that no operator made.
const shopLabel = "shop"

// limits are the chain of a worker, in seconds.
type limits struct{ job, retryAfter, grace int64 }

var ordinary = limits{job: 60, retryAfter: 90, grace: 100}

// retryAfterEnv is how the application is told its reservation.
func (s *shop) retryAfterEnv(seconds int64) corev1.EnvVar {
	name := "REDIS_QUEUE_RETRY_AFTER"
	if s.connection == onDatabase {
		name = "DB_QUEUE_RETRY_AFTER"
	}
	return corev1.EnvVar{Name: name, Value: strconv.FormatInt(seconds, 10)}
}

func (s *shop) work(l limits) []string {
	return []string{"php", "artisan", "queue:work", s.connection, "--sleep=1", "--tries=3", fmt.Sprintf("--timeout=%d", l.job)}
}

// plain is a Deployment as most people write it: artisan is what the kubelet starts and signals.
func (s *shop) plain(name string, replicas int32, l limits) *appsv1.Deployment {
	labels := map[string]string{shopLabel: s.name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				EnableServiceLinks:            ptr.To(false),
				TerminationGracePeriodSeconds: &l.grace,
				Containers: []corev1.Container{{
					Name: "worker", Image: image.Name("app"), ImagePullPolicy: corev1.PullNever,
					Command: s.work(l), Env: append(slices.Clone(s.env), s.retryAfterEnv(l.retryAfter)),
				}},
			}},
		},
	}
}

// withAgent is a pod with the agent in it, put together by hand: an init container copies the agent, which runs the worker.
func (s *shop) withAgent(name, app string, hook bool, l limits) *corev1.Pod {
	driver := timeoutchain.Redis
	if s.connection == onDatabase {
		driver = timeoutchain.Database
	}
	wire := timeoutchain.Wire{
		Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, Driver: driver,
		CallSeconds: 5, JobSeconds: l.job, RetryAfterSeconds: l.retryAfter, GraceSeconds: l.grace, WatchdogSeconds: l.job + 10,
	}
	shared := []corev1.VolumeMount{{Name: "queueworker", MountPath: "/queueworker"}}
	worker := corev1.Container{
		Name: "worker", Image: image.Name(app), ImagePullPolicy: corev1.PullNever, VolumeMounts: shared,
		Command: append([]string{"/queueworker/agent", "run", "--"}, s.work(l)...),
		Env:     append(slices.Clone(s.env), corev1.EnvVar{Name: timeoutchain.WireEnv, Value: wire.Encode()}),
		// Ready once the agent answers, so that a test knows. Asked until then and not for ever: each time is a process.
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/queueworker/agent", "probe"}}},
			PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 300,
		},
	}
	if hook {
		worker.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/queueworker/agent", "drain"}},
		}}
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name, Namespace: namespace, Labels: map[string]string{shopLabel: s.name}},
		Spec: corev1.PodSpec{
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: &l.grace,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			Volumes:                       []corev1.Volume{{Name: "queueworker", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			InitContainers: []corev1.Container{{
				Name: "queueworker-agent", Image: image.Name("operator"), ImagePullPolicy: corev1.PullNever,
				Command: []string{"/agent", "copy"}, VolumeMounts: shared,
			}},
			Containers: []corev1.Container{worker},
		},
	}
}
