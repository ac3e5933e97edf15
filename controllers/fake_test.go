// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/metrics"
)

// world is a reconciler in front of a fake API server, with a clock that stands.
type world struct {
	t          *testing.T
	reconciler *Reconciler
	clock      *clocktesting.FakePassiveClock
	client     client.Client
	events     *events.FakeRecorder
	metrics    *prometheus.Registry
	applies    int   // applies of Deployments and budgets
	statuses   int   // writes of statuses
	answer     error // to the next applies; nil = they work
	drops      bool  // the API server drops a field that was applied
	hidden     error // to who reads a ServiceAccount; nil = it works
	overtaken  int   // which write of a status meets somebody else's, counted from now; 0 = none
}

const agentImage = "registry.example/operator:1.0.0"

var mail = types.NamespacedName{Namespace: "shop", Name: "mail"}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)), events: events.NewFakeRecorder(100)}
	w.client = fake.NewClientBuilder().
		WithScheme(scheme).
		WithReturnManagedFields().
		WithIndex(&corev1.Pod{}, workerIndex, indexedWorker).
		WithIndex(replicaSetMetadata(), workerIndex, indexedWorker).
		WithStatusSubresource(&v1alpha1.QueueWorker{}).
		WithObjects(&v1alpha1.QueueWorker{
			ObjectMeta: metav1.ObjectMeta{Namespace: mail.Namespace, Name: mail.Name, UID: "worker-1", Generation: 1},
			Spec: v1alpha1.QueueWorkerSpec{
				Replicas: ptr.To[int32](2),
				Queue:    v1alpha1.Queue{Connection: "redis"},
				Timeouts: v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](20), JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](90)},
				Monitor:  v1alpha1.Monitor{Enabled: ptr.To(false)}, // the tests of monitors turn it on
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "worker", Image: "x:1"}}}},
			},
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				w.applies++
				if w.answer != nil {
					return w.answer
				}
				err := c.Apply(ctx, object, options...)
				w.dropField(object)
				return err
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, account := object.(*corev1.ServiceAccount); account && w.hidden != nil {
					return w.hidden
				}
				err := c.Get(ctx, key, object, options...)
				w.dropField(object)
				return err
			},
			SubResourceApply: func(ctx context.Context, c client.Client, name string, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
				w.statuses++
				if err := w.overtake(); err != nil {
					return err
				}
				return c.SubResource(name).Apply(ctx, object, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				if err := w.overtake(); err != nil {
					return err
				}
				return c.SubResource(name).Patch(ctx, object, patch, options...)
			},
		}).Build()
	w.restart()
	return w
}

// restart begins anew with a reconciler that remembers nothing.
func (w *world) restart() {
	w.metrics = prometheus.NewRegistry()
	w.reconciler = newReconciler(Options{Clock: w.clock, AgentImage: agentImage, Metrics: metrics.New(w.metrics)})
	w.reconciler.client, w.reconciler.live, w.reconciler.events = w.client, w.client, w.events
}

// overtake is the conflict that a write of a status meets.
func (w *world) overtake() error {
	w.overtaken--
	if w.overtaken != 0 {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "queueworkers"}, mail.Name, errors.New("somebody was faster"))
}

// dropField takes the grace period out of what a manager owns, as where the API
// server does not know a field.
func (w *world) dropField(object any) {
	owned, ok := object.(interface {
		GetManagedFields() []metav1.ManagedFieldsEntry
		SetManagedFields([]metav1.ManagedFieldsEntry)
	})
	if !ok || !w.drops {
		return
	}
	entries := owned.GetManagedFields()
	for i := range entries {
		entries[i].FieldsV1 = metav1.NewFieldsV1(strings.Replace(entries[i].FieldsV1.GetRawString(), `"f:terminationGracePeriodSeconds":{}`, `"f:x":{}`, 1))
	}
	owned.SetManagedFields(entries)
}

// reconcile looks once and returns when it wants to look again.
func (w *world) reconcile() time.Duration {
	w.t.Helper()
	result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: mail})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) get(object client.Object) {
	w.t.Helper()
	if err := w.client.Get(context.Background(), mail, object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) worker() *v1alpha1.QueueWorker {
	w.t.Helper()
	qw := &v1alpha1.QueueWorker{}
	w.get(qw)
	return qw
}

// edit changes the QueueWorker as its user would.
func (w *world) edit(change func(*v1alpha1.QueueWorker)) {
	w.t.Helper()
	qw := w.worker()
	change(qw)
	qw.Generation++
	if err := w.client.Update(context.Background(), qw); err != nil {
		w.t.Fatal(err)
	}
}

// told returns the events since the last call.
func (w *world) told() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
