// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/rollout"
)

const refusedBrief = "preflight Refused: 2 errors, 0 warnings, 0 not verified\nerror pcntl-missing: no pcntl\nerror posix-missing: no posix"

func TestAPreflightSaysHowItEnded(t *testing.T) {
	ended := func(code int32, reason, message string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
	}
	long := strings.Repeat("a", 2000) + " its end"
	for name, c := range map[string]struct {
		now, last *corev1.ContainerStateTerminated
		want      *preflight.Report
	}{
		"not begun": {nil, nil, nil},
		"passed": {ended(0, "Completed", "preflight Passed: 0 errors, 0 warnings, 0 not verified"), nil,
			&preflight.Report{Outcome: preflight.Passed}},
		"passed long ago":     {ended(0, "Completed", ""), nil, &preflight.Report{Outcome: preflight.Passed}},
		"refused":             {ended(1, "Error", refusedBrief), nil, &preflight.Report{Outcome: preflight.Refused, Errors: 2, First: "pcntl-missing: no pcntl"}},
		"refused, tried anew": {nil, ended(1, "Error", refusedBrief), &preflight.Report{Outcome: preflight.Refused, Errors: 2, First: "pcntl-missing: no pcntl"}},
		"passed at last":      {ended(0, "Completed", ""), ended(1, "Error", refusedBrief), &preflight.Report{Outcome: preflight.Passed}},
		"only warned": {ended(0, "Completed", refusedBrief), nil,
			&preflight.Report{Outcome: preflight.Refused, Errors: 2, First: "pcntl-missing: no pcntl"}},
		"unfinished": {ended(75, "Error", "preflight Unjudged: 1 errors, 0 warnings, 0 not verified\nerror preflight-unfinished: PHP took too long"), nil,
			&preflight.Report{Outcome: preflight.Unjudged, Errors: 1, First: "preflight-unfinished: PHP took too long"}},
		"out of memory": {ended(137, "OOMKilled", ""), nil,
			&preflight.Report{Outcome: preflight.Unjudged, First: "the kernel killed it because the container ran out of memory; raise the worker's memory limit"}},
		"passed, but a process of it was killed": {ended(0, "OOMKilled", "preflight Passed: 0 errors, 0 warnings, 0 not verified"), nil,
			&preflight.Report{Outcome: preflight.Unjudged, First: "the kernel killed one of its processes because the container ran out of memory; raise the worker's memory limit"}},
		"killed": {ended(137, "Error", ""), nil, &preflight.Report{Outcome: preflight.Unjudged, First: "it was killed from outside"}},
		"not started": {ended(128, "StartError", "exec: \"/queueworker/agent\":\npermission denied"), nil,
			&preflight.Report{Outcome: preflight.Unjudged, First: "it ended with exit code 128 (StartError); its last words: exec: \"/queueworker/agent\": permission denied"}},
		"wrong flags, a long log": {ended(64, "Error", long), nil,
			&preflight.Report{Outcome: preflight.Unjudged, First: "it ended with exit code 64 (Error); its last words: ... " + long[len(long)-300:]}},
	} {
		for _, list := range []func(*corev1.PodStatus) *[]corev1.ContainerStatus{
			func(s *corev1.PodStatus) *[]corev1.ContainerStatus { return &s.InitContainerStatuses },
			func(s *corev1.PodStatus) *[]corev1.ContainerStatus { return &s.ContainerStatuses },
		} {
			pod := &corev1.Pod{}
			*list(&pod.Status) = []corev1.ContainerStatus{
				{Name: "worker", State: corev1.ContainerState{Terminated: ended(1, "Error", "other")}},
				{Name: v1alpha1.PreflightContainer, State: corev1.ContainerState{Terminated: c.now}, LastTerminationState: corev1.ContainerState{Terminated: c.last}},
			}
			if got := rollout.PreflightOf(pod); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
			}
		}
	}
}

