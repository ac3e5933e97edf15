// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/workload"
)

// Reasons of a Deployment's Progressing condition, set by its controller.
const (
	reasonComplete = rollout.ReasonDeploymentComplete
	reasonDeadline = rollout.ReasonDeadlineExceeded
	reasonPaused   = "DeploymentPaused"
)

// facts are the numbers that the conditions speak of.
type facts struct {
	observed   *rollout.Observed
	plan       *rollout.Plan
	deployment *appsv1.Deployment // ours, else nil

	wanted      int32
	needed      int32 // available workers below which it is not Ready
	replicas    int32
	ready       int32
	updated     int32
	available   int32
	terminating int32
	drainingOld int32     // terminating ones of an older template
	longest     int64     // the longest grace of the terminating ones that are in time
	overdue     int32     // terminating ones whose grace is over
	since       time.Time // when the first of them should have been gone
	grace       int64

	current     bool   // the Deployment's controller has seen the newest spec
	complete    bool   // every worker runs the newest template
	first       bool   // it has not been Ready yet
	before      string // the last reason of Reconciling
	starting    bool   // a worker starts for the first time
	recreate    bool   // the strategy is Recreate
	progressing *appsv1.DeploymentCondition
	failure     string // why pods cannot be made
}

func factsOf(o *rollout.Observed, plan *rollout.Plan) facts {
	f := facts{observed: o, plan: plan, wanted: o.QueueWorker.Spec.EffectiveReplicas(), grace: o.Chain.GracePeriod()}
	old := o.QueueWorker.Status.Conditions
	ready := meta.FindStatusCondition(old, v1alpha1.ConditionReady)
	f.first = ready == nil || ready.Reason == v1alpha1.ReasonProgressing
	if reconciling := meta.FindStatusCondition(old, v1alpha1.ConditionReconciling); reconciling != nil {
		f.before = reconciling.Reason
	}
	f.readPods()
	if o.Deployment != nil && workload.OwnershipOf(o.QueueWorker, o.Deployment) <= workload.Orphaned {
		f.deployment = o.Deployment
		f.readDeployment()
	}
	return f
}

func (f *facts) readPods() {
	for i := range f.observed.Pods {
		pod := &f.observed.Pods[i]
		f.starting = f.starting || pod.Starting && pod.Version == f.observed.NewestVersion
		if !pod.Terminating {
			continue
		}
		f.terminating++
		if pod.Overdue(f.observed.Now) {
			f.overdue++
			if f.since.IsZero() || pod.Due().Before(f.since) {
				f.since = pod.Due()
			}
		} else {
			f.longest = max(f.longest, pod.Grace.Granted)
		}
		if pod.Version != f.observed.NewestVersion {
			f.drainingOld++
		}
	}
}

func (f *facts) readDeployment() {
	d := f.deployment
	if f.plan.ReplicasOwner != "" && d.Spec.Replicas != nil {
		f.wanted = *d.Spec.Replicas
	}
	if grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds; grace != nil {
		f.grace = *grace
	}
	status := &d.Status
	f.replicas, f.ready, f.updated, f.available = status.Replicas, status.ReadyReplicas, status.UpdatedReplicas, status.AvailableReplicas
	f.current = status.ObservedGeneration >= d.Generation
	f.progressing = rollout.DeploymentCondition(d, appsv1.DeploymentProgressing)
	if failure := rollout.DeploymentCondition(d, appsv1.DeploymentReplicaFailure); failure != nil && failure.Status == corev1.ConditionTrue {
		f.failure = failure.Message
	}
	f.recreate = d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	if f.recreating() {
		f.drainingOld = f.terminating
	}
	f.complete = f.isComplete()
	tolerated := d.Spec.Strategy
	if tolerated.RollingUpdate != nil && f.observed.QueueWorker.Spec.EffectivePreflightPolicy() == v1alpha1.PreflightEnforce {
		tolerated = workload.DeclaredStrategy(f.observed.QueueWorker) // the rendered 0 is about rollouts
	}
	f.needed = f.wanted - maxUnavailable(&tolerated, f.wanted)
	if f.complete || f.first { // outside a replacement, one worker must be there
		f.needed = max(f.needed, min(f.wanted, 1))
	}
}

// unseen says that the Deployment was written, that its controller has not
// looked at it, and that nothing hints at a new template.
func (f *facts) unseen() bool {
	return !f.current && !f.first && !f.plan.NewTemplate && f.before != v1alpha1.ReasonRollingOut
}

// isComplete says whether the newest template has replaced the older ones. A
// worker that fails later does not undo it.
func (f *facts) isComplete() bool {
	switch {
	case !f.current || f.observed.NewestVersion == "" || f.updated != f.replicas || f.recreating():
		return false
	case f.progressing == nil || f.progressing.Reason == reasonPaused:
		return f.available >= f.wanted
	default:
		return f.progressing.Reason == reasonComplete
	}
}

// recreating says that the older workers drain, or that the last of them has
// just gone, and that the new ones are not made yet. The Deployment does not
// show it: its newest ReplicaSet is made afterwards.
func (f *facts) recreating() bool {
	return f.recreate && f.wanted > 0 && f.replicas == 0 && (f.terminating > 0 || f.before == v1alpha1.ReasonRollingOut)
}

// maxUnavailable is how many workers a rollout may take away.
func maxUnavailable(strategy *appsv1.DeploymentStrategy, replicas int32) int32 {
	if strategy.RollingUpdate == nil || replicas == 0 {
		return 0
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0)), int(replicas), true)
	if err != nil {
		return 0
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(0)), int(replicas), false)
	if err != nil {
		return 0
	}
	if surge == 0 && unavailable == 0 { // both rounded to nothing: the rollout takes one
		unavailable = 1
	}
	return min(int32(unavailable), replicas)
}

// imageProblem is why workers of the newest template cannot start, and how many
// they are.
func (f *facts) imageProblem() (problem string, pods int) {
	if !f.current {
		return "", 0
	}
	if trial := f.plan.Tried; f.plan.Trial != nil && trial != nil && trial.ImageProblem != "" {
		return trial.ImageProblem, 1
	}
	for i := range f.observed.Pods {
		pod := &f.observed.Pods[i]
		if pod.ImageProblem == "" || pod.Version != f.observed.NewestVersion {
			continue
		}
		pods++
		if problem == "" || pod.ImageProblem < problem {
			problem = pod.ImageProblem
		}
	}
	return problem, pods
}

func (f *facts) deadlineExceeded() bool {
	return f.current && f.progressing != nil && f.progressing.Reason == reasonDeadline &&
		f.progressing.Status == corev1.ConditionFalse
}
