// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
)

const (
	// patience bounds every wait: clients may take half a minute to come back
	// after an outage of the API server.
	patience = 4 * time.Minute
	poll     = 50 * time.Millisecond
)

// eventually repeats a question until the answer is nil.
func eventually(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, last)
		case <-time.After(poll):
		}
	}
}

// insist repeats a write that may meet an outage.
func insist(ctx context.Context, what string, do func(context.Context) error) error {
	var refused error
	err := eventually(ctx, what, func(ctx context.Context) error {
		err := do(ctx)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(refused, err)
}

// begun waits until a wish has reached the Deployment and, for a template, its
// ReplicaSet, so that the next wish cannot overtake it.
func begun(ctx context.Context, namespace, name string, templates int) error {
	return eventually(ctx, name+" takes up the change", func(ctx context.Context) error {
		qw, deployment := &v1alpha1.QueueWorker{}, &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		if err := k8s.Get(ctx, key, qw); err != nil {
			return err
		}
		if qw.Status.ObservedGeneration != qw.Generation {
			return fmt.Errorf("generation %d, observed %d", qw.Generation, qw.Status.ObservedGeneration)
		}
		if err := k8s.Get(ctx, key, deployment); err != nil {
			return err
		}
		if !metav1.IsControlledBy(deployment, qw) {
			return fmt.Errorf("the Deployment is still that of an earlier one")
		}
		if deployment.Status.ObservedGeneration != deployment.Generation {
			return fmt.Errorf("the Deployment's controller is behind")
		}
		sets, err := setsOf(ctx, deployment)
		if err == nil && len(sets) < templates {
			err = fmt.Errorf("%d ReplicaSets instead of %d", len(sets), templates)
		}
		return err
	})
}

// settled waits until nothing is under way and returns the running workers.
func settled(ctx context.Context, namespace, name string, templates int) (pods map[types.UID]bool, err error) {
	err = eventually(ctx, name+" settles", func(ctx context.Context) error {
		qw := &v1alpha1.QueueWorker{}
		if err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, qw); err != nil {
			return err
		}
		if err := current(qw); err != nil {
			return err
		}
		replicas := qw.Spec.EffectiveReplicas()
		if want := fmt.Sprintf("%d/%d", replicas, replicas); qw.Status.Ready != want || qw.Status.TerminatingReplicas > 0 {
			return fmt.Errorf("ready %s instead of %s, %d terminating", qw.Status.Ready, want, qw.Status.TerminatingReplicas)
		}
		if pods, err = running(ctx, namespace, name); err == nil && len(pods) != int(replicas) {
			err = fmt.Errorf("%d pods instead of %d", len(pods), replicas)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return pods, begun(ctx, namespace, name, templates)
}

// current asks the library that Flux and others use.
func current(qw *v1alpha1.QueueWorker) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(qw)
	if err != nil {
		return err
	}
	verdict, err := kstatus.Compute(&unstructured.Unstructured{Object: fields})
	if err != nil {
		return err
	}
	if verdict.Status != kstatus.CurrentStatus {
		return fmt.Errorf("%s: %s (%+v)", verdict.Status, verdict.Message, qw.Status.Conditions)
	}
	return nil
}

// gone waits until nothing is left of a QueueWorker.
func gone(ctx context.Context, namespace, name string) error {
	return eventually(ctx, name+" goes", func(ctx context.Context) error {
		pictures, err := takePictures(ctx, namespace)
		if left, ok := pictures[name]; err == nil && ok {
			err = fmt.Errorf("there still is %+v", left)
		}
		return err
	})
}

func setsOf(ctx context.Context, deployment *appsv1.Deployment) ([]appsv1.ReplicaSet, error) {
	var all appsv1.ReplicaSetList
	if err := k8s.List(ctx, &all, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return nil, err
	}
	var owned []appsv1.ReplicaSet
	for _, set := range all.Items {
		if metav1.IsControlledBy(&set, deployment) {
			owned = append(owned, set)
		}
	}
	return owned, nil
}

// running are the pods that nobody asked to stop.
func running(ctx context.Context, namespace, name string) (map[types.UID]bool, error) {
	var pods corev1.PodList
	if err := k8s.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelName: name}); err != nil {
		return nil, err
	}
	uids := map[types.UID]bool{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			uids[pod.UID] = true
		}
	}
	return uids, nil
}

// kept says whether all of the smaller group are in the larger one: a change
// that needs no other pods starts or stops some and replaces none.
func kept(old, now map[types.UID]bool) error {
	small, large := old, now
	if len(small) > len(large) {
		small, large = large, small
	}
	for uid := range small {
		if !large[uid] {
			return fmt.Errorf("workers were replaced: %v became %v", slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(now)))
		}
	}
	return nil
}
