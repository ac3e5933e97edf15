// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	watchevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
	"github.com/queueworker/operator/internal/workload"
)

// keepMonitor reads, plans and writes the monitor's objects, after the workers' own: whatever is wrong here, they are rolled out
// and reported on.
func (r *Reconciler) keepMonitor(ctx context.Context, known *known, o *rollout.Observed, plan *rollout.Plan) error {
	err := r.readMonitor(ctx, known, o)
	if err == nil {
		plan.Monitor, err = rollout.PlanMonitor(o, r.options.RenderMonitor)
	}
	if err == nil {
		err = r.applyMonitor(ctx, known, &plan.Monitor)
	}
	if apierrors.IsForbidden(err) {
		plan.Monitor.Problem = "The operator may not make it: " + err.Error() + "."
	}
	return err
}

// readMonitor reads the monitor's objects. Before one is made, the API server is
// asked whether somebody else has the name, since the cache holds only our own,
// and whether the QueueWorker is still there, as before workers are made.
func (r *Reconciler) readMonitor(ctx context.Context, known *known, o *rollout.Observed) error {
	qw := o.QueueWorker
	if qw.DeletionTimestamp != nil {
		return nil
	}
	key := client.ObjectKey{Namespace: qw.Namespace, Name: workload.MonitorName(qw.Name)}
	look := &looking{r: r, known: known, key: key, live: qw.Spec.Monitored() && qw.Spec.Monitor.ServiceAccountName == ""}
	o.Watch.ServiceAccount = findOne(ctx, look, "ServiceAccount", &corev1.ServiceAccount{})
	look.live = qw.Spec.Monitored()
	o.Watch.Role = findOne(ctx, look, "Role", &rbacv1.Role{})
	o.Watch.RoleBinding = findOne(ctx, look, "RoleBinding", &rbacv1.RoleBinding{})
	o.Watch.Deployment = findOne(ctx, look, "Deployment", &appsv1.Deployment{})
	if look.err == nil && look.missing {
		look.err = r.confirm(ctx, qw)
	}
	if look.err != nil || !qw.Spec.Monitored() || !o.RendersMonitor() {
		return look.err
	}
	account := &corev1.ServiceAccount{}
	name := cmp.Or(qw.Spec.Template.Spec.ServiceAccountName, "default")
	err := r.live.Get(ctx, client.ObjectKey{Namespace: qw.Namespace, Name: name}, account)
	o.Watch.PullSecrets = account.ImagePullSecrets
	return client.IgnoreNotFound(err)
}

// looking reads objects until one cannot be read.
type looking struct {
	r     *Reconciler
	known *known
	key   client.ObjectKey
	live  bool // ask the API server for what the cache has not
	err   error

	missing bool // the API server has one of them neither
}

// findOne is the object, or the one written after it where the cache lags behind;
// nil where there is none.
func findOne[T any, P interface {
	*T
	client.Object
}](ctx context.Context, look *looking, kind string, into P) P {
	if look.err != nil {
		return nil
	}
	err := look.r.client.Get(ctx, look.key, into)
	if apierrors.IsNotFound(err) && look.live {
		err = look.r.live.Get(ctx, look.key, into)
		look.missing = look.missing || apierrors.IsNotFound(err)
	}
	if err != nil {
		look.err = client.IgnoreNotFound(err)
		return nil
	}
	return newest(&look.known.ofMonitor(kind).ahead, into)
}

func (k *known) ofMonitor(kind string) *written {
	if k.monitor[kind] == nil {
		k.monitor[kind] = &written{}
	}
	return k.monitor[kind]
}

// applyMonitor writes what differs from the plan. A refusal is a problem of the
// monitor's; the workers go on.
func (r *Reconciler) applyMonitor(ctx context.Context, known *known, plan *rollout.MonitorPlan) error {
	for _, part := range plan.Parts {
		err := r.applyPart(ctx, known.ofMonitor(part.Kind), part)
		var refused *refusal
		if errors.As(err, &refused) {
			plan.Problem = refused.stall.Message
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) applyPart(ctx context.Context, mark *written, part rollout.MonitorPart) error {
	if part.Wanted == nil {
		if part.Live == nil {
			return nil
		}
		uid := part.Live.GetUID()
		*mark = written{}
		return client.IgnoreNotFound(r.client.Delete(ctx, part.Live, client.Preconditions{UID: &uid}))
	}
	into := map[string]client.Object{
		"ServiceAccount": &corev1.ServiceAccount{}, "Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{}, "Deployment": &appsv1.Deployment{},
	}
	_, err := r.write(ctx, mark, write{kind: part.Kind, wanted: part.Wanted, live: part.Live, into: into[part.Kind]})
	return err
}

// forgetNumbers removes the numbers of a monitor that is silent or gone: they
// would look like those of now. They are another writer's, so they cannot be
// given up by applying; like every status they are written only onto what was
// read.
func (r *Reconciler) forgetNumbers(ctx context.Context, known *known, qw *v1alpha1.QueueWorker) error {
	patch := []byte(`{"metadata":{"resourceVersion":"` + qw.ResourceVersion + `"},"status":{"queueState":null}}`)
	written := &v1alpha1.QueueWorker{}
	written.Namespace, written.Name = qw.Namespace, qw.Name
	err := r.client.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if err == nil {
		known.reported = reportedAs(written)
	}
	return err
}

// tellConsuming tells once that a queue is in trouble, and that it is no more.
// What the monitor says is told here too: it may write no event.
func (r *Reconciler) tellConsuming(known *known, qw *v1alpha1.QueueWorker, next *v1alpha1.QueueWorkerStatus) {
	old := find(&qw.Status, v1alpha1.ConditionConsuming)
	now := find(next, v1alpha1.ConditionConsuming)
	if now.Type == "" {
		now = old // the monitor's own
	}
	if r.options.Metrics != nil {
		r.options.Metrics.SetMonitor(qw.Namespace, qw.Name, now.Reason)
	}
	was := cmp.Or(known.consuming, old.Reason)
	known.consuming = now.Reason
	switch {
	case was == now.Reason:
	case status.Trouble(now.Reason):
		r.events.Eventf(qw, nil, corev1.EventTypeWarning, now.Reason, action, "%s", now.Message)
	case status.Trouble(was) && now.Reason != v1alpha1.ReasonUnwatched:
		r.events.Eventf(qw, nil, corev1.EventTypeNormal, EventConsuming, action, "No longer %s: %s", was, now.Message)
	}
}

// untilSilent is when to look whether the monitor has said something.
func untilSilent(o *rollout.Observed) time.Duration {
	at := o.SilentAt()
	if !o.QueueWorker.Spec.Monitored() || at.IsZero() || !at.After(o.Now) {
		return 0
	}
	return at.Sub(o.Now)
}

// troubleChanged lets what a monitor writes pass where it is to be told: not
// every number, and not a queue that is empty and busy in turn.
func troubleChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e watchevent.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*v1alpha1.QueueWorker)
		now, okNow := e.ObjectNew.(*v1alpha1.QueueWorker)
		return ok && okNow && told(&old.Status) != told(&now.Status)
	}}
}

// told is a reason of Consuming as far as a change of it is worth a look.
func told(s *v1alpha1.QueueWorkerStatus) string {
	switch reason := find(s, v1alpha1.ConditionConsuming).Reason; v1alpha1.State(reason) {
	case v1alpha1.StateEmpty, v1alpha1.StateBusy, v1alpha1.StatePaused:
		return "fine"
	default:
		return reason
	}
}
