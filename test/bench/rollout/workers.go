// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
)

// namespace holds all objects: the hardest case for whatever lists one.
const namespace = "bench"

// settleLimit bounds the wait for one run.
const settleLimit = 30 * time.Minute

// No monitor: what is compared is the way from a declaration to its workers, and the bare client makes nothing else.
const manifest = `
spec:
  monitor: {enabled: false}
  queue: {connection: redis, names: [payments, default], blockForSeconds: 5}
  timeouts: {httpSeconds: 20, jobSeconds: 30, retryAfterSeconds: 90}
  template:
    spec:
      containers:
        - name: worker
          image: registry.example/shop:1.4.2
          env: [{name: APP_ENV, value: production}]
          envFrom: [{secretRef: {name: shop-env}}]
          resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 512Mi}}
`

func worker(n int) (*v1alpha1.QueueWorker, error) {
	qw := &v1alpha1.QueueWorker{}
	err := yaml.UnmarshalStrict([]byte(manifest), qw)
	qw.Namespace, qw.Name = namespace, fmt.Sprintf("worker-%04d", n)
	return qw, err
}

// createWorkers makes the QueueWorkers, as many at a time as there are clients,
// and hands each on as it was stored.
func createWorkers(ctx context.Context, clients []client.Client, count int, made func(*v1alpha1.QueueWorker)) error {
	errs := make([]error, len(clients))
	var next atomic.Int64
	var group sync.WaitGroup
	for i, c := range clients {
		group.Go(func() {
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= count {
					return
				}
				qw, err := worker(n)
				if err == nil {
					err = c.Create(ctx, qw)
				}
				errs[i] = err
				if err == nil {
					made(qw)
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// settling watches QueueWorkers become Current in the judgement of kstatus.
type settling struct {
	done chan error
	stop context.CancelFunc
}

func watchSettling(ctx context.Context, c client.WithWatch, count int) (*settling, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueWorkerList"))
	ctx, stop := context.WithCancel(ctx)
	s := &settling{done: make(chan error, 2), stop: stop}
	settled := map[string]bool{}
	err := follow(ctx, c, list, func(o runtime.Object) {
		object, ok := o.(*unstructured.Unstructured)
		if !ok || len(settled) == count {
			return
		}
		if isSettled(object) {
			settled[object.GetName()] = true
		} else {
			delete(settled, object.GetName())
		}
		if len(settled) == count {
			s.done <- nil
		}
	}, func(err error) { s.done <- err })
	if err != nil {
		stop()
	}
	return s, err
}

func isSettled(object *unstructured.Unstructured) bool {
	result, err := kstatus.Compute(object)
	if err != nil || result.Status != kstatus.CurrentStatus {
		return false
	}
	ready, _, err := unstructured.NestedString(object.Object, "status", "ready")
	return err == nil && ready == "1/1"
}

func (s *settling) wait(ctx context.Context) error {
	defer s.stop()
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settleLimit):
		return fmt.Errorf("not settled after %s", settleLimit)
	}
}

// clean deletes all that the last run left, owners first and without a grace,
// which is faster than waiting for the garbage collector.
func clean(ctx context.Context, c client.Client) error {
	for _, kind := range []schema.GroupVersionKind{
		v1alpha1.SchemeGroupVersion.WithKind("QueueWorker"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	} {
		if err := deleteAll(ctx, c, kind); err != nil {
			return fmt.Errorf("deleting every %s: %w", kind.Kind, err)
		}
	}
	return nil
}

// deleteAll asks again while it helps: the API server ends a request after a
// minute, whatever is left.
func deleteAll(ctx context.Context, c client.Client, kind schema.GroupVersionKind) error {
	object, left := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	object.SetGroupVersionKind(kind)
	left.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for before := int64(math.MaxInt64); ; {
		refused := c.DeleteAllOf(ctx, object, client.InNamespace(namespace), client.GracePeriodSeconds(0))
		if err := c.List(ctx, left, client.InNamespace(namespace), client.Limit(1)); err != nil || len(left.Items) == 0 {
			return err
		}
		now := 1 + ptr.Deref(left.RemainingItemCount, 0)
		if refused != nil && now >= before {
			return refused
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
