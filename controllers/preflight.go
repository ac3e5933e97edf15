// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/workload"
)

// judged is what the preflight of a template said last. It outlives the pod that
// said it, so that a refused pod which is replaced makes no condition flip.
type judged struct {
	version string // pod-template-hash
	report  *preflight.Report
}

// readPreflight reads what the pods of the newest template say of their image.
func (r *Reconciler) readPreflight(_ context.Context, known *known, o *rollout.Observed) error {
	if said := rollout.NewestPreflight(o.Pods, o.NewestVersion); said != nil {
		known.judged = judged{o.NewestVersion, said}
	}
	if known.judged.version == o.NewestVersion {
		o.Preflight = known.judged.report
	}
	return nil
}

// readTrials reads the pods that run only a preflight for the QueueWorker.
func (r *Reconciler) readTrials(ctx context.Context, _ *known, o *rollout.Observed) error {
	var pods corev1.PodList
	err := r.client.List(ctx, &pods, client.InNamespace(o.QueueWorker.Namespace),
		client.MatchingFields{workerIndex: trialIndex(o.QueueWorker.Name)}, shared)
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, o.QueueWorker) {
			o.Trials = append(o.Trials, rollout.TrialOf(pod))
		}
	}
	return err
}

// trialIndex is the entry of workerIndex under which the trials of a QueueWorker
// are kept. No QueueWorker has such a name.
func trialIndex(worker string) string { return v1alpha1.LabelPreflight + "/" + worker }

// applyTrial makes the pod that the plan waits for, once, and removes the ones
// that are over.
func (r *Reconciler) applyTrial(ctx context.Context, known *known, o *rollout.Observed, plan *rollout.Plan) error {
	for _, name := range plan.EndTrials {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.QueueWorker.Namespace}}
		if err := client.IgnoreNotFound(r.client.Delete(ctx, pod)); err != nil {
			return err
		}
	}
	mark := &known.trial
	if plan.Trial == nil || plan.Tried != nil {
		*mark = written{}
		return nil
	}
	if mark.wanted == plan.Trial.Name && mark.refused != nil && mark.refused.stands(r.options.Clock.Now()) {
		return mark.refused
	}
	err := r.client.Create(ctx, plan.Trial.DeepCopy(), client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsAlreadyExists(err) { // the cache will have it
		return nil
	}
	err = classify(err, "Pod", plan.Trial.Name)
	var refused *refusal
	if errors.As(err, &refused) {
		refused.at = r.options.Clock.Now()
		*mark = written{wanted: plan.Trial.Name, refused: refused}
	}
	return err
}

// countPreflight tells the metrics what is known of the newest template.
func (r *Reconciler) countPreflight(qw *v1alpha1.QueueWorker, next *v1alpha1.QueueWorkerStatus) {
	if r.options.Metrics != nil {
		r.options.Metrics.SetPreflight(qw.Namespace, qw.Name, find(next, v1alpha1.ConditionPreflightPassed).Status)
	}
}

// trimTrial keeps of a trial's owners the one that controls it, since a pod with
// its labels may be anybody's.
func trimTrial(pod *corev1.Pod) []metav1.OwnerReference {
	if !workload.OfATrial(pod) {
		return nil
	}
	return pod.OwnerReferences
}

// trimVerdict keeps of a preflight's end what is read of it.
func trimVerdict(ended *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if ended == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Reason: ended.Reason, Message: preflight.Head(ended.Message)}
}
