// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

var renderMonitor = workload.WithMonitor("registry.example/operator:1.0.0")

func planMonitor(t *testing.T, o *rollout.Observed, render workload.Renderer) rollout.MonitorPlan {
	t.Helper()
	plan, err := rollout.PlanMonitor(o, render)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// kinds are the parts of a plan, with a minus where one is removed.
func kinds(plan rollout.MonitorPlan) string {
	var all []string
	for _, part := range plan.Parts {
		kind := part.Kind
		if part.Wanted == nil {
			kind = "-" + kind
		}
		all = append(all, kind)
	}
	return strings.Join(all, " ")
}

func monitorDeployment(t *testing.T, plan rollout.MonitorPlan) *appsv1ac.DeploymentApplyConfiguration {
	t.Helper()
	at := slices.IndexFunc(plan.Parts, func(p rollout.MonitorPart) bool { return p.Kind == "Deployment" })
	wanted, ok := plan.Parts[at].Wanted.(*appsv1ac.DeploymentApplyConfiguration)
	if !ok {
		t.Fatalf("%T", plan.Parts[at].Wanted)
	}
	return wanted
}

func TestWhoMayComesBeforeWhoDoes(t *testing.T) {
	o := observe(newWorker())
	plan := planMonitor(t, o, renderMonitor)
	if got := kinds(plan); got != "ServiceAccount Role RoleBinding Deployment" || plan.Problem != "" {
		t.Errorf("%s %q", got, plan.Problem)
	}
	ours := []metav1.OwnerReference{*metav1.NewControllerRef(o.QueueWorker, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))}
	o.Watch.Deployment = applied(t, monitorDeployment(t, plan))
	o.Watch.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{OwnerReferences: ours}}
	o.QueueWorker.Spec.Monitor.Enabled = ptr.To(false)
	if got := kinds(planMonitor(t, o, renderMonitor)); got != "-Deployment -ServiceAccount" {
		t.Errorf("turned off: %s", got)
	}
	o.QueueWorker.Spec.Monitor = v1alpha1.Monitor{ServiceAccountName: "sqs"}
	if got := kinds(planMonitor(t, o, renderMonitor)); got != "Role RoleBinding Deployment" { // ours stays: the older monitor needs it, or it is the one that is named
		t.Errorf("with an account of the user's: %s", got)
	}
}

func TestAnUpgradedOperatorKeepsTheMonitor(t *testing.T) {
	o := observe(newWorker())
	o.Watch.Deployment = applied(t, monitorDeployment(t, planMonitor(t, o, renderMonitor)))
	next := func(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain) corev1.PodTemplateSpec {
		pod := renderMonitor(qw, chain)
		pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "--json")
		return pod
	}
	owned, err := rollout.OwnedDeployment(o.Watch.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	if !rollout.Same(monitorDeployment(t, planMonitor(t, o, next)), owned) {
		t.Error("another rendering alone changes the monitor")
	}
	o.QueueWorker.Spec.Monitor.IntervalSeconds = ptr.To[int32](60)
	text, err := json.Marshal(monitorDeployment(t, planMonitor(t, o, next)))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(text); !strings.Contains(text, `"--json"`) || !strings.Contains(text, `\"intervalSeconds\":60`) {
		t.Error("a change of the user's is not rendered")
	}
}

func TestAMonitorThatCannotBe(t *testing.T) {
	foreign := metav1.ObjectMeta{Name: "mail-monitor", Labels: map[string]string{"app": "another"}}
	for name, edit := range map[string]func(*rollout.Watch){
		"account":    func(w *rollout.Watch) { w.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: foreign} },
		"role":       func(w *rollout.Watch) { w.Role = &rbacv1.Role{ObjectMeta: foreign} },
		"binding":    func(w *rollout.Watch) { w.RoleBinding = &rbacv1.RoleBinding{ObjectMeta: foreign} },
		"deployment": func(w *rollout.Watch) { w.Deployment = &appsv1.Deployment{ObjectMeta: foreign} },
	} {
		o := observe(newWorker())
		edit(&o.Watch)
		plan := planMonitor(t, o, renderMonitor)
		if len(plan.Parts) != 0 || !strings.Contains(plan.Problem, "mail-monitor was not made by this operator") {
			t.Errorf("%s: %s %q", name, kinds(plan), plan.Problem)
		}
		o.QueueWorker.Spec.Monitor.Enabled = ptr.To(false)
		if plan := planMonitor(t, o, renderMonitor); len(plan.Parts) != 0 || plan.Problem != "" {
			t.Errorf("%s, turned off: %s %q", name, kinds(plan), plan.Problem)
		}
	}
	broken := newWorker()
	broken.Spec.Timeouts.JobSeconds = 900
	if plan := planMonitor(t, observe(broken), renderMonitor); len(plan.Parts) != 0 {
		t.Errorf("a broken chain: %s", kinds(plan))
	}
}

func TestSilentAt(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	away := func(since time.Time) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	}
	for name, c := range map[string]struct {
		interval   *int32
		deployment bool
		spoke      time.Duration
		conditions []appsv1.DeploymentCondition
		want       time.Duration // after start; 0 = never
	}{
		"there is none":             {},
		"it has not spoken yet":     {deployment: true, want: 630 * time.Second},
		"it spoke":                  {deployment: true, spoke: time.Hour, want: time.Hour + 630*time.Second},
		"it is gone":                {spoke: time.Hour, want: time.Hour + 630*time.Second},
		"a long interval":           {deployment: true, interval: ptr.To[int32](3600), spoke: time.Hour, want: 4 * time.Hour},
		"its pod is away":           {deployment: true, spoke: time.Hour, conditions: away(start.Add(time.Hour + time.Minute)), want: time.Hour + 3*time.Minute},
		"away, and late anyway":     {deployment: true, spoke: time.Hour, conditions: away(start.Add(time.Hour + 10*time.Minute)), want: time.Hour + 630*time.Second},
		"it spoke, then unready":    {deployment: true, spoke: time.Hour, conditions: away(start.Add(time.Hour)), want: time.Hour + 2*time.Minute},
		"unready, but speaks":       {deployment: true, spoke: time.Hour, conditions: away(start.Add(time.Minute)), want: time.Hour + 630*time.Second},
		"away with a long interval": {deployment: true, interval: ptr.To[int32](100), spoke: time.Hour, conditions: away(start.Add(time.Hour)), want: time.Hour + 5*time.Minute},
	} {
		o := observe(newWorker())
		o.QueueWorker.Spec.Monitor.IntervalSeconds = c.interval
		if c.deployment {
			o.Watch.Deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start)}}
			o.Watch.Deployment.Status.Conditions = c.conditions
		}
		if c.spoke > 0 {
			o.QueueWorker.Status.QueueState = &v1alpha1.QueueState{ObservedTime: ptr.To(metav1.NewTime(start.Add(c.spoke)))}
		}
		got := o.SilentAt()
		if c.want == 0 && !got.IsZero() || c.want > 0 && !got.Equal(start.Add(c.want)) {
			t.Errorf("%s: %s, want %s", name, got.Sub(start), c.want)
		}
	}
}
