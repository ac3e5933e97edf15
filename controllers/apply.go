// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

// apply writes what differs from the plan. Where the API server refuses the
// Deployment, what runs is kept and only scaled. It returns the plan that holds
// now and leaves the written objects in what was observed.
func (r *Reconciler) apply(ctx context.Context, known *known, o *rollout.Observed, plan rollout.Plan) (rollout.Plan, error) {
	var refused *refusal
	err := r.applyDeployment(ctx, known, &known.deployment, o, &plan)
	if errors.As(err, &refused) {
		if plan, err = plan.Refused(o, refused.stall); err != nil {
			return plan, err
		}
		// A second refusal adds nothing: the first one is reported.
		if err = r.applyDeployment(ctx, known, &known.held, o, &plan); errors.As(err, &refused) {
			err = nil
		}
	}
	if err != nil {
		return plan, err
	}
	for _, err := range []error{r.applyTrial(ctx, known, o, &plan), r.applyBudget(ctx, known, o, &plan)} {
		switch {
		case errors.As(err, &refused) && plan.Stall == nil:
			plan.Stall = &refused.stall
		case err != nil && !errors.As(err, &refused):
			return plan, err
		}
	}
	return plan, nil
}

func (r *Reconciler) applyDeployment(ctx context.Context, known *known, mark *written, o *rollout.Observed, plan *rollout.Plan) error {
	if plan.Deployment == nil {
		return nil
	}
	result := &appsv1.Deployment{}
	w := write{kind: "Deployment", wanted: plan.Deployment, into: result}
	if o.Deployment != nil {
		w.live = o.Deployment
	}
	done, err := r.write(ctx, mark, w)
	if !done || err != nil {
		return err
	}
	o.Deployment = result
	// In this order: of the two marks there may be, this one may be the Deployment's own.
	mark.ahead, known.deployment.ahead = ahead{}, mark.ahead
	if plan.NewTemplate && r.options.Metrics != nil {
		r.options.Metrics.RolloutStarted(string(o.Deployment.Spec.Strategy.Type))
	}
	return nil
}

func (r *Reconciler) applyBudget(ctx context.Context, known *known, o *rollout.Observed, plan *rollout.Plan) error {
	if plan.DeleteBudget {
		err := r.client.Delete(ctx, o.Budget, client.Preconditions{UID: &o.Budget.UID})
		return client.IgnoreNotFound(err)
	}
	if plan.Budget == nil {
		return nil
	}
	w := write{kind: "PodDisruptionBudget", wanted: plan.Budget, into: &policyv1.PodDisruptionBudget{}}
	if o.Budget != nil {
		w.live = o.Budget
	}
	_, err := r.write(ctx, &known.budget, w)
	return err
}

// write is one object to apply.
type write struct {
	kind   string
	wanted any           // apply configuration
	live   client.Object // as it is; nil = there is none
	into   client.Object // where the result goes
}

// write applies an object unless the fields owned are the wanted ones already.
// Two things are remembered so that nothing is sent twice: a refusal, and a
// result that differs from what was sent because the API server writes some
// values in another way or drops them.
func (r *Reconciler) write(ctx context.Context, mark *written, w write) (done bool, err error) {
	owned, err := rollout.OwnedPart(w.live)
	if err == nil && rollout.Same(w.wanted, owned) {
		*mark = written{ahead: mark.ahead}
		return false, nil
	}
	wanted, ownedNow := digest(w.wanted), digest(owned)
	if mark.wanted == wanted && mark.owned == ownedNow {
		if mark.refused == nil {
			return false, nil
		}
		if mark.refused.stands(r.options.Clock.Now()) {
			return false, mark.refused
		}
	}
	err = classify(r.send(ctx, w), w.kind, nameOf(w))
	var refused *refusal
	if errors.As(err, &refused) {
		refused.at = r.options.Clock.Now()
		*mark = written{ahead: mark.ahead, wanted: wanted, owned: ownedNow, refused: refused}
		return false, err
	}
	if err != nil {
		return false, err
	}
	ctrl.LoggerFrom(ctx).Info("Applied", "kind", w.kind, "created", w.live == nil)
	result, _ := rollout.OwnedPart(w.into) // an unreadable result is only sent again
	*mark = written{ahead: aheadOf(w.into), wanted: wanted, owned: digest(result)}
	return true, nil
}

// send applies with force where the object is known to be ours; the first time
// without, so that an object which somebody else made in the meantime is not
// overwritten. It is applied only onto what was read: a manager that no longer
// leads must not undo, with its last request, what the next one wrote.
func (r *Reconciler) send(ctx context.Context, w write) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.wanted)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: fields}
	options := []client.ApplyOption{client.FieldOwner(v1alpha1.FieldManager)}
	if w.live != nil {
		object.SetUID(w.live.GetUID()) // an object that is gone is not made again
		object.SetResourceVersion(w.live.GetResourceVersion())
		options = append(options, client.ForceOwnership)
	}
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, w.into)
}

func nameOf(w write) string {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.wanted)
	if err != nil {
		return ""
	}
	return (&unstructured.Unstructured{Object: fields}).GetName()
}

func digest(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
