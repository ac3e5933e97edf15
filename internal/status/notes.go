// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/rollout"
)

// Note is a fact beside the workers themselves that a user should know. It is
// told in the message of Ready and by one event.
type Note struct {
	Reason string // of the event
	Mark   string // how Text begins; it stays while only numbers change
	Text   string // a clause, without a full stop
}

// ToldIn says whether a message already tells the note.
func (n Note) ToldIn(message string) bool { return strings.Contains(message, n.Mark) }

// The reasons of notes. They are stable API.
const (
	// ReasonReplicasNotOurs: somebody else sets the Deployment's replicas.
	ReasonReplicasNotOurs = "ReplicasNotOurs"
	// ReasonForeignBudget: another PodDisruptionBudget selects the same pods;
	// with two of them the API server refuses every eviction.
	ReasonForeignBudget = "ForeignDisruptionBudget"
	// ReasonRolloutAsRecreate: older workers are drained before the new ones
	// start, since their numbers do not fit each other.
	ReasonRolloutAsRecreate = "RolloutAsRecreate"
	// ReasonSidecarStopsFirst: the admitted pods have an ordinary container that
	// the template has not; it is stopped when a drain begins.
	ReasonSidecarStopsFirst = "SidecarStopsFirst"
	// ReasonMonitorStays: an older monitor goes on, since the newest cannot be
	// made or does not get ready.
	ReasonMonitorStays = "MonitorStays"
)

// Notes are the notes to tell now, in a fixed order.
func Notes(o *rollout.Observed, plan *rollout.Plan) []Note {
	var notes []Note
	if plan.ReplicasOwner != "" {
		notes = append(notes, note(ReasonReplicasNotOurs,
			"the Deployment's replicas belong to "+plan.ReplicasOwner,
			fmt.Sprintf(", so spec.replicas %d is not passed on until the Deployment is scaled to that number",
				o.QueueWorker.Spec.EffectiveReplicas())))
	}
	if len(o.OtherBudgets) > 0 && (plan.Budget != nil || len(o.OtherBudgets) > 1) {
		notes = append(notes, note(ReasonForeignBudget,
			"the workers are also selected by PodDisruptionBudget "+strings.Join(o.OtherBudgets, ", "),
			", and pods with two budgets cannot be evicted"))
	}
	if plan.Clash != nil {
		notes = append(notes, note(ReasonRolloutAsRecreate, "this rollout runs as Recreate", clashText(plan.Clash)))
	}
	if names := injected(o); names != "" {
		notes = append(notes, note(ReasonSidecarStopsFirst,
			"something added the container "+names+" to the workers' pods",
			": an ordinary container is stopped as soon as a drain begins, so a job that needs it fails; make it a native sidecar (an init container with restartPolicy Always)"))
	}
	if why := monitorStays(o, plan); why != "" {
		notes = append(notes, note(ReasonMonitorStays, "the monitor stays as it was", ": "+why))
	}
	return notes
}

// clashText says which numbers do not fit, after "this rollout runs as Recreate".
func clashText(clash *rollout.Clash) string {
	if clash.Unreadable {
		return ", since the timeouts of an older worker cannot be read"
	}
	before, now := clash.Old, clash.New
	return fmt.Sprintf(": with the Database driver the smallest retryAfterSeconds of all workers rules over the longest jobSeconds, "+
		"and the older workers have job %s and reservation %s, the new ones job %s and reservation %s",
		limit(before.JobSeconds), limit(before.RetryAfterSeconds), limit(now.JobSeconds), limit(now.RetryAfterSeconds))
}

func limit(seconds int64) string {
	if seconds == 0 {
		return "none"
	}
	return fmt.Sprintf("%d s", seconds)
}

// injected names ordinary containers that admitted pods have and the template
// has not.
func injected(o *rollout.Observed) string {
	if o.Deployment == nil {
		return ""
	}
	declared := chainsource.Sidecars(&o.Deployment.Spec.Template.Spec)
	var names []string
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Beside == "" || pod.Version != o.NewestVersion {
			continue
		}
		for name := range strings.SplitSeq(pod.Beside, ",") {
			if !slices.Contains(declared, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func note(reason, mark, rest string) Note { return Note{Reason: reason, Mark: mark, Text: mark + rest} }
