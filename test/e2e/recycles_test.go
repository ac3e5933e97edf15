// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Every way in which a worker stops itself between two jobs is followed by the next worker in the same container, 20 times: the
// kubelet never hears of it.
func TestRecyclesAreNoRestarts(t *testing.T) {
	beside(t)
	const recycles = 20
	for name, c := range map[string]struct {
		class  string
		facts  map[string]any
		change func(*v1alpha1.Worker)
	}{
		"maxJobs":         {"Short", nil, func(w *v1alpha1.Worker) { w.MaxJobs = ptr.To[int32](1) }},
		"maxTimeSeconds":  {"Long", seconds(1.1), func(w *v1alpha1.Worker) { w.MaxTimeSeconds = ptr.To[int32](1) }},
		"memoryMegabytes": {"EatsMemory", map[string]any{"megabytes": 80}, func(w *v1alpha1.Worker) { w.MemoryMegabytes = ptr.To[int32](64) }},
		"a job's timeout": {"Long", map[string]any{"seconds": 30, "timeout": 1, "tries": 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onRedis)
			// Before there is a worker: one with a maximal time and no job would recycle all the same, and soon be called broken.
			s.dispatch(t, c.class, "job", c.facts, fmt.Sprintf("--times=%d", 3*recycles))
			qw := s.queueWorker("recycles", 1, ordinary)
			if c.change != nil {
				c.change(&qw.Spec.Worker)
			}
			operator(t)
			deployed(t, qw)
			eventually(t, patience, "a job after the last recycle", func() bool { return s.processes(t) > recycles })
			pods := workers(qw)
			if len(pods) != 1 || pods[0].Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("wanted one pod whose container was never restarted, got %d: %+v", len(pods), pods[0].Status.ContainerStatuses)
			}
			if kill := current(t, qw).Status.LastKill; kill != nil {
				t.Errorf("the operator calls it a kill: %+v", kill)
			}
		})
	}
}

// processes is how many have run the shop's jobs, all in one pod.
func (s *shop) processes(t *testing.T) int {
	t.Helper()
	pids := map[int]bool{}
	for _, runs := range s.runs(t) {
		for _, r := range runs {
			pids[r.pid] = true
		}
	}
	return len(pids)
}

// Plain artisan as the container's command: each recycle is a restart to the kubelet, which soon lets it wait.
func TestPlainRecyclesBackOff(t *testing.T) {
	beside(t)
	s := newShop(t, onRedis)
	deployment := s.plain("recycles", 1, ordinary)
	worker := &deployment.Spec.Template.Spec.Containers[0]
	worker.Command = append(worker.Command, "--max-jobs=1")
	s.dispatch(t, "Short", "job", nil, "--times=21")
	deployed(t, deployment)
	restarts := awaitBackOff(t, shopLabel, s.name)
	time.Sleep(5 * time.Second)
	if done := len(s.runs(t)); done == 21 {
		t.Error("all 21 jobs ran: the comparison shows nothing")
	} else {
		t.Logf("CrashLoopBackOff after %d clean ends; %d of 21 jobs have run", restarts, done)
	}
}

// An end that the worker did not announce is a crash whatever its code, and crashes back off.
func TestCrashesBackOff(t *testing.T) {
	beside(t)
	s := newShop(t, onRedis)
	qw := s.queueWorker("crashes", 1, ordinary)
	declared(t, qw)
	pod := workers(qw)[0].Name
	s.dispatch(t, "Exits", "job", map[string]any{"code": 0}, "--times=5")
	kill := awaitKill(t, qw, pod, v1alpha1.KillCrashed)
	t.Log(kill.Message)
	awaitBackOff(t, v1alpha1.LabelName, qw.Name)
}

// awaitBackOff waits until the kubelet lets a container of the pods with this label wait before its next start, and returns how
// often it was started again before.
func awaitBackOff(t *testing.T, key, value string) int32 {
	t.Helper()
	var restarts int32
	eventually(t, patience, "CrashLoopBackOff", func() bool {
		for _, pod := range suite.pods.labelled(key, value) {
			for _, status := range pod.Status.ContainerStatuses {
				if status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff" {
					restarts = status.RestartCount
					return true
				}
			}
		}
		return false
	})
	return restarts
}
