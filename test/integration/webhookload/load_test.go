// SPDX-License-Identifier: Apache-2.0

package webhookload

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
)

const (
	objects   = 50
	perSecond = 50
	// takenQueue is polled by a worker whose jobs are longer than the
	// reservations of all others here.
	takenQueue = "orders"
	patience   = 2 * time.Minute
	// atOnce bounds what is under way on a machine that cannot keep up.
	atOnce = 4 * perSecond
)

// write is one request: an update of a stored object, or a create that is only
// tried.
type write struct {
	update bool
	nature nature
	number int
}

func (w write) kind() string {
	if w.update {
		return "update, " + string(w.nature)
	}
	return "dry-run create, " + string(w.nature)
}

// pickWrite is the n-th write: half updates; of ten, six good, two warned and two
// broken.
func pickWrite(random *rand.Rand, n int) write {
	w := write{number: n, update: n%2 == 0, nature: good}
	switch random.IntN(10) {
	case 0, 1:
		w.nature = warned
	case 2, 3:
		w.nature = broken
	}
	return w
}

// spec is a worker of the nature; the number makes each a change.
func (w write) spec(own string) v1alpha1.QueueWorkerSpec {
	spec := v1alpha1.QueueWorkerSpec{
		Replicas: ptr.To[int32](0),
		Queue:    v1alpha1.Queue{Connection: "database", Names: []string{own}, Store: "shop-mysql"},
		Timeouts: v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](20), JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](60)},
		Worker:   v1alpha1.Worker{MaxJobs: ptr.To(int32(w.number + 1))},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: v1alpha1.WorkerContainer, Image: "registry.example/shop:1.4.2",
		}}}},
	}
	switch w.nature {
	case warned:
		spec.Timeouts.HTTPSeconds = ptr.To[int32](28)
	case broken:
		spec.Queue.Names = []string{own, takenQueue}
	case good:
	}
	return spec
}

// send writes, and returns the API server's answer.
func (w write) send(ctx context.Context, namespace string) (answer, error) {
	warnings := &heard{}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, heardKey{}, warnings), patience)
	defer cancel()
	var err error
	if w.update {
		name := stored(w.number / 2 % objects)
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"spec": w.spec(name)}); err != nil {
			return other, err
		}
		err = k8s.Patch(ctx, object(namespace, name), client.RawPatch(types.MergePatchType, patch))
	} else {
		qw := object(namespace, fmt.Sprintf("tried-%d", w.number))
		qw.Spec = w.spec(qw.Name)
		err = k8s.Create(ctx, qw, client.DryRunAll)
	}
	return answerOf(err, warnings.all()), err
}

func stored(i int) string { return fmt.Sprintf("stored-%d", i) }

func object(namespace, name string) *v1alpha1.QueueWorker {
	return &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// populated makes a namespace with the objects, once the webhook answers.
func populated(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "qw-"}}
	if err := k8s.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	slow := object(namespace.Name, "slow-orders")
	slow.Spec = write{nature: good}.spec(takenQueue)
	slow.Spec.Timeouts.JobSeconds, slow.Spec.Timeouts.RetryAfterSeconds = 180, ptr.To[int32](240)
	all := []*v1alpha1.QueueWorker{slow}
	for i := range objects {
		qw := object(namespace.Name, stored(i))
		qw.Spec = write{nature: good}.spec(qw.Name)
		all = append(all, qw)
	}
	for _, qw := range all {
		eventually(t, "a first write is admitted", func() error { return k8s.Create(t.Context(), qw.DeepCopy()) })
	}
	// A verdict of both replicas: the Service picks one of them at random.
	eventually(t, "the webhook refuses what reads two objects", func() error {
		for n := range 20 {
			got, err := write{nature: broken, number: n}.send(t.Context(), namespace.Name)
			if got != refused {
				return fmt.Errorf("%s: %w", got, err)
			}
		}
		return nil
	})
	return namespace.Name
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) || t.Context().Err() != nil {
			t.Fatalf("after %s still not: %s: %v", patience, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// load writes at a fixed rate, whatever the answers take, until it is told to
// stop, and returns when the last answer has come.
func load(ctx context.Context, namespace string, until <-chan struct{}) *tally {
	result := newTally()
	var under sync.WaitGroup
	places := make(chan struct{}, atOnce)
	random := rand.New(rand.NewPCG(8, perSecond)) // the same writes in every run
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	began := time.Now()
	for n := 0; ; n++ {
		select {
		case <-until:
			result.lasted = time.Since(began)
			under.Wait()
			return result
		case <-tick.C:
		}
		w := pickWrite(random, n)
		places <- struct{}{}
		under.Go(func() {
			defer func() { <-places }()
			start := time.Now()
			got, err := w.send(ctx, namespace)
			result.add(w, got, err, time.Since(start))
		})
	}
}

// holdsTheTakenQueue are the stored objects that no webhook would have admitted.
func holdsTheTakenQueue(t *testing.T, namespace string) []string {
	t.Helper()
	var list v1alpha1.QueueWorkerList
	if err := k8s.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range list.Items {
		if qw := &list.Items[i]; qw.Name != "slow-orders" && slices.Contains(qw.Spec.Queue.Names, takenQueue) {
			found = append(found, qw.Name)
		}
	}
	if len(list.Items) != objects+1 {
		t.Errorf("%d objects are stored, want %d: a dry run left something", len(list.Items), objects+1)
	}
	return found
}
