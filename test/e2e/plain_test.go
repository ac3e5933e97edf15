// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// The textbook's double run: the queue hands a job out again after 5 s, the job takes 12 s, and there is a second worker.
func TestPlainDeploymentRunsOneJobTwice(t *testing.T) {
	beside(t)
	for _, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, connection)
			order := s.job("order")
			deployed(t, s.plain("textbook", 2, limits{job: 30, retryAfter: 5, grace: 30}))
			s.dispatch(t, "Charges", "order", map[string]any{"order": order, "seconds": 12})
			s.started(t, "order", 2)
			s.finished(t, "order")
			eventually(t, patience, "both workers have charged", func() bool { return charges(t)[order] >= 2 })
			runs := s.runs(t)["order"]
			if runs[0].pod == runs[1].pod || !runs[1].start.Before(runs[0].end) {
				t.Errorf("wanted two workers inside one job at a time, got %+v", runs)
			}
			t.Logf("%s: 1 job, %d starts, the second %.1f s after the first, %d charges", connection,
				len(runs), runs[1].start.Sub(runs[0].start).Seconds(), charges(t)[order])
		})
	}
}

// charges is how often the provider has charged for each order.
func charges(t *testing.T) map[string]int {
	t.Helper()
	text, err := suite.client.CoreV1().Services(namespace).ProxyGet("http", "provider", "8080", "/charges", nil).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	if err := json.Unmarshal(text, &counts); err != nil {
		t.Fatalf("charges %q: %v", text, err)
	}
	return counts
}

// Kubernetes' own grace of 30 s ends jobs of 45 s, and the queue runs them again.
func TestDefaultGraceCutsJobs(t *testing.T) {
	beside(t)
	for _, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			const jobs = 2
			s := newShop(t, connection)
			deployment := s.plain("default-grace", jobs, limits{job: 50, retryAfter: 55, grace: 30})
			// Both are asked to stop at once, not when the first of the new ones is ready: by then the jobs could be over.
			deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
			s.dispatch(t, "Long", "job", seconds(45), fmt.Sprintf("--times=%d", jobs))
			deployed(t, deployment)
			names := []string{"job-0", "job-1"}
			for _, name := range names {
				s.started(t, name, 1)
			}
			mustKubectl(t, "rollout", "restart", "deployment/"+deployment.Name)
			cut := 0
			for _, name := range names {
				runs := s.started(t, name, 2)
				pod := awaitGone(t, runs[0].pod)
				if runs[0].end.IsZero() && len(pod.faults()) > 0 {
					cut++
				}
			}
			t.Logf("%s: a rollout over %d jobs of 45 s with the default grace of 30 s: %d cut and run again", connection, jobs, cut)
			if cut != jobs {
				t.Errorf("%d of %d jobs were cut, wanted all: the comparison shows nothing", cut, jobs)
			}
		})
	}
}

// SIGTERM ends PHP's sleep() early, and artisan calls such a job done.
func TestPlainArtisanCutsSleep(t *testing.T) {
	beside(t)
	s := newShop(t, onRedis)
	deployed(t, s.plain("sleep", 1, ordinary))
	s.dispatch(t, "Sleeps", "nap", seconds(20))
	run := s.started(t, "nap", 1)[0]
	time.Sleep(time.Second)
	mustKubectl(t, "delete", "pod", run.pod, "--wait=false")
	took := s.finished(t, "nap").end.Sub(run.start)
	t.Logf("a job's sleep of 20 s lasted %.1f s", took.Seconds())
	if took > 15*time.Second {
		t.Errorf("the sleep was not cut: it lasted %s", took)
	}
	awaitGone(t, run.pod)
	s.nothingLeft(t)
}
