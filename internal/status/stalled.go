// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

func stalledCondition(f *facts) metav1.Condition {
	stalled := func(reason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionStalled, true, reason, message)
	}
	if stall := f.plan.Stall; stall != nil {
		return stalled(stall.Reason, stall.Message)
	}
	if f.deployment != nil {
		if problem, pods := f.imageProblem(); pods > 0 {
			return stalled(v1alpha1.ReasonImageUnavailable,
				fmt.Sprintf("%s cannot start because an image cannot be pulled: %s.", count(pods, "worker"), problem))
		}
		if text := f.refused(); text != "" {
			return stalled(v1alpha1.ReasonPreflightRefused, shorten(text))
		}
		if f.deadlineExceeded() {
			return stalled(v1alpha1.ReasonProgressDeadlineExceeded,
				fmt.Sprintf("%d of %d workers of the newest template are running, and the Deployment's progress deadline has passed.", f.updated, f.wanted))
		}
	}
	return condition(v1alpha1.ConditionStalled, false, v1alpha1.ReasonNotStalled, "Nothing here waits for a change.")
}

func count[N int | int32](n N, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
