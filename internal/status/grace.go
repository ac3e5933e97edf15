// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

// graceCondition compares the promised grace with the one that each pod was
// admitted with, and with the one that a request to stop grants. It speaks of
// the pods that are there: what became of others is in lastKill.
func graceCondition(o *rollout.Observed) metav1.Condition {
	var less, cut tally
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Ended {
			continue
		}
		if pod.Grace.AdmittedWithLess() {
			less.add(pod, pod.Grace.Admitted)
		}
		if pod.Grace.MayBeCut() {
			cut.add(pod, pod.Grace.Granted)
		}
	}
	switch {
	case less.pods > 0:
		return condition(v1alpha1.ConditionGraceHonored, false, v1alpha1.ReasonAdmittedWithLess,
			fmt.Sprintf("%s admitted with less grace than promised, pod %s with %d s instead of %d s: something that changes pods on their way into the cluster lowers terminationGracePeriodSeconds.",
				were(less.pods), less.name, less.got, less.promised))
	case cut.pods > 0:
		return condition(v1alpha1.ConditionGraceHonored, false, v1alpha1.ReasonMayBeCut,
			fmt.Sprintf("%s being stopped with less time than promised, pod %s with %d s instead of %d s; its job may be cut.",
				are(cut.pods), cut.name, cut.got, cut.promised))
	default:
		return condition(v1alpha1.ConditionGraceHonored, true, v1alpha1.ReasonPromiseKept, "Every worker has the grace that it was promised.")
	}
}

// tally counts pods and keeps the one with the least.
type tally struct {
	pods          int32
	name          string
	got, promised int64
}

func (t *tally) add(pod *rollout.Pod, got int64) {
	t.pods++
	if t.pods == 1 || got < t.got || got == t.got && pod.Name < t.name {
		t.name, t.got, t.promised = pod.Name, got, pod.Grace.Promised
	}
}

func were(n int32) string {
	if n == 1 {
		return "1 worker was"
	}
	return fmt.Sprintf("%d workers were", n)
}

func are(n int32) string {
	if n == 1 {
		return "1 worker is"
	}
	return fmt.Sprintf("%d workers are", n)
}
