// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"testing"
	"time"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/node/image"
)

// However an image stops, and whatever stands between the agent and php: the job that runs when the drain begins ends as it
// would have.
func TestImagesAndCommandsDrainAlike(t *testing.T) {
	beside(t)
	for name, c := range map[string]struct {
		image  string
		change func(*v1alpha1.QueueWorker)
		class  string // a drain of a command of which nothing is known is a SIGTERM, which ends sleep()
	}{
		"no shell":                {"app-shell-less", nil, "Sleeps"},
		"stop signal SIGQUIT":     {"app-sigquit", nil, "Sleeps"},
		"stop signal SIGWINCH":    {"app-sigwinch", nil, "Sleeps"},
		"wrapper that execs":      {"app", wrapped("/bin/sh", "-c", `exec "$@"`, "sh"), "Sleeps"},
		"wrapper that does not":   {"app", wrapped("/bin/sh", "-c", `"$@"; exit $?`, "sh"), "Sleeps"},
		"generic, sh -c, no exec": {"app", shellCommand, "Long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onRedis)
			qw := s.queueWorker("worker", 1, ordinary)
			qw.Spec.Template.Spec.Containers[0].Image = image.Name(c.image)
			if c.change != nil {
				c.change(qw)
			}
			declared(t, qw)
			s.dispatch(t, c.class, "job", seconds(8))
			run := s.started(t, "job", 1)[0]
			time.Sleep(time.Second)
			mustKubectl(t, "delete", "pod", run.pod, "--wait=false")
			wellEnded(t, awaitGone(t, run.pod))
			s.ranOnce(t, "job", 8)
			s.nothingLeft(t)
		})
	}
}

func wrapped(words ...string) func(*v1alpha1.QueueWorker) {
	return func(qw *v1alpha1.QueueWorker) { qw.Spec.Worker.Wrapper = words }
}

// shellCommand makes it a worker that a shell runs and waits for.
func shellCommand(qw *v1alpha1.QueueWorker) {
	qw.Spec.Runtime, qw.Spec.Worker = v1alpha1.RuntimeGeneric, v1alpha1.Worker{}
	qw.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "php artisan queue:work --sleep=1 --timeout=60; exit $?"}
}
