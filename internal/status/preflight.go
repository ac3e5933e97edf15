// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/workload"
)

// verdict is what the preflight of the newest template said; nil = nothing yet.
func (f *facts) verdict() *preflight.Report {
	switch {
	case f.plan.Trial != nil && f.plan.Tried != nil:
		return f.plan.Tried.Preflight
	case f.plan.Trial != nil || f.deployment == nil || f.plan.NewTemplate || !f.current && !f.unseen():
		return nil
	default:
		return f.observed.Preflight
	}
}

// preflightCondition says whether the image of the newest template keeps the
// declaration. It is False only for what a change of image or declaration can
// end; whatever could not be seen leaves it Unknown.
func preflightCondition(f *facts) metav1.Condition {
	policy := f.observed.QueueWorker.Spec.EffectivePreflightPolicy()
	switch report := f.verdict(); {
	case policy == v1alpha1.PreflightDisabled:
		return unknown(v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightDisabled, "The image is not compared with this spec.")
	case report != nil:
		return preflightVerdict(report, policy)
	case f.plan.Trial != nil:
		return unknown(v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightPending, fmt.Sprintf("Pod %s runs the preflight of the newest template.", f.plan.Trial.Name))
	case f.deployment != nil && !f.plan.NewTemplate && !workload.HasPreflight(&f.deployment.Spec.Template.Spec):
		return unknown(v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightNotRun, "The workers were made without a preflight; the next rollout runs it.")
	default:
		return preflightAsBefore(f)
	}
}

func preflightVerdict(r *preflight.Report, policy v1alpha1.PreflightPolicy) metav1.Condition {
	switch {
	case r.Outcome == preflight.Unjudged:
		return unknown(v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightUnfinished, shorten("The preflight did not come to an end and is tried again: "+firstFinding(r)+"."))
	case r.Outcome == preflight.Refused && policy == v1alpha1.PreflightWarn:
		return condition(v1alpha1.ConditionPreflightPassed, false, v1alpha1.ReasonPreflightWarned,
			shorten("The worker starts all the same: "+refusal(r)))
	case r.Outcome == preflight.Refused:
		return condition(v1alpha1.ConditionPreflightPassed, false, v1alpha1.ReasonPreflightRefused, shorten(refusal(r)))
	case r.First == "":
		return condition(v1alpha1.ConditionPreflightPassed, true, v1alpha1.ReasonPreflightPassed, "The image keeps what is declared.")
	default:
		return condition(v1alpha1.ConditionPreflightPassed, true, v1alpha1.ReasonPreflightPassed,
			shorten(fmt.Sprintf("No error, %s, %d not verified: %s.", count(r.Warnings, "warning"), r.Unverified, firstFinding(r))))
	}
}

// refusal is the first error, and how many more there are.
func refusal(r *preflight.Report) string {
	if r.Errors > 1 {
		return fmt.Sprintf("%s (and %d more).", firstFinding(r), r.Errors-1)
	}
	return firstFinding(r) + "."
}

// firstFinding is a clause.
func firstFinding(r *preflight.Report) string {
	return cmp.Or(strings.TrimRight(r.First, ". "), "see kubectl logs, container "+v1alpha1.PreflightContainer)
}

// preflightAsBefore keeps what was said while nothing is being rolled out: the
// pods that said it may be gone, as after a scaling to zero.
func preflightAsBefore(f *facts) metav1.Condition {
	before := meta.FindStatusCondition(f.observed.QueueWorker.Status.Conditions, v1alpha1.ConditionPreflightPassed)
	if before != nil && (f.complete || f.unseen()) {
		return metav1.Condition{Type: before.Type, Status: before.Status, Reason: before.Reason, Message: before.Message}
	}
	return unknown(v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightPending, "The preflight of the newest template has not ended yet.")
}

// refused says why workers of the newest template do not start; empty where
// their preflight does not keep them from it.
func (f *facts) refused() string {
	report := f.verdict()
	if f.observed.QueueWorker.Spec.EffectivePreflightPolicy() != v1alpha1.PreflightEnforce || report == nil || report.Outcome != preflight.Refused {
		return ""
	}
	return "The preflight refuses the image of the newest template, so its workers do not start: " + refusal(report)
}
