// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
)

const (
	// exitKilled is the exit code of a process that SIGKILL ended.
	exitKilled = 128 + 9
	// maxLastWords bounds what is repeated of a message that is not ours, in
	// bytes.
	maxLastWords = 300
)

// PreflightOf is what a pod's preflight said when it ended last; nil while it
// has not, and where there is none. Unlike a worker's end it stays in the pod's
// status for as long as the pod does: a refused pod is there until somebody
// replaces it, one that passed becomes a worker.
func PreflightOf(pod *corev1.Pod) *preflight.Report {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name != v1alpha1.PreflightContainer {
				continue
			}
			if ended := cmp.Or(statuses[i].State.Terminated, statuses[i].LastTerminationState.Terminated); ended != nil {
				report := reportOf(ended)
				return &report
			}
		}
	}
	return nil
}

// reportOf reads a verdict, or says why there is none.
func reportOf(ended *corev1.ContainerStateTerminated) preflight.Report {
	outOfMemory := ended.Reason == "OOMKilled"
	if outOfMemory && ended.ExitCode == 0 {
		// The kubelet takes it for a failed init container, whatever it said.
		return preflight.Report{Outcome: preflight.Unjudged, First: "the kernel killed one of its processes because the container ran out of memory; raise the worker's memory limit"}
	}
	if report, ok := preflight.ReadBrief(ended.Message); ok {
		return report
	}
	if ended.ExitCode == 0 { // the kubelet forgets messages of containers that are long gone
		return preflight.Report{Outcome: preflight.Passed}
	}
	said := strings.Join(strings.Fields(strings.ToValidUTF8(ended.Message, "?")), " ")
	if len(said) > maxLastWords {
		said = "... " + strings.ToValidUTF8(said[len(said)-maxLastWords:], "")
	}
	text := fmt.Sprintf("it ended with exit code %d (%s)", ended.ExitCode, ended.Reason)
	switch {
	case outOfMemory:
		text = "the kernel killed it because the container ran out of memory; raise the worker's memory limit"
	case ended.ExitCode == exitKilled:
		text = "it was killed from outside"
	}
	if said != "" {
		text += "; its last words: " + said
	}
	return preflight.Report{Outcome: preflight.Unjudged, First: text}
}

// NewestPreflight is what the pods of the newest template say of their image: a
// refusal before all else, then that one passed, which shows that it can. Nil =
// none has said anything. Pods that are being stopped may have been cut short.
func NewestPreflight(pods []Pod, newest string) *preflight.Report {
	var said []*preflight.Report
	for i := range pods {
		p := pods[i].Preflight
		if p != nil && pods[i].Version == newest && !(pods[i].Terminating && p.Outcome == preflight.Unjudged) {
			said = append(said, p)
		}
	}
	if len(said) == 0 {
		return nil
	}
	return slices.MinFunc(said, func(a, b *preflight.Report) int {
		return cmp.Or(gravity(a)-gravity(b), cmp.Compare(a.First, b.First))
	})
}

func gravity(r *preflight.Report) int {
	return slices.Index([]preflight.Outcome{preflight.Refused, preflight.Passed, preflight.Unjudged}, r.Outcome)
}

// Trial is a pod that runs only a preflight.
type Trial struct {
	Name string
	// Preflight is what it said; nil = nothing yet.
	Preflight *preflight.Report
	// ImageProblem is why an image cannot be pulled; empty where it can.
	ImageProblem string
}

// TrialOf reads a pod.
func TrialOf(pod *corev1.Pod) Trial {
	seen := PodOf(pod)
	return Trial{Name: pod.Name, Preflight: seen.Preflight, ImageProblem: seen.ImageProblem}
}

// Passed says that what was tried may be rolled out.
func (t *Trial) Passed() bool {
	return t != nil && t.Preflight != nil && t.Preflight.Outcome == preflight.Passed
}
