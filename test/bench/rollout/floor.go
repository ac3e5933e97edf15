// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/workload"
)

// bareClient does what the manager does and decides nothing: it applies the
// same Deployment, waits until that is available, and writes the same status,
// as often as the manager was seen to. It judges no chain, reads no cache,
// sends no event, and no webhook is asked.
type bareClient struct {
	client  client.WithWatch
	workers int
	status  v1alpha1.QueueWorkerStatus // of a settled QueueWorker
	name    string                     // of that QueueWorker
	writes  int                        // of the status, per object
}

// job is one step for one QueueWorker.
type job struct {
	worker    *v1alpha1.QueueWorker
	available bool
}

// run brings that many QueueWorkers to settled and says how long it took.
func (f *bareClient) run(ctx context.Context, clients []client.Client, count int) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	settling, err := watchSettling(ctx, f.client, count)
	if err != nil {
		return 0, err
	}
	jobs := make(chan job, 2*count) // never blocks: two for each
	made := &sync.Map{}
	if err := f.watchDeployments(ctx, made, jobs, cancel); err != nil {
		return 0, err
	}
	for range f.workers {
		go func() {
			for {
				select {
				case j := <-jobs:
					if err := f.do(ctx, j); err != nil {
						cancel(err)
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	began := time.Now()
	err = createWorkers(ctx, clients, count, func(qw *v1alpha1.QueueWorker) {
		made.Store(qw.Name, qw)
		jobs <- job{worker: qw}
	})
	if err != nil {
		return 0, err
	}
	if err := settling.wait(ctx); err != nil {
		return 0, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return time.Since(began), nil
}

// watchDeployments hands on each QueueWorker once, when its Deployment is
// complete.
func (f *bareClient) watchDeployments(ctx context.Context, made *sync.Map, jobs chan<- job, failed func(error)) error {
	return follow(ctx, f.client, &appsv1.DeploymentList{}, func(object runtime.Object) {
		deployment, ok := object.(*appsv1.Deployment)
		if !ok || !isComplete(deployment) {
			return
		}
		if qw, ok := made.LoadAndDelete(deployment.Name); ok {
			jobs <- job{worker: qw.(*v1alpha1.QueueWorker), available: true}
		}
	}, failed)
}

func isComplete(d *appsv1.Deployment) bool {
	if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < 1 {
		return false
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing {
			return condition.Reason == "NewReplicaSetAvailable"
		}
	}
	return false
}

func (f *bareClient) do(ctx context.Context, j job) error {
	if j.available {
		return f.writeStatus(ctx, j.worker, f.writes)
	}
	if err := f.applyDeployment(ctx, j.worker); err != nil {
		return err
	}
	for n := 1; n < f.writes; n++ {
		if err := f.writeStatus(ctx, j.worker, n); err != nil {
			return err
		}
	}
	return nil
}

func (f *bareClient) applyDeployment(ctx context.Context, qw *v1alpha1.QueueWorker) error {
	template, err := workload.Render(qw, chainsource.FromQueueWorker(qw, chainsource.Options{}), workload.WithAgent("registry.example/operator:1"))
	if err != nil {
		return err
	}
	return f.client.Apply(ctx, workload.Deployment(qw, template, ptr.To(int32(1))), client.FieldOwner(v1alpha1.FieldManager))
}

// writeStatus makes the nth write of the status; only the last one says that
// all is done.
func (f *bareClient) writeStatus(ctx context.Context, qw *v1alpha1.QueueWorker, n int) error {
	next := f.status.DeepCopy()
	next.Selector = strings.ReplaceAll(next.Selector, f.name, qw.Name)
	if n < f.writes {
		next.Ready, next.ReadyReplicas = fmt.Sprintf("0/%d", n), 0
		for i := range next.Conditions {
			if condition := &next.Conditions[i]; condition.Type == v1alpha1.ConditionReconciling {
				condition.Status = "True"
			}
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueWorker"))
	object.SetName(qw.Name)
	object.SetNamespace(qw.Namespace)
	return f.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
}
