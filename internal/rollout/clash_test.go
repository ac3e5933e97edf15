// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// databaseWorker has the job and the reservation, in seconds.
func databaseWorker(job, reservation int32) *v1alpha1.QueueWorker {
	qw := newWorker()
	qw.Spec.Queue = v1alpha1.Queue{Connection: "database"}
	qw.Spec.Timeouts = v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](10), JobSeconds: job, RetryAfterSeconds: &reservation}
	return qw
}

// deployed is the Deployment of a QueueWorker, rolled out.
func deployed(t *testing.T, qw *v1alpha1.QueueWorker) *appsv1.Deployment {
	t.Helper()
	live := applied(t, makePlan(t, observe(qw), render).Deployment)
	live.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: rollout.ReasonDeploymentComplete,
	}}}
	return live
}

func podWith(version string, job, reservation int64) rollout.Pod {
	return rollout.Pod{Version: version, Wire: timeoutchain.Wire{Driver: timeoutchain.Database, JobSeconds: job, RetryAfterSeconds: reservation}}
}

func strategyOf(plan rollout.Plan) appsv1.DeploymentStrategyType {
	return *plan.Deployment.Spec.Strategy.Type
}

// TestARolloutIsPartOfTheChain changes job and reservation of a Database worker
// from 60 and 90.
func TestARolloutIsPartOfTheChain(t *testing.T) {
	const rolling, recreate = appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType
	for name, c := range map[string]struct {
		job, reservation int32
		pods             []rollout.Pod
		arrange          func(qw *v1alpha1.QueueWorker, live *appsv1.Deployment)
		want             appsv1.DeploymentStrategyType
		clash            bool
	}{
		"both fit each other":           {70, 100, nil, nil, rolling, false},
		"the new job reaches the old R": {90, 700, nil, nil, recreate, true},
		"just below it":                 {89, 700, nil, nil, rolling, false},
		"the old job reaches the new R": {20, 60, nil, nil, recreate, true},
		"just above it":                 {20, 61, nil, nil, rolling, false},
		"the same numbers, another image": {60, 90, nil, func(qw *v1alpha1.QueueWorker, _ *appsv1.Deployment) {
			qw.Spec.Template.Spec.Containers[0].Image = "x:2"
		}, rolling, false},
		"one still drains with other ones": {70, 100, []rollout.Pod{podWith("old", 10, 50)}, nil, recreate, true},
		"that one has ended":               {70, 100, []rollout.Pod{{Ended: true, Wire: podWith("", 10, 50).Wire}}, nil, rolling, false},
		"one cannot be read":               {70, 100, []rollout.Pod{{WireUnreadable: true}}, nil, recreate, true},
		"the template cannot be read": {70, 100, nil, func(_ *v1alpha1.QueueWorker, live *appsv1.Deployment) {
			live.Spec.Template.Spec.Containers[0].Env = nil
		}, recreate, true},
		"Recreate anyway":   {600, 700, nil, func(qw *v1alpha1.QueueWorker, _ *appsv1.Deployment) { qw.Spec.Strategy.Type = recreate }, recreate, false},
		"to another driver": {600, 700, nil, func(qw *v1alpha1.QueueWorker, _ *appsv1.Deployment) { qw.Spec.Queue.Connection = "redis" }, rolling, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, qw := databaseWorker(60, 90), databaseWorker(c.job, c.reservation)
			before.Spec.Preflight.Policy, qw.Spec.Preflight.Policy = v1alpha1.PreflightWarn, v1alpha1.PreflightWarn // nothing is tried first
			live := deployed(t, before)
			if c.arrange != nil {
				c.arrange(qw, live)
			}
			o := observeWith(qw, live)
			o.Pods, o.NewestVersion = c.pods, "new"
			plan := makePlan(t, o, render)
			if strategyOf(plan) != c.want || (plan.Clash != nil) != c.clash {
				t.Errorf("%s, %+v", strategyOf(plan), plan.Clash)
			}
			if c.want == recreate && plan.Deployment.Spec.Strategy.RollingUpdate != nil {
				t.Error("a Recreate with numbers of a rolling update is refused")
			}
		})
	}
}

// TestRecreateLastsUntilTheNewOnesRun goes through the moments of that one
// rollout.
func TestRecreateLastsUntilTheNewOnesRun(t *testing.T) {
	const rolling, recreate = appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType
	qw := databaseWorker(600, 700)
	for name, c := range map[string]struct {
		generation                   int64
		replicas, updated, available int32
		pods                         []rollout.Pod
		progressing                  string
		want                         appsv1.DeploymentStrategyType
		clash                        bool
	}{
		"its controller has not looked":      {2, 3, 3, 3, []rollout.Pod{podWith("old", 60, 90)}, rollout.ReasonDeploymentComplete, recreate, true},
		"nor has our cache":                  {2, 3, 3, 3, nil, rollout.ReasonDeploymentComplete, recreate, false},
		"older ones drain":                   {1, 0, 0, 0, []rollout.Pod{podWith("old", 60, 90)}, rollout.ReasonDeploymentComplete, recreate, true},
		"the last of them is gone":           {1, 0, 0, 0, nil, rollout.ReasonDeploymentComplete, recreate, false},
		"new ones start":                     {1, 3, 3, 1, []rollout.Pod{podWith("new", 600, 700)}, "ReplicaSetUpdated", recreate, false},
		"all of them run":                    {1, 3, 3, 3, []rollout.Pod{podWith("new", 600, 700)}, "ReplicaSetUpdated", rolling, false},
		"one fails after the rollout":        {1, 3, 3, 2, []rollout.Pod{podWith("new", 600, 700)}, rollout.ReasonDeploymentComplete, rolling, false},
		"unreadable ones of this template":   {1, 3, 3, 3, []rollout.Pod{{Version: "new", WireUnreadable: true}}, rollout.ReasonDeploymentComplete, rolling, false},
		"unreadable ones of an older one":    {1, 3, 3, 3, []rollout.Pod{{Version: "old", WireUnreadable: true}}, rollout.ReasonDeploymentComplete, recreate, true},
		"an older one is back, from nowhere": {1, 3, 3, 3, []rollout.Pod{podWith("old", 60, 90)}, rollout.ReasonDeploymentComplete, recreate, true},
	} {
		t.Run(name, func(t *testing.T) {
			live := deployed(t, qw)
			live.Spec.Strategy = appsv1.DeploymentStrategy{Type: recreate}
			live.Generation, live.Status.ObservedGeneration = c.generation, 1
			live.Status.Replicas, live.Status.UpdatedReplicas, live.Status.AvailableReplicas = c.replicas, c.updated, c.available
			live.Status.Conditions[0].Reason = c.progressing
			o := observeWith(qw, live)
			o.Pods, o.NewestVersion = c.pods, "new"
			plan := makePlan(t, o, render)
			if strategyOf(plan) != c.want || (plan.Clash != nil) != c.clash || plan.NewTemplate {
				t.Errorf("%s, %+v, new template %v", strategyOf(plan), plan.Clash, plan.NewTemplate)
			}
			if !rollout.Same(plan.Deployment.Spec.Template, makePlan(t, observeWith(qw, deployed(t, qw)), render).Deployment.Spec.Template) {
				t.Error("the strategy changes the pods")
			}
		})
	}
}
