// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// readyCondition is True when the chain is intact and enough workers are
// available. Its reason is that of Stalled while something is stalled, so that
// one column shows what is wrong.
func readyCondition(f *facts, stalled, reconciling *metav1.Condition) metav1.Condition {
	enough := f.deployment != nil && f.available >= f.needed
	text := fmt.Sprintf("%d of %s available", f.available, count(f.wanted, "worker"))
	switch {
	case isTrue(stalled):
		intact := !f.observed.Broken()
		return ready(f, intact && enough, stalled.Reason, text+"; "+lowerFirst(strings.TrimSuffix(stalled.Message, ".")))
	case f.wanted == 0 && f.deployment != nil:
		return ready(f, true, v1alpha1.ReasonScaledToZero, fmt.Sprintf("No worker is wanted, %d are running and %d draining", f.replicas, f.terminating))
	case f.deployment == nil:
		return ready(f, false, v1alpha1.ReasonProgressing, text)
	case enough:
		return ready(f, true, v1alpha1.ReasonAvailable, text)
	case f.first:
		return ready(f, false, v1alpha1.ReasonProgressing, text)
	case f.recreate && isTrue(reconciling) && reconciling.Reason != v1alpha1.ReasonScaling:
		return ready(f, false, v1alpha1.ReasonRecreating, text+", the older ones are drained before the new ones start")
	default:
		return ready(f, false, v1alpha1.ReasonUnavailable, fmt.Sprintf("%s, at least %d are needed", text, f.needed))
	}
}

func ready(f *facts, value bool, reason, text string) metav1.Condition {
	for _, note := range Notes(f.observed, f.plan) {
		text += "; " + note.Text
	}
	return condition(v1alpha1.ConditionReady, value, reason, text+".")
}

func lowerFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}
