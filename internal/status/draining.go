// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

func drainingCondition(f *facts) metav1.Condition {
	if f.terminating == 0 {
		return condition(v1alpha1.ConditionDraining, false, v1alpha1.ReasonNoneDraining, "No worker is being stopped.")
	}
	reason := v1alpha1.ReasonWorkersDraining
	if f.overdue > 0 {
		reason = v1alpha1.ReasonDrainOverdue
	}
	text := count(f.terminating, "worker") + " may still finish a job" + f.howLong()
	if f.drainingOld > 0 {
		text += fmt.Sprintf("; %d run an older template", f.drainingOld)
	}
	return condition(v1alpha1.ConditionDraining, true, reason, text+".")
}

// howLong goes on from "may still finish a job". Points in time and not what is
// left of them, so that a status does not change by itself. The last request of
// a deletion grants 0 s: the worker has ended, and its pod is about to go.
func (f *facts) howLong() string {
	var text string
	if f.longest > 0 {
		text = fmt.Sprintf(", for up to %d s", f.longest)
	}
	if f.overdue > 0 {
		text += fmt.Sprintf("; %d should have been gone at %s: look whether the node still answers",
			f.overdue, f.since.UTC().Format(time.RFC3339))
	}
	return text
}
