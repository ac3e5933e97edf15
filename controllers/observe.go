// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// shared lists what is in the cache itself: nobody may change it. A namespace
// can hold thousands, and each look would copy them all.
const shared = client.UnsafeDisableDeepCopy

// reader fills in a part of what is observed.
type reader func(context.Context, *known, *rollout.Observed) error

// observe reads everything that a plan and a status are made from.
func (r *Reconciler) observe(ctx context.Context, known *known, qw *v1alpha1.QueueWorker) (*rollout.Observed, error) {
	o := &rollout.Observed{
		QueueWorker: qw,
		Now:         r.options.Clock.Now(),
		Chain:       chainsource.FromQueueWorker(qw, chainsource.Options{GraceCap: r.options.GraceCap}),
	}
	for _, read := range []reader{r.judge, r.readDeployment, r.readBudgets, r.readPods, r.readPreflight, r.readTrials} {
		if err := read(ctx, known, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// judge repeats the admission's judgement: the object may be older than a rule.
// What another object breaks is only a risk here, since nobody changes this one.
func (r *Reconciler) judge(ctx context.Context, _ *known, o *rollout.Observed) error {
	options := admission.Options{GraceCap: r.options.GraceCap}
	if o.QueueWorker.Spec.EffectiveDriver() == v1alpha1.DriverDatabase {
		var others v1alpha1.QueueWorkerList
		if err := r.client.List(ctx, &others, client.InNamespace(o.QueueWorker.Namespace), shared); err != nil {
			return err
		}
		options.Others = others.Items
	}
	o.Findings = admission.Validate(o.QueueWorker, options).Findings
	for i := range o.Findings {
		if rule, ok := timeoutchain.RuleByID(o.Findings[i].Rule); ok && rule.CrossObject {
			o.Findings[i].Severity = timeoutchain.Warning
		}
	}
	if r.options.Metrics != nil {
		r.options.Metrics.SetFindings(o.QueueWorker.Namespace, o.QueueWorker.Name, o.Findings)
	}
	return nil
}

// readDeployment reads the Deployment with the QueueWorker's name. The cache
// holds only those with our label; before one is made, the API server is asked
// whether somebody else has the name.
func (r *Reconciler) readDeployment(ctx context.Context, known *known, o *rollout.Observed) error {
	key := client.ObjectKeyFromObject(o.QueueWorker)
	deployment := &appsv1.Deployment{}
	err := r.client.Get(ctx, key, deployment)
	if apierrors.IsNotFound(err) {
		if o.QueueWorker.DeletionTimestamp != nil {
			return nil
		}
		err = r.readUnlabelled(ctx, o.QueueWorker, deployment)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	o.Deployment = newest(&known.deployment.ahead, deployment)
	return nil
}

// readUnlabelled asks the API server two things at once: who else has the name,
// and whether the QueueWorker is still there.
func (r *Reconciler) readUnlabelled(ctx context.Context, qw *v1alpha1.QueueWorker, into *appsv1.Deployment) error {
	confirmed := make(chan error, 1)
	go func() { confirmed <- r.confirm(ctx, qw) }()
	err := r.live.Get(ctx, client.ObjectKeyFromObject(qw), into)
	if gone := <-confirmed; gone != nil && apierrors.IsNotFound(err) {
		return gone
	}
	return err
}

// confirm asks whether the QueueWorker is still there before its Deployment is
// made: when both are deleted, the cache may hear of the Deployment first, and
// workers would be started only to be stopped.
func (r *Reconciler) confirm(ctx context.Context, qw *v1alpha1.QueueWorker) error {
	live := &v1alpha1.QueueWorker{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(qw), live)
	if apierrors.IsNotFound(err) || err == nil && (live.UID != qw.UID || live.DeletionTimestamp != nil) {
		return errGone
	}
	return err
}

// readBudgets reads the disruption budget with the QueueWorker's name, and the
// names of those of others that select its pods.
func (r *Reconciler) readBudgets(ctx context.Context, known *known, o *rollout.Observed) error {
	var list policyv1.PodDisruptionBudgetList
	if err := r.client.List(ctx, &list, client.InNamespace(o.QueueWorker.Namespace), shared); err != nil {
		return err
	}
	pod := podLabels(o.QueueWorker)
	for i := range list.Items {
		budget := &list.Items[i]
		if budget.Name == o.QueueWorker.Name {
			o.Budget = newest(&known.budget.ahead, budget.DeepCopy())
			if workload.OwnershipOf(o.QueueWorker, budget) != workload.Foreign {
				continue
			}
		}
		if !workload.OfAWorker(budget) && selects(budget, pod) {
			o.OtherBudgets = append(o.OtherBudgets, budget.Name)
		}
	}
	slices.Sort(o.OtherBudgets)
	return nil
}

// readPods reads the worker pods and which template is the newest.
func (r *Reconciler) readPods(ctx context.Context, _ *known, o *rollout.Observed) error {
	ours := []client.ListOption{client.InNamespace(o.QueueWorker.Namespace), client.MatchingFields{workerIndex: o.QueueWorker.Name}}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, ours...); err != nil {
		return err
	}
	for i := range pods.Items {
		o.Pods = append(o.Pods, rollout.PodOf(&pods.Items[i]))
	}
	if o.Deployment == nil {
		return nil
	}
	var sets metav1.PartialObjectMetadataList
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := r.client.List(ctx, &sets, ours...); err != nil {
		return err
	}
	newest := int64(-1)
	for i := range sets.Items {
		set := &sets.Items[i]
		revision, err := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
		if err == nil && revision > newest && metav1.IsControlledBy(set, o.Deployment) {
			newest, o.NewestVersion = revision, set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	return nil
}
