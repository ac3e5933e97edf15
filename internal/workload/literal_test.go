// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/workload"
)

// A variable in extraArgs, a queue's name or any other word of the spec must not become an option that the
// rules never saw.
func TestRenderedWordsAreNotExpanded(t *testing.T) {
	qw := load(t, "testdata/laravel.yaml")
	qw.Spec.Worker.ExtraArgs = []string{"$(WORKER_OPTS)"}
	qw.Spec.Queue.Names = []string{"$(QUEUE)"}
	qw.Spec.Worker.Wrapper = []string{"/$(START)"}
	qw.Spec.Drain.BeforeStop = &v1alpha1.BeforeStop{Command: []string{"$(STOP)"}, TimeoutSeconds: 1}
	deployment := workload.Deployment(qw, render(t, qw), nil)
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if *container.Name != "worker" {
			continue
		}
		line := slices.Concat(container.Command, container.Args)
		for _, want := range []string{"$$(WORKER_OPTS)", "--queue=$$(QUEUE)", "/$$(START)", `--before-stop=["$$(STOP)"]`} {
			if !slices.Contains(line, want) {
				t.Errorf("%q is not in %q", want, line)
			}
		}
		return
	}
	t.Error("no worker container")
}
