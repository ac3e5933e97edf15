// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Horizon's process tree, by a stand-in of the application (Debian has no Horizon): a master that keeps two workers. Both are in
// a job when the drain begins, and both jobs end.
func TestHorizonTreeDrains(t *testing.T) {
	beside(t)
	length := 25.0 // all that comes before the drain must fit in, with many tests at once
	if full() {
		length = 50
	}
	s := newShop(t, onRedis)
	qw := s.queueWorker("horizon", 1, ordinary)
	qw.Spec.Runtime, qw.Spec.Worker = v1alpha1.RuntimeHorizon, v1alpha1.Worker{}
	worker := &qw.Spec.Template.Spec.Containers[0]
	worker.Env = append(worker.Env, corev1.EnvVar{Name: "HORIZON_TIMEOUT", Value: "60"}) // a supervisor's, in config/horizon.php
	declared(t, qw)
	s.dispatch(t, "Sleeps", "h", seconds(length), "--times=2")
	s.dispatch(t, "Short", "next", nil)
	run := s.started(t, "h-0", 1)[0]
	s.started(t, "h-1", 1)
	time.Sleep(time.Second)
	patched(t, qw, `{"spec":{"replicas":0}}`)
	pod := awaitGone(t, run.pod)
	wellEnded(t, pod)
	for _, name := range []string{"h-0", "h-1"} {
		if end := s.ranOnce(t, name, length).end; end.Before(pod.asked) {
			t.Fatalf("job %s ended at %s, before the drain of %s: nothing was shown", name, end, pod.asked)
		}
	}
	if runs := s.runs(t)["next"]; len(runs) != 0 {
		t.Errorf("a worker took another job in the drain: %+v", runs)
	}
}
