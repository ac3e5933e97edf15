// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/metrics"
)

func TestWorkersFollowTheStatus(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	qw := &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mail"}, Spec: v1alpha1.QueueWorkerSpec{Replicas: ptr.To[int32](3)}}
	status := &v1alpha1.QueueWorkerStatus{ReadyReplicas: 2, TerminatingReplicas: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonImageUnavailable},
		{Type: v1alpha1.ConditionGraceHonored, Status: metav1.ConditionFalse},
	}}
	names := []string{"queueworker_workers", "queueworker_stalled", "queueworker_grace_honored"}
	is := func(series ...string) {
		t.Helper()
		text := ""
		for _, family := range []struct{ name, help string }{
			{names[2], "Whether every worker has the grace that its chain promises (1) or one does not (0), by QueueWorker."},
			{names[1], "1 while a QueueWorker waits for what only a change can fix, by the reason of its condition Stalled. No series otherwise."},
			{names[0], "Workers of a QueueWorker by state: wanted; ready; draining, that is asked to stop and still there."},
		} {
			lines := ""
			for _, s := range series {
				if strings.HasPrefix(s, family.name+"{") {
					lines += s + "\n"
				}
			}
			if lines != "" {
				text += "# HELP " + family.name + " " + family.help + "\n# TYPE " + family.name + " gauge\n" + lines
			}
		}
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text), names...); err != nil {
			t.Error(err)
		}
	}
	m.SetStatus(qw, status)
	is(`queueworker_grace_honored{name="mail",namespace="shop"} 0`,
		`queueworker_stalled{name="mail",namespace="shop",reason="ImageUnavailable"} 1`,
		`queueworker_workers{name="mail",namespace="shop",state="draining"} 1`,
		`queueworker_workers{name="mail",namespace="shop",state="ready"} 2`,
		`queueworker_workers{name="mail",namespace="shop",state="wanted"} 3`)

	status.Conditions[0].Reason = v1alpha1.ReasonChainBroken // another reason replaces the first
	status.Conditions[1].Status = metav1.ConditionTrue
	m.SetStatus(qw, status)
	is(`queueworker_grace_honored{name="mail",namespace="shop"} 1`,
		`queueworker_stalled{name="mail",namespace="shop",reason="ChainBroken"} 1`,
		`queueworker_workers{name="mail",namespace="shop",state="draining"} 1`,
		`queueworker_workers{name="mail",namespace="shop",state="ready"} 2`,
		`queueworker_workers{name="mail",namespace="shop",state="wanted"} 3`)

	qw.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	m.SetStatus(qw, &v1alpha1.QueueWorkerStatus{TerminatingReplicas: 2})
	is(`queueworker_workers{name="mail",namespace="shop",state="draining"} 2`,
		`queueworker_workers{name="mail",namespace="shop",state="ready"} 0`,
		`queueworker_workers{name="mail",namespace="shop",state="wanted"} 0`)

	m.Forget("shop", "mail")
	is()
}
