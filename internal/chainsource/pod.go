// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// pod collects what the template says that could break or bypass the chain.
func pod(spec *v1alpha1.QueueWorkerSpec) timeoutchain.Pod {
	template := &spec.Template.Spec
	out := timeoutchain.Pod{
		Grace:          value(template.TerminationGracePeriodSeconds),
		RestartPolicy:  string(template.RestartPolicy),
		ActiveDeadline: value(template.ActiveDeadlineSeconds),
	}
	for _, name := range ownedNames(template) {
		out.OwnedNames = append(out.OwnedNames, name.subject)
	}
	container, _ := workerContainer(template)
	if container == nil {
		out.WorkerMissing = true
		return out
	}
	out.Sidecars = Sidecars(template)
	out.RunsArtisan = runsArtisan(container)
	out.Command = len(container.Command) > 0 || len(container.Args) > 0
	out.CommandMissing = len(container.Command) == 0
	out.PreStop = container.Lifecycle != nil && container.Lifecycle.PreStop != nil
	if container.LivenessProbe != nil {
		out.LivenessGrace = value(container.LivenessProbe.TerminationGracePeriodSeconds)
	}
	if container.StartupProbe != nil {
		out.StartupGrace = value(container.StartupProbe.TerminationGracePeriodSeconds)
	}
	if limit, ok := container.Resources.Limits[corev1.ResourceMemory]; ok {
		out.MemoryLimitBytes = timeoutchain.Of(limit.Value())
	}
	for _, env := range container.Env {
		if ownedEnv(spec, env) {
			out.OwnedEnv = append(out.OwnedEnv, env.Name)
		}
	}
	return out
}

// workerContainer finds the container that runs the worker, and its index.
func workerContainer(template *corev1.PodSpec) (*corev1.Container, int) {
	for i := range template.Containers {
		if template.Containers[i].Name == v1alpha1.WorkerContainer {
			return &template.Containers[i], i
		}
	}
	return nil, -1
}

// Sidecars are the ordinary containers beside the worker. They are stopped when
// the drain begins, not after it. It reads a template or an admitted pod, which
// others may have added to.
func Sidecars(pod *corev1.PodSpec) []string {
	var names []string
	for i := range pod.Containers {
		if name := pod.Containers[i].Name; name != v1alpha1.WorkerContainer {
			names = append(names, name)
		}
	}
	return names
}

// runsArtisan says whether a command starts one of Laravel's own workers. It
// also finds one in the words of a shell.
func runsArtisan(worker *corev1.Container) bool {
	words := strings.Join(slices.Concat(worker.Command, worker.Args), " ")
	return slices.ContainsFunc([]string{"queue:work", "queue:listen", "artisan horizon"}, func(start string) bool {
		return strings.Contains(words, start)
	})
}

// RetryAfterEnv is the environment variable from which the newer skeletons of
// Laravel read a driver's reservation. It is empty for a driver that has none.
func RetryAfterEnv(runtime v1alpha1.Runtime, driver v1alpha1.Driver) string {
	if runtime == v1alpha1.RuntimeGeneric {
		return ""
	}
	switch driver {
	case v1alpha1.DriverRedis:
		return "REDIS_QUEUE_RETRY_AFTER"
	case v1alpha1.DriverDatabase:
		return "DB_QUEUE_RETRY_AFTER"
	case v1alpha1.DriverBeanstalkd:
		return "BEANSTALKD_QUEUE_RETRY_AFTER"
	default:
		return ""
	}
}

// ownedEnv says whether a variable is one that the operator sets, with another
// value than the operator's.
func ownedEnv(spec *v1alpha1.QueueWorkerSpec, env corev1.EnvVar) bool {
	if strings.HasPrefix(env.Name, v1alpha1.ReservedEnvPrefix) {
		return true
	}
	retryAfter := spec.Timeouts.RetryAfterSeconds
	if retryAfter == nil || env.Name == "" || env.Name != RetryAfterEnv(spec.EffectiveRuntime(), spec.EffectiveDriver()) {
		return false
	}
	return env.ValueFrom != nil || env.Value != strconv.Itoa(int(*retryAfter))
}

// ownedName is a reserved name that the template uses.
type ownedName struct {
	subject string
	path    *field.Path
}

func ownedNames(template *corev1.PodSpec) []ownedName {
	var names []ownedName
	base := field.NewPath("spec", "template", "spec")
	containers := func(list []corev1.Container, path *field.Path) {
		for i := range list {
			c := &list[i]
			if reserved(c.Name) {
				names = append(names, ownedName{"container " + c.Name, path.Index(i).Child("name")})
			}
			for j, m := range c.VolumeMounts {
				mount := path.Index(i).Child("volumeMounts").Index(j)
				switch {
				case m.MountPath == v1alpha1.ReservedMountPath || strings.HasPrefix(m.MountPath, v1alpha1.ReservedMountPath+"/"):
					names = append(names, ownedName{"mount " + m.MountPath, mount.Child("mountPath")})
				case reserved(m.Name):
					names = append(names, ownedName{"mount " + m.Name, mount.Child("name")})
				}
			}
		}
	}
	containers(template.InitContainers, base.Child("initContainers"))
	containers(template.Containers, base.Child("containers"))
	for i := range template.Volumes {
		if reserved(template.Volumes[i].Name) {
			names = append(names, ownedName{"volume " + template.Volumes[i].Name, base.Child("volumes").Index(i).Child("name")})
		}
	}
	return names
}

func reserved(name string) bool {
	return name == v1alpha1.ReservedName || strings.HasPrefix(name, v1alpha1.ReservedName+"-")
}