func TestTheGravestPreflightOfTheNewestTemplateCounts(t *testing.T) {
	said := func(version string, outcome preflight.Outcome, first string) rollout.Pod {
		return rollout.Pod{Version: version, Preflight: &preflight.Report{Outcome: outcome, First: first}}
	}
	stopped := said("new", preflight.Unjudged, "cut short")
	stopped.Terminating = true
	for name, c := range map[string]struct {
		pods []rollout.Pod
		want string
	}{
		"none":                    {nil, ""},
		"not yet":                 {[]rollout.Pod{{Version: "new"}}, ""},
		"an older template":       {[]rollout.Pod{said("old", preflight.Refused, "x")}, ""},
		"refused and passed":      {[]rollout.Pod{said("new", preflight.Passed, "p"), said("new", preflight.Refused, "r")}, "r"},
		"the same from every pod": {[]rollout.Pod{said("new", preflight.Refused, "s"), said("new", preflight.Refused, "r")}, "r"},
		"it can pass":             {[]rollout.Pod{said("new", preflight.Unjudged, "u"), said("new", preflight.Passed, "p")}, "p"},
		"stopped in the middle":   {[]rollout.Pod{stopped}, ""},
	} {
		got := rollout.NewestPreflight(c.pods, "new")
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.First != c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestARecreateWaitsForThePreflight changes a worker whose older pods have to be
// gone before the new ones start.
func TestARecreateWaitsForThePreflight(t *testing.T) {
	longer := func(qw *v1alpha1.QueueWorker) {
		qw.Spec.Timeouts.JobSeconds, qw.Spec.Timeouts.RetryAfterSeconds = 600, ptr.To[int32](700)
	}
	image := func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:2" }
	recreate := func(qw *v1alpha1.QueueWorker) { qw.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }
	policy := func(p v1alpha1.PreflightPolicy) func(*v1alpha1.QueueWorker) {
		return func(qw *v1alpha1.QueueWorker) { qw.Spec.Preflight.Policy = p }
	}
	for name, c := range map[string]struct {
		before, change []func(*v1alpha1.QueueWorker)
		trial          bool
	}{
		"numbers that do not fit": {nil, []func(*v1alpha1.QueueWorker){longer}, true},
		"as declared":             {[]func(*v1alpha1.QueueWorker){recreate}, []func(*v1alpha1.QueueWorker){image}, true},
		"a rolling update":        {nil, []func(*v1alpha1.QueueWorker){image}, false},
		"nothing changes":         {[]func(*v1alpha1.QueueWorker){recreate}, nil, false},
		"nobody works":            {[]func(*v1alpha1.QueueWorker){recreate, func(qw *v1alpha1.QueueWorker) { qw.Spec.Replicas = ptr.To[int32](0) }}, []func(*v1alpha1.QueueWorker){image}, false},
		"only warned":             {[]func(*v1alpha1.QueueWorker){policy("Warn")}, []func(*v1alpha1.QueueWorker){longer}, false},
		"switched off":            {[]func(*v1alpha1.QueueWorker){policy("Disabled")}, []func(*v1alpha1.QueueWorker){longer}, false},
		"switched off just now":   {nil, []func(*v1alpha1.QueueWorker){longer, policy("Disabled")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			qw := databaseWorker(60, 90)
			for _, change := range c.before {
				change(qw)
			}
			live := deployed(t, qw)
			for _, change := range c.change {
				change(qw)
			}
			o := observe(qw)
			o.Deployment = live
			plan := makePlan(t, o, render)
			if (plan.Trial != nil) != c.trial {
				t.Fatalf("trial %v, want %v", plan.Trial != nil, c.trial)
			}
			if !c.trial {
				if held := inSync(t, plan, live); held != (len(c.change) == 0) {
					t.Errorf("held back: %v", held)
				}
				return
			}
			checkTrial(t, plan.Trial, qw)
			if !inSync(t, plan, live) || plan.NewTemplate {
				t.Error("the Deployment is written before the preflight has passed")
			}
		})
	}
}

func checkTrial(t *testing.T, pod *corev1.Pod, qw *v1alpha1.QueueWorker) {
	t.Helper()
	if len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Name != v1alpha1.PreflightContainer ||
		pod.Spec.Containers[0].Image != qw.Spec.Template.Spec.Containers[0].Image || len(pod.Spec.InitContainers) != 1 {
		t.Errorf("%+v", pod.Spec)
	}
	if worker, labelled := pod.Labels[v1alpha1.LabelName]; worker != "" || !labelled || pod.Labels[v1alpha1.LabelPreflight] != qw.Name {
		t.Errorf("it is taken for a worker: %v", pod.Labels)
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || pod.OwnerReferences[0].UID != qw.UID || pod.Namespace != qw.Namespace {
		t.Errorf("%+v", pod)
	}
}

// TestATrialGoesOn lets the pod of a trial say one thing after the other.
func TestATrialGoesOn(t *testing.T) {
	qw := databaseWorker(60, 90)
	live := deployed(t, qw)
	qw.Spec.Timeouts.JobSeconds, qw.Spec.Timeouts.RetryAfterSeconds = 600, ptr.To[int32](700)
	o := observe(qw)
	o.Deployment = live
	name := makePlan(t, o, render).Trial.Name

	old := rollout.Trial{Name: "mail-preflight-of-another"}
	for _, said := range []*preflight.Report{nil, {Outcome: preflight.Unjudged}, {Outcome: preflight.Refused}} {
		o.Trials = []rollout.Trial{old, {Name: name, Preflight: said}}
		plan := makePlan(t, o, render)
		if plan.Trial == nil || plan.Tried != &o.Trials[1] || !inSync(t, plan, live) || !slices.Equal(plan.EndTrials, []string{old.Name}) {
			t.Errorf("after %+v: %+v", said, plan)
		}
	}
	o.Trials[1].Preflight = &preflight.Report{Outcome: preflight.Passed}
	plan := makePlan(t, o, render)
	if plan.Trial != nil || !plan.NewTemplate || strategyOf(plan) != appsv1.RecreateDeploymentStrategyType || slices.Contains(plan.EndTrials, name) {
		t.Errorf("after it has passed: %+v", plan)
	}
	o.Deployment = applied(t, plan.Deployment)
	if plan := makePlan(t, o, render); plan.Trial != nil || !slices.Contains(plan.EndTrials, name) {
		t.Errorf("after the template is applied: %+v", plan)
	}
}
