// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/laravel"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Template is a rendered pod template and what is kept beside it.
type Template struct {
	// Pod is what is applied.
	Pod *corev1ac.PodTemplateSpecApplyConfiguration
	// InputHash identifies what the user wrote when it was rendered.
	InputHash string
	// Stored is Pod in the form in which it is kept on the Deployment.
	Stored string
}

// Renderer renders the pod that a QueueWorker asks for.
type Renderer func(*v1alpha1.QueueWorker, timeoutchain.Chain) corev1.PodTemplateSpec

// Render renders the template anew.
func Render(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain, render Renderer) (Template, error) {
	hash, err := InputHash(qw)
	if err != nil {
		return Template{}, err
	}
	rendered := render(qw, chain)
	fields, err := toMap(&rendered)
	if err != nil {
		return Template{}, err
	}
	pod := &corev1ac.PodTemplateSpecApplyConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, pod); err != nil {
		return Template{}, err
	}
	stored, err := store(pod)
	return Template{Pod: pod, InputHash: hash, Stored: stored}, err
}

// WithAgent renders the user's template with what the operator owns filled in:
// the agent of this image, which runs the worker's command, the environment that
// carries the chain, the grace period and the label that selects the pod.
func WithAgent(image string) Renderer {
	return func(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain) corev1.PodTemplateSpec {
		template := *qw.Spec.Template.DeepCopy()
		if template.Labels == nil {
			template.Labels = map[string]string{}
		}
		template.Labels[v1alpha1.LabelName] = qw.Name
		template.Spec.TerminationGracePeriodSeconds = ptr.To(chain.GracePeriod())
		for i := range template.Spec.Containers {
			if container := &template.Spec.Containers[i]; container.Name == v1alpha1.WorkerContainer {
				supervise(container, &qw.Spec, &chain, workerWords(&qw.Spec, container))
				fillEnv(container, &qw.Spec, &chain)
			}
		}
		inject(&template, copier(template.Spec.SecurityContext, image, v1alpha1.AgentContainer, agentInImage))
		addMetrics(&template, &qw.Spec)
		addPreflight(&template, qw)
		addFence(&template, &qw.Spec, &chain, image)
		return template
	}
}

func fillEnv(container *corev1.Container, spec *v1alpha1.QueueWorkerSpec, chain *timeoutchain.Chain) {
	fillRetryAfter(container, spec)
	setEnv(container, timeoutchain.WireEnv, chain.ToWire().Encode())
	if spec.EffectiveFenceMode() == v1alpha1.FenceModeProxy {
		setEnv(container, v1alpha1.FenceURLEnv, fenceURL())
	}
}

func fillRetryAfter(container *corev1.Container, spec *v1alpha1.QueueWorkerSpec) {
	if name := chainsource.RetryAfterEnv(spec.EffectiveRuntime(), spec.EffectiveDriver()); name != "" && spec.Timeouts.RetryAfterSeconds != nil {
		setEnv(container, name, strconv.Itoa(int(*spec.Timeouts.RetryAfterSeconds)))
	}
}

// workerWords are the worker's command line: rendered, behind the wrapper, or the
// user's own.
func workerWords(spec *v1alpha1.QueueWorkerSpec, container *corev1.Container) []string {
	worker := spec.EffectiveWorker()
	switch spec.EffectiveRuntime() {
	case v1alpha1.RuntimeHorizon:
		horizon := laravel.Horizon{PHP: worker.PHP, Artisan: worker.Artisan, ExtraArgs: worker.ExtraArgs}
		return literal(slices.Concat(worker.Wrapper, horizon.Command()))
	case v1alpha1.RuntimeLaravel:
		tries, _ := spec.EffectiveTries()
		work := laravel.QueueWork{
			PHP: worker.PHP, Artisan: worker.Artisan, Connection: spec.Queue.Connection, Queues: spec.Queue.Names,
			Timeout: spec.Timeouts.JobSeconds, Tries: tries, Backoff: spec.EffectiveBackoff(),
			Sleep: ptr.Deref(worker.SleepSeconds, 0), Memory: ptr.Deref(worker.MemoryMegabytes, 0),
			MaxTime: ptr.Deref(worker.MaxTimeSeconds, 0), MaxJobs: ptr.Deref(worker.MaxJobs, 0),
			Rest: ptr.Deref(worker.RestSeconds, 0), ExtraArgs: worker.ExtraArgs,
		}
		return literal(slices.Concat(worker.Wrapper, work.Command()))
	default:
		return slices.Concat(container.Command, container.Args)
	}
}

// literal keeps Kubernetes from replacing $(NAME) by a variable's value: an
// option that the rules never saw would come in that way.
func literal(words []string) []string {
	kept := make([]string, len(words))
	for i, word := range words {
		kept[i] = strings.ReplaceAll(word, "$(", "$$(")
	}
	return kept
}

// setEnv gives a variable its one value; a variable of the user's keeps its
// place, since server-side apply takes no name twice.
func setEnv(container *corev1.Container, name, value string) {
	for i := range container.Env {
		if container.Env[i].Name == name {
			container.Env[i] = corev1.EnvVar{Name: name, Value: value}
			return
		}
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
}
