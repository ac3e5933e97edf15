// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

func reconcilingCondition(f *facts, stalled *metav1.Condition) metav1.Condition {
	under := func(reason, format string, args ...any) metav1.Condition {
		text := fmt.Sprintf(format, args...)
		if f.failure != "" {
			text += "; pods cannot be made: " + f.failure
		}
		return condition(v1alpha1.ConditionReconciling, true, reason, text+".")
	}
	switch {
	case isTrue(stalled):
		return condition(v1alpha1.ConditionReconciling, false, stalled.Reason, "Waiting for a change, see Stalled.")
	case f.plan.Waiting != "":
		return under(v1alpha1.ReasonRollingOut, "Waiting for the end of %s", f.plan.Waiting)
	case f.deployment == nil:
		return under(v1alpha1.ReasonRollingOut, "The Deployment is being made for %s", count(f.wanted, "worker"))
	case f.plan.Trial != nil:
		return under(v1alpha1.ReasonRollingOut, "The older workers stay until the newest template has passed its preflight in pod %s", f.plan.Trial.Name)
	case f.deployment.Spec.Paused && !f.complete:
		return under(v1alpha1.ReasonRollingOut, "The Deployment is paused with %d of %d workers on the newest template", f.updated, f.wanted)
	case f.unseen() && f.replicas != f.wanted:
		return under(v1alpha1.ReasonScaling, "Scaling from %d to %s", f.replicas, count(f.wanted, "worker"))
	case f.unseen() && f.updated == f.replicas:
		return under(v1alpha1.ReasonApplying, "The Deployment of %s was changed", count(f.wanted, "worker"))
	case !f.current:
		return under(v1alpha1.ReasonRollingOut, "The newest template is being rolled out to %s", count(f.wanted, "worker"))
	case !f.complete:
		return under(v1alpha1.ReasonRollingOut, "%d of %s run the newest template, %d are available in all, %d of an older template are draining",
			f.updated, count(f.wanted, "worker"), f.available, f.drainingOld)
	case f.drainingOld > 0:
		return under(v1alpha1.ReasonDrainingOldPods, "%s of an older template may still finish a job%s",
			count(f.drainingOld, "worker"), f.howLong())
	case f.replicas != f.wanted || f.available < f.wanted && f.starting:
		return under(v1alpha1.ReasonScaling, "Scaling: %d of %s exist, %d are available", f.replicas, count(f.wanted, "worker"), f.available)
	default:
		return condition(v1alpha1.ConditionReconciling, false, v1alpha1.ReasonSettled,
			fmt.Sprintf("All %s run the newest template.", count(f.replicas, "worker")))
	}
}
