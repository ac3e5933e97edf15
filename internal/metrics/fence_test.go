// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/internal/metrics"
)

func TestFenceFollowsItsQueueWorker(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	const name = "queueworker_fence_ready"
	is := func(series string) {
		t.Helper()
		text := ""
		if series != "" {
			text = "# HELP " + name + " Whether the fence of every worker serves (1) or one does not (0), by QueueWorker. " +
				"No series where there is no fence, or while none has served yet.\n# TYPE " + name + " gauge\n" + series
		}
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
			t.Error(err)
		}
	}
	m.SetFence("shop", "pay", metav1.ConditionTrue)
	m.SetFence("shop", "mail", metav1.ConditionFalse)
	is(name + `{name="mail",namespace="shop"} 0` + "\n" + name + `{name="pay",namespace="shop"} 1` + "\n")
	m.SetFence("shop", "mail", metav1.ConditionUnknown)
	is(name + `{name="pay",namespace="shop"} 1` + "\n")
	m.Forget("shop", "pay")
	is("")
}
