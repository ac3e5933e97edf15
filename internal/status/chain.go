// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// maxMessage keeps a condition's message below what the API accepts, in bytes.
const maxMessage = 8192

func chainCondition(o *rollout.Observed) metav1.Condition {
	summary := o.Chain.Summary()
	errors, risks := timeoutchain.Blocking(o.Findings), timeoutchain.Risks(o.Findings)
	switch {
	case len(errors) > 0:
		return condition(v1alpha1.ConditionChainIntact, false, v1alpha1.ReasonChainBroken,
			shorten(fmt.Sprintf("%s has %s: %s.", summary, count(len(errors), "error"), texts(errors))))
	case len(risks) > 0:
		return condition(v1alpha1.ConditionChainIntact, true, v1alpha1.ReasonHoldsWithWarnings,
			shorten(fmt.Sprintf("%s holds with %s: %s.", summary, count(len(risks), "warning"), texts(risks))))
	default:
		return condition(v1alpha1.ConditionChainIntact, true, v1alpha1.ReasonEveryLinkHolds, summary+": every link holds.")
	}
}

func texts(findings []timeoutchain.Finding) string {
	all := make([]string, len(findings))
	for i, f := range findings {
		all[i] = f.Message()
	}
	return strings.Join(all, " | ")
}

func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + " ..."
}
