// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Workers of one database table steal each other's jobs where one's reservation is shorter than the other's job. So a rollout
// between two such declarations drains the older workers first: a long job of the older declaration ends before the first worker
// with the shorter reservation starts, and the other way round.
func TestDatabaseRolloutThatDoesNotFitDrainsFirst(t *testing.T) {
	beside(t)
	s := newShop(t, onDatabase)
	small, large, long := limits{job: 10, retryAfter: 15}, limits{job: 60, retryAfter: 90}, 30.0
	if full() {
		small, large, long = limits{job: 60, retryAfter: 90}, limits{job: 600, retryAfter: 700}, 120
	}
	qw := s.queueWorker("table", 2, small)
	qw.Spec.Timeouts.HTTPSeconds = ptr.To[int32](2)
	declared(t, qw)
	s.artisan(t, "app:load", s.job("load"), "--jobs=40", "--from=4", "--to=8", fmt.Sprintf("--seed=%d", suite.seed))

	s.roll(t, qw, large)
	s.artisan(t, "queue:clear", s.connection, "--force") // so that the long one is next
	s.dispatch(t, "Long", "long", seconds(long))
	s.started(t, "long", 1)
	s.roll(t, qw, small)
	s.dispatch(t, "Short", "last", nil)
	s.finished(t, "last")

	all := s.runs(t)
	for name, runs := range all {
		if len(runs) != 1 {
			t.Errorf("job %s was started %d times: %+v", name, len(runs), runs)
		}
	}
	s.ranOnce(t, "long", long)
	t.Logf("%d jobs begun, each once", len(all))
	s.nothingLeft(t)
}

// roll changes the declared numbers and waits until the rollout is over. No worker may start before the last older one is gone.
func (s *shop) roll(t *testing.T, qw *v1alpha1.QueueWorker, to limits) {
	t.Helper()
	older := workers(qw)
	patched(t, qw, fmt.Sprintf(`{"spec":{"timeouts":{"jobSeconds":%d,"retryAfterSeconds":%d}}}`, to.job, to.retryAfter))
	eventually(t, 2*patience, "workers with a job of "+fmt.Sprint(to.job), func() bool {
		return slices.ContainsFunc(workers(qw), func(p seenPod) bool { return p.CreationTimestamp.After(older[0].CreationTimestamp.Time) && p.ready() })
	})
	settled(t, qw)
	var last time.Time // to the second, as is the time of the new ones
	for _, pod := range older {
		pod = awaitGone(t, pod.Name)
		wellEnded(t, pod)
		for _, status := range pod.Status.ContainerStatuses {
			if end := status.State.Terminated; end != nil && end.FinishedAt.After(last) {
				last = end.FinishedAt.Time
			}
		}
	}
	for _, pod := range workers(qw) {
		if pod.CreationTimestamp.Time.Before(last) {
			t.Errorf("pod %s was made at %s, while an older worker was there until %s", pod.Name, pod.CreationTimestamp, last)
		}
	}
	messages := told(t, qw, "RolloutAsRecreate")
	if !slices.ContainsFunc(messages, func(m string) bool {
		return strings.Contains(m, fmt.Sprint(to.job)) && strings.Contains(m, fmt.Sprint(to.retryAfter))
	}) {
		t.Errorf("no event says why: %q", messages)
	}
}
