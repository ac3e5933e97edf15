// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/node/node"
)

// workload is a QueueWorker under load.
type workload struct {
	*shop
	*v1alpha1.QueueWorker
	replicas int
	drained  drains
	straddle map[string]int // how many jobs each kind of event met half-way
}

// event ends pods of a workload, and undoes what it did once they are gone.
type event struct {
	name string
	do   func(t *testing.T, w *workload)
	undo func(t *testing.T, w *workload)
}

// oneNode keeps others from needing new pods while the one node takes none.
var oneNode sync.RWMutex

var events = []event{
	{name: "rolling update", do: func(t *testing.T, w *workload) {
		patched(t, w.QueueWorker, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"version":"%d"}}}}}`, time.Now().UnixNano()))
	}},
	{
		name: "scale to 0",
		do:   func(t *testing.T, w *workload) { w.scale(t, 0) },
		undo: func(t *testing.T, w *workload) { w.scale(t, w.replicas) },
	},
	{
		name: "node drain",
		do: func(t *testing.T, w *workload) {
			mustKubectl(t, "drain", node.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s",
				"--pod-selector="+v1alpha1.LabelName+"="+w.Name)
		},
		undo: func(t *testing.T, _ *workload) { mustKubectl(t, "uncordon", node.Name) },
	},
	{name: "eviction with a shorter grace", do: func(t *testing.T, w *workload) {
		grace := int64(60)
		for _, pod := range workers(w.QueueWorker) {
			err := suite.client.PolicyV1().Evictions(namespace).Evict(t.Context(), &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: namespace},
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace},
			})
			if err != nil {
				t.Error(err)
			}
		}
	}},
	{name: "kubectl delete pod", do: func(t *testing.T, w *workload) {
		mustKubectl(t, "delete", "pod", "--wait=false", "-l", v1alpha1.LabelName+"="+w.Name)
	}},
	{
		name: "deletion of the QueueWorker",
		do:   func(t *testing.T, w *workload) { mustKubectl(t, "delete", "qw", w.Name, "--wait=false") },
		undo: func(t *testing.T, w *workload) { deployed(t, w.QueueWorker) },
	},
	{name: "operator killed in a rolling update", do: func(t *testing.T, w *workload) {
		patched(t, w.QueueWorker, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"version":"%d"}}}}}`, time.Now().UnixNano()))
		killOperator(t)
	}},
}

func (w *workload) scale(t *testing.T, replicas int) {
	t.Helper()
	mustKubectl(t, "scale", "qw", w.Name, "--replicas="+strconv.Itoa(replicas))
}

// Under a load of jobs, whatever ends a worker lets every started job finish, once.
func TestEveryDrainUnderLoad(t *testing.T) {
	operator(t)
	for _, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			w := &workload{shop: newShop(t, connection), replicas: 4, straddle: map[string]int{}}
			w.QueueWorker = w.queueWorker("drains", int32(w.replicas), ordinary)
			deployed(t, w.QueueWorker)
			jobs, shortest, longest, wanted := 600, 4, 8, 5
			if full() {
				jobs, shortest, longest, wanted = 1500, 5, 20, 30
			}
			w.artisan(t, "app:load", w.job("load"), fmt.Sprintf("--jobs=%d", jobs),
				fmt.Sprintf("--from=%d", shortest), fmt.Sprintf("--to=%d", longest), fmt.Sprintf("--seed=%d", suite.seed))
			for _, e := range events {
				for w.straddle[e.name] < wanted {
					w.meet(t, e)
				}
			}
			w.artisan(t, "queue:clear", connection, "--force")
			eventually(t, patience, "the last jobs have ended", func() bool { return len(w.inJob(t)) == 0 })
			w.judge(t)
		})
	}
}

// meet lets an event happen while at least two workers are inside a job, and waits until its pods are gone and there are others.
func (w *workload) meet(t *testing.T, e event) {
	t.Helper()
	if e.name == "node drain" {
		oneNode.Lock()
		defer oneNode.Unlock()
	} else {
		oneNode.RLock()
		defer oneNode.RUnlock()
	}
	eventually(t, patience, "all workers work, at least two of them inside a job", func() bool {
		ready := slices.DeleteFunc(workers(w.QueueWorker), func(p seenPod) bool { return !p.ready() })
		busy := w.inJob(t)
		inside := 0
		for _, pod := range ready {
			if busy[pod.Name] != "" {
				inside++
			}
		}
		return len(ready) == w.replicas && inside >= 2
	})
	victims := workers(w.QueueWorker)
	e.do(t, w)
	for _, victim := range victims {
		pod := awaitGone(t, victim.Name)
		wellEnded(t, pod)
		w.record(t, e, pod)
	}
	if e.undo != nil {
		e.undo(t, w)
	}
}

// record counts the job that the request of the pod's end met, and times the pod's end.
func (w *workload) record(t *testing.T, e event, pod seenPod) {
	t.Helper()
	for _, runs := range w.runs(t) {
		for _, r := range runs {
			if r.pod == pod.Name && r.start.Before(pod.asked) && r.end.After(pod.asked.Add(time.Second)) {
				w.straddle[e.name]++
				w.drained.add(pod.gone.Sub(r.end))
				return
			}
		}
	}
}

// judge asserts that every job that began has ended, once and after its whole time.
func (w *workload) judge(t *testing.T) {
	t.Helper()
	all := w.runs(t)
	for name, runs := range all {
		words := strings.Split(name, "-")
		seconds, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			t.Fatalf("job %s: its name does not end with its seconds", name)
		}
		if fault := notOnce(runs, seconds); fault != "" {
			t.Errorf("job %s %s: %+v", name, fault, runs)
		}
	}
	w.nothingLeft(t)
	t.Logf("%s: %d jobs begun, each ended once; met half-way: %v", w.connection, len(all), w.straddle)
	w.drained.check(t, "the end of their job, under load")
}
