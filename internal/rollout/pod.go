// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// imageReasons are the reasons for which a container waits that only another
// image, or the repair of the registry, can end.
var imageReasons = map[string]bool{
	"ErrImagePull":      true,
	"ImagePullBackOff":  true,
	"InvalidImageName":  true,
	"ErrImageNeverPull": true,
}

// Pod is what matters of one worker pod.
type Pod struct {
	Name string
	// Version is its pod-template-hash.
	Version string
	// Terminating says that it was asked to stop and has not ended yet.
	Terminating bool
	// Ended says that its worker does not run and will not run again.
	Ended bool
	// Grace is what it was promised and what it gets.
	Grace outcome.Grace
	// Wire is the chain that it was made with.
	Wire timeoutchain.Wire
	// WireUnreadable says that Wire is not known.
	WireUnreadable bool
	// Beside names its other ordinary containers, with commas between them:
	// whoever admitted the pod may have added some.
	Beside string
	// Starting says that it runs for the first time and is not ready yet.
	Starting bool
	// Fence is what its sidecar does; FenceWords are the last ones of a failed
	// one.
	Fence      Fence
	FenceWords string
	// ImageProblem is why an image cannot be pulled; empty where it can.
	ImageProblem string
	// Preflight is what its preflight said; nil = nothing yet, or it has none.
	Preflight *preflight.Report
}

// overdueAfter is how long after its grace a pod may take to go: the kubelet
// grants a hook two seconds more and then reports the end.
const overdueAfter = 5 * time.Second

// Due is when a terminating pod should be gone at the latest.
func (p *Pod) Due() time.Time {
	return p.Grace.Asked.Add(time.Duration(p.Grace.Granted)*time.Second + overdueAfter)
}

// Overdue says that a terminating pod should be gone by now.
func (p *Pod) Overdue(now time.Time) bool { return p.Terminating && !now.Before(p.Due()) }

// PodOf reads a pod.
func PodOf(pod *corev1.Pod) Pod {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	out := Pod{
		Name:        pod.Name,
		Version:     pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
		Terminating: pod.DeletionTimestamp != nil && !ended,
		Ended:       ended || pod.DeletionTimestamp != nil && !outcome.Running(pod),
		Grace:       outcome.GraceOf(pod),
		Beside:      strings.Join(chainsource.Sidecars(&pod.Spec), ","),
		Preflight:   PreflightOf(pod),
	}
	wire, err := workload.WireOf(&pod.Spec)
	out.Wire, out.WireUnreadable = wire, err != nil
	if ended || out.Terminating {
		return out
	}
	out.Fence, out.FenceWords = fenceOf(pod)
	out.Starting = !ready(pod)
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].RestartCount > 0 {
				out.Starting = false
			}
			if waiting := statuses[i].State.Waiting; waiting != nil && imageReasons[waiting.Reason] && out.ImageProblem == "" {
				out.ImageProblem = imageProblem(&statuses[i])
			}
		}
	}
	return out
}

func imageProblem(status *corev1.ContainerStatus) string {
	return "container " + status.Name + ", image " + status.Image + ": " + status.State.Waiting.Reason
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
