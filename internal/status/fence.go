// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

// fenceCondition says whether the sidecars serve. One that failed counts before
// one that stopped serving, and that before one that is being started.
func fenceCondition(o *rollout.Observed) metav1.Condition {
	by := map[rollout.Fence][]*rollout.Pod{}
	total := 0
	for i := range o.Pods {
		pod := &o.Pods[i]
		state := pod.Fence
		if pod.Ended || pod.Terminating || state == "" && pod.Version != o.NewestVersion {
			continue // the older ones may have none
		}
		total++
		state = cmp.Or(state, rollout.FenceStarting)
		by[state] = append(by[state], pod)
	}
	of := func(state rollout.Fence) string { return fmt.Sprintf("%d of %d fences", len(by[state]), total) }
	switch {
	case total == 0:
		return unknown(v1alpha1.ConditionFenceReady, v1alpha1.ReasonNoFence, "No worker with a fence is there.")
	case len(by[rollout.FenceFailed]) > 0:
		pod := first(by[rollout.FenceFailed])
		return condition(v1alpha1.ConditionFenceReady, false, v1alpha1.ReasonFenceFailed,
			shorten(fmt.Sprintf("%s ended with an error, in pod %s: %s.", of(rollout.FenceFailed), pod.Name, cmp.Or(strings.TrimRight(pod.FenceWords, "."), "it said nothing"))))
	case len(by[rollout.FenceUnready]) > 0:
		return condition(v1alpha1.ConditionFenceReady, false, v1alpha1.ReasonFenceUnready,
			fmt.Sprintf("%s served and do not now, one of them in pod %s. No call is made unfenced: jobs that need it fail and are run again. Look whether the database answers; the log of the container %s says more.",
				of(rollout.FenceUnready), first(by[rollout.FenceUnready]).Name, v1alpha1.FenceContainer))
	case len(by[rollout.FenceStarting]) > 0:
		return unknown(v1alpha1.ConditionFenceReady, v1alpha1.ReasonFenceStarting,
			fmt.Sprintf("%s have not served yet, one of them in pod %s. A fence waits for its database, and its worker for the fence.",
				of(rollout.FenceStarting), first(by[rollout.FenceStarting]).Name))
	default:
		return condition(v1alpha1.ConditionFenceReady, true, v1alpha1.ReasonFenceServing, "Every fence serves.")
	}
}

// first is the pod whose name comes first, so that a message stays the same.
func first(pods []*rollout.Pod) *rollout.Pod {
	return slices.MinFunc(pods, func(a, b *rollout.Pod) int { return cmp.Compare(a.Name, b.Name) })
}
