// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/termination"
)

// Kind is what became of a worker.
type Kind int

// The kinds.
const (
	// None: nothing to report, such as a program that ended by itself with 0.
	None Kind = iota
	// Drained: stopped when asked to, with no job disturbed as far as is known.
	Drained
	// Killed: ended in any other way; Reason says why.
	Killed
	// Unobserved: it is gone, and nobody saw how it ended.
	Unobserved
)

// Ending is how one worker ended.
type Ending struct {
	Pod   string
	UID   types.UID
	Kind  Kind
	At    time.Time
	Grace Grace

	Reason v1alpha1.KillReason // of a kill
	Job    *termination.Job    // cut short, or waited for; nil = none is known
	Detail string              // what the agent, the kubelet or the evictor said; may be empty

	// Asked says that the worker was asked to stop. Had is the time from then
	// to the end.
	Asked bool
	Had   time.Duration
}

// JobText names the job by class and uuid; empty where none is known.
func (e *Ending) JobText() string {
	if e.Job == nil {
		return ""
	}
	return strings.TrimSpace(e.Job.Class + " " + e.Job.UUID)
}

// Text is a kill in one or two sentences: which pod, in which job, how long it
// had, what it was promised, and what to change.
func (e *Ending) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Worker %s %s", e.Pod, verbs[e.Reason])
	if job := e.JobText(); job != "" {
		fmt.Fprintf(&text, " in job %s", job)
		if e.Job.AgeSeconds > 0 {
			fmt.Fprintf(&text, ", which had run for %.0f s", e.Job.AgeSeconds)
		}
	}
	if e.Asked {
		fmt.Fprintf(&text, ", %.0f s after it was asked to stop", e.Had.Seconds())
		if e.Grace.Promised > 0 {
			fmt.Fprintf(&text, " with %d s promised", e.Grace.Promised)
		}
		if e.Grace.Stopping && e.Grace.Granted < e.Grace.Promised {
			fmt.Fprintf(&text, " and %d s granted", e.Grace.Granted)
		}
	}
	if e.Detail != "" {
		fmt.Fprintf(&text, " (%s)", strings.TrimSuffix(e.Detail, "."))
	}
	fmt.Fprintf(&text, "; %s.", remedies[e.Reason])
	return text.String()
}

var verbs = map[v1alpha1.KillReason]string{
	v1alpha1.KillGraceEnded: "was killed at the end of its grace",
	v1alpha1.KillGraceCut:   "was killed before its promised grace was over",
	v1alpha1.KillOverran:    "was killed by the watchdog",
	v1alpha1.KillOOMKilled:  "was killed for its memory",
	v1alpha1.KillEvicted:    "was killed by an eviction",
	v1alpha1.KillCrashed:    "crashed",
}

var remedies = map[v1alpha1.KillReason]string{
	v1alpha1.KillGraceEnded: "declare in jobSeconds and httpSeconds what its jobs really take, and the grace follows",
	v1alpha1.KillGraceCut:   "delete, drain and evict without a grace period of their own, and see the condition GraceHonored",
	v1alpha1.KillOverran:    "give the call that it hung in a timeout, and declare it in httpSeconds",
	v1alpha1.KillOOMKilled:  "raise the container's memory limit, or lower worker.memoryMegabytes",
	v1alpha1.KillEvicted:    "request the memory and the ephemeral storage that the worker uses, and drain nodes without a grace period of their own",
	v1alpha1.KillCrashed:    "see the log of its last run: kubectl logs --previous, container worker",
}
