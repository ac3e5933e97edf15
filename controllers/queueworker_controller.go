// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
	"github.com/queueworker/operator/internal/workload"
)

// conflictPause lets the cache catch up with what somebody else wrote.
const conflictPause = 100 * time.Millisecond

// Reconciler brings the cluster in line with one QueueWorker at a time.
type Reconciler struct {
	client  client.Client
	live    client.Reader // past the cache, for objects that may be somebody else's
	events  events.EventRecorder
	options Options
	memory  *memory
	endings *endings
}

func newReconciler(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Render == nil {
		options.Render = workload.WithAgent(options.AgentImage)
	}
	if options.RenderMonitor == nil {
		options.RenderMonitor = workload.WithMonitor(options.AgentImage)
	}
	return &Reconciler{options: options, memory: newMemory(), endings: newEndings()}
}

// A worker's Deployment is never deleted here; the verb is for monitors, and what
// OwnerReferencesPermissionEnforcement asks of who adopts one. The status is read
// by nobody here: who makes a Role must have what it allows.
//
// +kubebuilder:rbac:groups=queueworker.dev,resources=queueworkers,verbs=get;list;watch
// +kubebuilder:rbac:groups=queueworker.dev,resources=queueworkers/status,verbs=get;patch
// +kubebuilder:rbac:groups=queueworker.dev,resources=queueworkers/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Reconcile judges the spec, looks at what is there, plans, writes what differs
// and reports. An object that is being deleted is only reported on: the garbage
// collector stops its workers with their full grace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	qw := &v1alpha1.QueueWorker{}
	if err := r.client.Get(ctx, req.NamespacedName, qw); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(ctx, req)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	known := r.memory.of(req.NamespacedName)
	qw = known.reported.on(qw)

	observed, err := r.observe(ctx, known, qw)
	if errors.Is(err, errGone) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.reportEndings(ctx, known, observed)
	result, err := r.act(ctx, known, observed)
	switch {
	case errors.Is(err, errNamespaceEnds), errors.Is(err, errGone):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err): // what was observed is no longer so
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return result, err
}

// act plans, writes what differs and reports.
func (r *Reconciler) act(ctx context.Context, known *known, o *rollout.Observed) (ctrl.Result, error) {
	if o.QueueWorker.DeletionTimestamp != nil {
		return r.report(ctx, known, o, nil, status.OfDeleted(o))
	}
	plan, err := rollout.Make(o, r.options.Render)
	if err != nil {
		return ctrl.Result{}, err
	}
	if plan, err = r.apply(ctx, known, o, plan); err != nil {
		return ctrl.Result{}, err
	}
	unwatched := r.keepMonitor(ctx, known, o, &plan)
	if errors.Is(unwatched, errGone) {
		return ctrl.Result{}, unwatched
	}
	result, err := r.report(ctx, known, o, &plan, status.Of(o, &plan))
	if err := errors.Join(err, unwatched); err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// forget drops what was kept of a QueueWorker that is gone.
func (r *Reconciler) forget(ctx context.Context, req ctrl.Request) {
	r.lastWords(ctx, req.NamespacedName)
	r.memory.forget(req.NamespacedName)
	if r.options.Metrics != nil {
		r.options.Metrics.Forget(req.Namespace, req.Name)
	}
}
