// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

// consumingCondition is what the operator says in the monitor's place; nil while
// the monitor speaks for itself, since two writers would undo each other.
func consumingCondition(o *rollout.Observed, plan *rollout.Plan) *metav1.Condition {
	spec := &o.QueueWorker.Spec
	before := meta.FindStatusCondition(o.QueueWorker.Status.Conditions, v1alpha1.ConditionConsuming)
	say := func(reason, message string) *metav1.Condition {
		c := unknown(v1alpha1.ConditionConsuming, reason, shorten(message))
		return &c
	}
	problem := cmp.Or(plan.Monitor.Problem, o.MonitorRefused())
	silence := func(words string) *metav1.Condition {
		return say(v1alpha1.ReasonMonitorSilent, words+". "+cmp.Or(problem, "Its pod's log says more."))
	}
	at := o.SilentAt()
	silent := !at.IsZero() && !o.Now.Before(at)
	switch state := o.QueueWorker.Status.QueueState; {
	case !spec.MonitorEnabled():
		return say(v1alpha1.ReasonUnwatched, "Monitoring is turned off.")
	case !spec.Monitored():
		return say(v1alpha1.ReasonUnwatched, "The runtime Generic has no application to ask.")
	case state != nil && state.ObservedTime != nil && !silent:
		return nil
	case state != nil:
		return silence(lastWords(state))
	case before != nil && before.Reason == v1alpha1.ReasonMonitorSilent && !strings.HasPrefix(before.Message, noMonitor):
		words, _, _ := strings.Cut(before.Message, ". ")
		return silence(strings.TrimSuffix(words, ".")) // until it speaks again
	case plan.Monitor.Problem != "" && !o.HasMonitor():
		return say(v1alpha1.ReasonMonitorSilent, noMonitor+problem)
	case silent:
		return silence("The monitor has said nothing since it was made")
	default: // a refusal may be over in a moment
		return say(v1alpha1.ReasonMonitorStarting, strings.TrimSpace("The monitor has not looked at the queue yet. "+problem))
	}
}

// monitorStays is why the monitor that speaks is not the newest, a clause; empty
// where it is, and where Consuming tells it already.
func monitorStays(o *rollout.Observed, plan *rollout.Plan) string {
	problem := cmp.Or(plan.Monitor.Problem, o.MonitorRefused())
	switch {
	case !o.QueueWorker.Spec.Monitored() || consumingCondition(o, plan) != nil:
		return ""
	case plan.Monitor.Problem == "" && !o.MonitorWorks():
		return "" // the only one is away for a while
	case problem != "":
		return shorten(lowerFirst(strings.TrimSuffix(problem, ".")))
	case o.MonitorLate():
		return "its newest pod has not ended a first look in time, and the pod's log says why"
	default:
		return ""
	}
}

// noMonitor begins the message where there cannot be a monitor.
const noMonitor = "There is no monitor: "

// lastWords keeps what the numbers were, since they are removed: one sentence
// without its full stop, which is how it is found again.
func lastWords(state *v1alpha1.QueueState) string {
	if state.ObservedTime == nil {
		return "The monitor does not say when it looked"
	}
	text := fmt.Sprintf("The monitor has said nothing since %s; then the queue was %s",
		state.ObservedTime.UTC().Format("2006-01-02T15:04:05Z"), cmp.Or(state.State, v1alpha1.StateUnknown))
	if state.Depth != nil {
		text += fmt.Sprintf(" with depth %d", *state.Depth)
	}
	return text
}

// Trouble says whether somebody should hear of a reason of Consuming. A queue is
// empty and busy in turn all day.
func Trouble(reason string) bool {
	switch v1alpha1.State(reason) {
	case v1alpha1.StateStuck, v1alpha1.StateStopped, v1alpha1.StateUnknown, v1alpha1.ReasonMonitorSilent:
		return true
	default:
		return false
	}
}

// Forgotten says whether the numbers of a silent monitor, or of one that is
// gone, are still there.
func Forgotten(qw *v1alpha1.QueueWorker, next *v1alpha1.QueueWorkerStatus) bool {
	c := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionConsuming)
	return qw.Status.QueueState != nil && c != nil
}
