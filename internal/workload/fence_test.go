// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/workload"
)

func hasFence(containers []corev1.Container) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == v1alpha1.FenceContainer })
}

// A fence waits for its database, so nothing that has to come to an end may wait
// for the fence.
func TestThePreflightDoesNotWaitForTheFence(t *testing.T) {
	spec := pod(t, "fence", func(*v1alpha1.QueueWorker) {})
	if last := spec.InitContainers[len(spec.InitContainers)-1]; last.Name != v1alpha1.FenceContainer {
		t.Errorf("%s starts after the fence", last.Name)
	}
	preflight := named(t, spec.InitContainers, v1alpha1.PreflightContainer)
	if !slices.ContainsFunc(preflight.Env, func(e corev1.EnvVar) bool { return e.Name == v1alpha1.FenceURLEnv }) {
		t.Error("the preflight does not see the fence's address, as the worker does")
	}
	qw := load(t, "testdata/fence.yaml")
	trial, err := workload.Trial(qw, render(t, qw))
	if err != nil || trial == nil {
		t.Fatalf("%v, %v", trial, err)
	}
	if hasFence(trial.Spec.InitContainers) || hasFence(trial.Spec.Containers) || len(trial.Spec.InitContainers) != 2 {
		t.Errorf("a pod that only runs the preflight has %d init containers, a fence among them: %v", len(trial.Spec.InitContainers), hasFence(trial.Spec.InitContainers))
	}
}
