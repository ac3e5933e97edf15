// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const (
	// agentInImage is the agent's place in its own image, agentInPod the one to
	// which it copies itself.
	agentInImage = "/agent"
	agentInPod   = v1alpha1.ReservedMountPath + "/agent"

	// safeToEvict names volumes that do not keep the cluster autoscaler from
	// draining a node.
	safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

	// agentUser is nobody. It runs our containers where the pod's own user is root.
	agentUser = 65532

	// The liveness probe gives up after the third failure in a row. It may take
	// twice as long as the agent waits for its own answer.
	probePeriod, probeTimeout, probeFailures = 30, 10, 3
)

// inject adds what brings a program of ours into the pod: a volume, and an init
// container that copies the program there. It is the first one, so that an image
// that cannot be pulled is noticed before the user's own containers do anything.
func inject(template *corev1.PodTemplateSpec, copier corev1.Container) {
	spec := &template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{
		Name:         v1alpha1.AgentVolume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	spec.InitContainers = slices.Insert(spec.InitContainers, 0, copier)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[safeToEvict] = listed(template.Annotations[safeToEvict], v1alpha1.AgentVolume)
}

// copier runs a program of our image that copies itself. It needs no rights at
// all.
func copier(pod *corev1.PodSecurityContext, image, name, program string) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           image,
		Command:         []string{program, "copy"},
		Resources:       fixed("100m", "32Mi"),
		SecurityContext: noRights(pod),
		VolumeMounts:    []corev1.VolumeMount{agentMount()},
	}
}

// fixed requests are the limits: a pod of the class Guaranteed stays one.
func fixed(cpu, memory string) corev1.ResourceRequirements {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return corev1.ResourceRequirements{Requests: resources, Limits: resources.DeepCopy()}
}

// noRights passes the restricted Pod Security Standard whatever the pod around
// it does.
func noRights(pod *corev1.PodSecurityContext) *corev1.SecurityContext {
	context := &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   ptr.To(true),
		RunAsNonRoot:             ptr.To(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if pod != nil && pod.RunAsUser != nil && *pod.RunAsUser == 0 {
		context.RunAsUser = ptr.To[int64](agentUser)
	}
	return context
}

func agentMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: v1alpha1.AgentVolume, MountPath: v1alpha1.ReservedMountPath}
}

// listed adds a word to a list with commas, unless it is there.
func listed(list, word string) string {
	if list == "" {
		return word
	}
	if slices.Contains(strings.Split(list, ","), word) {
		return list
	}
	return list + "," + word
}

// supervise lets the agent run the worker: words are the worker's own command.
// Both command and args are written, so that nobody else's args end up behind
// them. So are the hook and the graces of the probes.
func supervise(worker *corev1.Container, spec *v1alpha1.QueueWorkerSpec, chain *timeoutchain.Chain, words []string) {
	worker.Command = literal(append(runCommand(worker, spec), "--"))
	worker.Args = words
	worker.VolumeMounts = append(worker.VolumeMounts, agentMount())
	if worker.Lifecycle == nil {
		worker.Lifecycle = &corev1.Lifecycle{}
	}
	worker.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{agentInPod, "drain"}}}
	if worker.LivenessProbe == nil {
		worker.LivenessProbe = liveness(chain)
	}
	for _, probe := range []*corev1.Probe{worker.LivenessProbe, worker.StartupProbe} {
		if probe != nil && probe.TerminationGracePeriodSeconds == nil {
			probe.TerminationGracePeriodSeconds = ptr.To(chain.GracePeriod()) // what holds without it, but owned
		}
	}
}

func runCommand(worker *corev1.Container, spec *v1alpha1.QueueWorkerSpec) []string {
	command := []string{agentInPod, "run"}
	if spec.EffectiveRuntime() != v1alpha1.RuntimeGeneric && spec.EffectiveSupervision() == v1alpha1.SupervisionSignalsOnly {
		command = append(command, "--supervision="+string(v1alpha1.SupervisionSignalsOnly))
	}
	if stop := spec.Drain.BeforeStop; stop != nil {
		command = append(command, "--before-stop="+jsonList(stop.Command))
	}
	if worker.TerminationMessagePath != "" {
		command = append(command, "--termination-log="+worker.TerminationMessagePath)
	}
	return command
}

func jsonList(words []string) string {
	text, err := json.Marshal(words)
	if err != nil { // strings only: cannot happen
		return ""
	}
	return string(text)
}

// liveness asks the agent. A worker that starts, drains or is paused is never
// called dead, so no delay and no startup probe is needed.
func liveness(chain *timeoutchain.Chain) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:                  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{agentInPod, "probe"}}},
		PeriodSeconds:                 probePeriod,
		TimeoutSeconds:                probeTimeout,
		FailureThreshold:              probeFailures,
		TerminationGracePeriodSeconds: ptr.To(chain.ProbeGrace()),
	}
}
