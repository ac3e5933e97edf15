// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// Plan is what should be there.
type Plan struct {
	// Deployment is what the operator's part of the Deployment should be; nil =
	// nothing is touched.
	Deployment *appsv1ac.DeploymentApplyConfiguration
	// NewTemplate says that the Deployment exists and gets another pod template
	// because the user's input changed.
	NewTemplate bool
	// Clash is why older workers are drained before new ones start although the
	// strategy asks for a rolling update; nil = they are not.
	Clash *Clash
	// Trial is the pod in which the new template's preflight has to pass before
	// older workers are drained for it; nil = none is needed, or it has passed.
	Trial *corev1.Pod
	// Tried is that pod as it was observed; nil = it is to be made.
	Tried *Trial
	// EndTrials are the names of such pods that are of no more use.
	EndTrials []string
	// ReplicasOwner is who else owns the Deployment's replicas; empty = nobody.
	ReplicasOwner string

	// Budget is what the disruption budget should be; nil = nothing is touched.
	Budget *policyv1ac.PodDisruptionBudgetApplyConfiguration
	// DeleteBudget says that the budget is ours and no longer asked for.
	DeleteBudget bool

	// Monitor is what the monitor's objects should be.
	Monitor MonitorPlan

	// Stall is what only a change can fix; nil = nothing.
	Stall *Stall
	// Waiting says what has to be gone first; empty = nothing.
	Waiting string
}

// Stall is a state that only a change can end.
type Stall struct {
	Reason  string // of the Stalled condition
	Message string // one sentence
}

// Make decides what should be there. The pod template is rendered anew only
// where the user's input changed; otherwise the one that was last applied stays.
func Make(o *Observed, render workload.Renderer) (Plan, error) {
	var plan Plan
	if err := plan.planDeployment(o, render); err != nil {
		return Plan{}, err
	}
	plan.endTrials(o)
	if plan.Stall == nil || plan.Stall.Reason != v1alpha1.ReasonForeignObject {
		plan.planBudget(o)
	}
	return plan, nil
}

func (p *Plan) planDeployment(o *Observed, render workload.Renderer) error {
	live := o.Deployment
	if o.Broken() {
		p.Stall = &Stall{v1alpha1.ReasonChainBroken, brokenText(o.Findings)}
	}
	if live == nil {
		if o.Broken() {
			return nil
		}
		template, err := workload.Render(o.QueueWorker, o.Chain, render)
		number, _ := replicas(o.QueueWorker, nil)
		p.Deployment = workload.Deployment(o.QueueWorker, template, number)
		return err
	}
	switch ownership := workload.OwnershipOf(o.QueueWorker, live); {
	case ownership == workload.Foreign:
		p.Stall = &Stall{v1alpha1.ReasonForeignObject, foreignText("Deployment", live.Name)}
		return nil
	case ownership == workload.Leftover:
		p.Waiting = fmt.Sprintf("Deployment %s of an earlier QueueWorker of this name", live.Name)
		return nil
	case live.DeletionTimestamp != nil:
		p.Waiting = fmt.Sprintf("Deployment %s, which is being deleted", live.Name)
		return nil
	}
	if o.Broken() {
		return p.hold(o)
	}
	return p.update(o, render)
}

// update plans the Deployment that is there.
func (p *Plan) update(o *Observed, render workload.Renderer) error {
	hash, err := workload.InputHash(o.QueueWorker)
	if err != nil {
		return err
	}
	applied, unreadable := workload.Recall(o.Deployment)
	template := applied
	if unreadable != nil || applied.InputHash != hash {
		if template, err = workload.Render(o.QueueWorker, o.Chain, render); err != nil {
			return err
		}
		p.NewTemplate = !Same(template.Pod, applied.Pod)
	}
	number, other := replicas(o.QueueWorker, o.Deployment)
	p.ReplicasOwner = other
	p.Deployment = workload.Deployment(o.QueueWorker, template, number)
	if !asksForRecreate(o.QueueWorker) {
		p.Clash = clashOf(o, p.NewTemplate)
		if p.Clash == nil && !staysRecreate(o) {
			return nil
		}
		p.Deployment.Spec.WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType))
	}
	return p.tryFirst(o, template)
}

// tryFirst holds a rollout back that drains the older workers before the new
// ones start, until the new template has passed its preflight. Where nobody
// works, nobody leaves.
func (p *Plan) tryFirst(o *Observed, template workload.Template) error {
	if !p.NewTemplate || ptr.Deref(o.Deployment.Spec.Replicas, 1) == 0 {
		return nil
	}
	trial, err := workload.Trial(o.QueueWorker, template)
	if trial == nil || err != nil {
		return err
	}
	p.Trial = trial
	for i := range o.Trials {
		if o.Trials[i].Name == trial.Name {
			p.Tried = &o.Trials[i]
		}
	}
	if p.Tried.Passed() {
		p.Trial = nil
		return nil
	}
	return p.hold(o)
}

// endTrials gives up the trials of other templates, and the one that has passed
// once its template is applied.
func (p *Plan) endTrials(o *Observed) {
	for i := range o.Trials {
		if trial := &o.Trials[i]; trial != p.Tried {
			p.EndTrials = append(p.EndTrials, trial.Name)
		}
	}
}

// hold keeps what is applied and passes on only the number of replicas.
func (p *Plan) hold(o *Observed) error {
	held, err := OwnedDeployment(o.Deployment)
	if err != nil {
		return fmt.Errorf("reading the applied fields of Deployment %s: %w", o.Deployment.Name, err)
	}
	if held.Spec == nil {
		held.WithSpec(appsv1ac.DeploymentSpec())
	}
	if applied, err := workload.Recall(o.Deployment); err == nil {
		held.Spec.Template = applied.Pod
	}
	held.Spec.Replicas, p.ReplicasOwner = replicas(o.QueueWorker, o.Deployment)
	p.Deployment, p.NewTemplate, p.Clash = held, false, nil
	return nil
}

// Refused is the plan after the API server refused a part of it: the running
// Deployment keeps what it has, scaling goes on.
func (p Plan) Refused(o *Observed, stall Stall) (Plan, error) {
	if p.Stall == nil {
		p.Stall = &stall
	}
	p.NewTemplate, p.Clash, p.Trial = false, nil, nil
	if o.Deployment == nil {
		p.Deployment = nil
		return p, nil
	}
	err := p.hold(o)
	return p, err
}

func (p *Plan) planBudget(o *Observed) {
	asked := workload.DisruptionBudget(o.QueueWorker)
	if o.Budget == nil {
		p.Budget = asked
		return
	}
	switch workload.OwnershipOf(o.QueueWorker, o.Budget) {
	case workload.Foreign:
		if asked != nil && p.Stall == nil {
			p.Stall = &Stall{v1alpha1.ReasonForeignObject, foreignText("PodDisruptionBudget", o.Budget.Name)}
		}
	case workload.Leftover:
	case workload.Ours, workload.Orphaned:
		if o.Budget.DeletionTimestamp == nil {
			p.Budget, p.DeleteBudget = asked, asked == nil
		}
	}
}

func foreignText(kind, name string) string {
	return fmt.Sprintf("%s %s was not made by this operator and is left alone; rename the QueueWorker or remove that %s.", kind, name, kind)
}

func brokenText(findings []timeoutchain.Finding) string {
	errors := timeoutchain.Blocking(findings)
	text := "The chain is broken: " + errors[0].Message()
	if more := len(errors) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text + "."
}
