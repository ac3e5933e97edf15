// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leftWithin is how soon after its job's end a drained pod is gone, for 95 of 100 pods. Only the long profile holds it to that: it
// has the machine to itself.
const leftWithin = 1500 * time.Millisecond

// drains are times between the end of a job, or the request of an idle worker's end, and the end of its pod.
type drains struct {
	mu    sync.Mutex
	times []time.Duration
}

func (d *drains) add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, took)
}

// check prints the distribution and fails the test where it is too slow.
func (d *drains) check(t *testing.T, what string) {
	t.Helper()
	if len(d.times) == 0 {
		t.Fatal("no pod was drained")
	}
	slices.Sort(d.times)
	p := func(share float64) time.Duration { return d.times[int(share*float64(len(d.times)-1)+0.5)] }
	t.Logf("%d pods gone after %s: median %.2f s, p95 %.2f s, slowest %.2f s",
		len(d.times), what, p(0.5).Seconds(), p(0.95).Seconds(), p(1).Seconds())
	if full() && p(0.95) > leftWithin {
		t.Errorf("p95 is %s, wanted at most %s", p(0.95), leftWithin)
	}
}

// wellEnded asserts that a pod was drained and not killed.
func wellEnded(t *testing.T, pod seenPod) {
	t.Helper()
	for _, fault := range append(pod.faults(), failedHooks(t, pod.Name)...) {
		t.Errorf("pod %s: %s", pod.Name, fault)
	}
}

// A worker under the agent, in pods put together by hand, is deleted in the middle of a job that waits in sleep().
func TestAgentDrainsInMidJob(t *testing.T) {
	beside(t)
	var left drains
	t.Run("pods", func(t *testing.T) {
		for i, connection := range connections {
			for j, app := range []string{"app", "app-sigquit", "app-sigwinch", "app-shell-less"} {
				for k, hook := range []bool{true, false} {
					if !full() && (i+j+k)%2 == 1 {
						continue // half of them, in which any two of the three meet
					}
					name := strings.Join([]string{connection, app, map[bool]string{true: "hook", false: "signal"}[hook]}, "-")
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						s := newShop(t, connection)
						pod := s.withAgent("worker", app, hook, ordinary)
						deployed(t, pod)
						awaitReady(t, pod.Name)
						s.dispatch(t, "Sleeps", "nap", seconds(8))
						s.started(t, "nap", 1)
						time.Sleep(time.Second)
						mustKubectl(t, "delete", "pod", pod.Name, "--wait=false")
						gone := awaitGone(t, pod.Name)
						run := s.ranOnce(t, "nap", 8)
						left.add(gone.gone.Sub(run.end))
						wellEnded(t, gone)
						s.nothingLeft(t)
					})
				}
			}
		}
	})
	left.check(t, "the end of their job")
}

// An idle worker has nothing to wait for.
func TestAgentDrainsIdle(t *testing.T) {
	beside(t)
	var left drains
	t.Run("pods", func(t *testing.T) {
		for i, connection := range slices.Repeat(connections, repeats()) {
			t.Run(fmt.Sprint(connection, i), func(t *testing.T) {
				t.Parallel()
				s := newShop(t, connection)
				pod := s.withAgent("worker", "app", true, ordinary)
				deployed(t, pod)
				awaitReady(t, pod.Name)
				s.dispatch(t, "Short", "first", nil)
				s.finished(t, "first") // it is in its loop
				asked := time.Now()
				mustKubectl(t, "delete", "pod", pod.Name, "--wait=false")
				gone := awaitGone(t, pod.Name)
				left.add(gone.gone.Sub(asked))
				wellEnded(t, gone)
			})
		}
	})
	left.check(t, "the request, all idle")
}

// A worker that is stopped while it starts ends as well as any other.
func TestAgentDrainsInBoot(t *testing.T) {
	beside(t)
	for i := range repeats() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onRedis)
			pod := s.withAgent("worker", "app", i%2 == 0, ordinary)
			deployed(t, pod)
			eventually(t, patience, "its container runs", func() bool {
				now, ok := suite.pods.get(pod.Name)
				return ok && len(now.Status.ContainerStatuses) > 0 && now.Status.ContainerStatuses[0].State.Running != nil
			})
			mustKubectl(t, "delete", "pod", pod.Name, "--wait=false")
			wellEnded(t, awaitGone(t, pod.Name))
		})
	}
}

// A pop that is under way when the gate closes cannot be called back: its job is run, in full.
func TestAgentDrainsInABlockingPop(t *testing.T) {
	beside(t)
	for i := range repeats() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onRedis)
			pod := s.withAgent("worker", "app", true, ordinary)
			worker := &pod.Spec.Containers[0]
			worker.Env = append(worker.Env, corev1.EnvVar{Name: "REDIS_QUEUE_BLOCK_FOR", Value: "20"})
			deployed(t, pod)
			awaitReady(t, pod.Name)
			s.dispatch(t, "Short", "first", nil)
			s.finished(t, "first")
			mustKubectl(t, "delete", "pod", pod.Name, "--wait=false")
			s.dispatch(t, "Sleeps", "late", seconds(5))
			wellEnded(t, awaitGone(t, pod.Name))
			if len(s.runs(t)["late"]) == 1 {
				s.ranOnce(t, "late", 5)
				s.nothingLeft(t)
			} else {
				t.Error("the pop was over before the job came: this shows nothing")
			}
		})
	}
}

// repeats is how many pods of each kind a test stops that asks for several.
func repeats() int {
	if full() {
		return 20
	}
	return 3
}

// An eviction is a deletion with another name; its caller may ask for another grace.
func TestAgentDrainsOnEviction(t *testing.T) {
	beside(t)
	for _, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, connection)
			pod := s.withAgent("worker", "app", true, ordinary)
			deployed(t, pod)
			awaitReady(t, pod.Name)
			s.dispatch(t, "Sleeps", "nap", seconds(8))
			s.started(t, "nap", 1)
			grace := int64(30)
			err := suite.client.PolicyV1().Evictions(namespace).Evict(t.Context(), &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: namespace},
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace},
			})
			if err != nil {
				t.Fatal(err)
			}
			gone := awaitGone(t, pod.Name)
			s.ranOnce(t, "nap", 8)
			wellEnded(t, gone)
			if !slices.ContainsFunc(gone.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
				t.Error("the pod does not say that it was evicted")
			}
		})
	}
}
