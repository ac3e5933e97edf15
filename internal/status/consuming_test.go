// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/workload"
)

var monitorMade = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// spoken is a status that the monitor wrote after so long.
func spoken(after time.Duration) *v1alpha1.QueueState {
	return &v1alpha1.QueueState{State: v1alpha1.StateBusy, Depth: ptr.To[int64](12), ObservedTime: ptr.To(metav1.NewTime(monitorMade.Add(after)))}
}

func said(reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionConsuming, Status: metav1.ConditionUnknown, Reason: reason, Message: message}}
}

// ourMonitor is the monitor's Deployment as it was made.
func ourMonitor(qw *v1alpha1.QueueWorker) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: metav1.NewTime(monitorMade), Labels: workload.Labels(qw),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(qw, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))},
	}}
}

func TestConsuming(t *testing.T) {
	for name, c := range map[string]struct {
		monitor v1alpha1.Monitor
		runtime v1alpha1.Runtime
		state   *v1alpha1.QueueState
		before  []metav1.Condition
		problem string
		none    bool          // there is no monitor
		after   time.Duration // now, since the monitor was made
		reason  string        // empty = the monitor's own word stands
		text    string
	}{
		"new":                     {after: time.Minute, reason: "MonitorStarting"},
		"new for too long":        {after: time.Hour, reason: "MonitorSilent", text: "nothing since it was made"},
		"it speaks":               {state: spoken(time.Hour), after: time.Hour + 10*time.Minute},
		"it fell silent":          {state: spoken(time.Hour), after: time.Hour + 11*time.Minute, reason: "MonitorSilent", text: "nothing since 2026-01-01T01:00:00Z; then the queue was Busy with depth 12"},
		"its numbers are gone":    {before: said("MonitorSilent", "as it was"), after: 2 * time.Minute, reason: "MonitorSilent", text: "as it was"},
		"it never came":           {problem: "no quota.", none: true, after: time.Minute, reason: "MonitorSilent", text: "There is no monitor: no quota."},
		"the quota came":          {before: said("MonitorSilent", "There is no monitor: no quota."), after: time.Minute, reason: "MonitorStarting"},
		"a problem, it starts":    {problem: "no quota.", after: time.Minute, reason: "MonitorStarting", text: "yet. no quota."},
		"a problem, it is silent": {problem: "no quota.", state: spoken(0), after: time.Hour, reason: "MonitorSilent", text: "then the queue was Busy with depth 12. no quota."},
		"a problem, it is gone":   {problem: "no quota.", none: true, before: said("MonitorSilent", "as it was. Its pod's log says more."), after: time.Hour, reason: "MonitorSilent", text: "as it was. no quota."},
		"a problem that is over":  {before: said("MonitorSilent", "as it was. no quota."), after: time.Minute, reason: "MonitorSilent", text: "as it was. Its pod's log says more."},
		"one sentence, as before": {before: said("MonitorSilent", "as it was."), after: time.Minute, reason: "MonitorSilent", text: "as it was. Its pod's"},
		"a problem, it speaks":    {problem: "no quota.", state: spoken(time.Hour), after: time.Hour},
		"off":                     {monitor: v1alpha1.Monitor{Enabled: ptr.To(false)}, state: spoken(time.Hour), after: time.Hour, reason: "Unwatched", text: "turned off"},
		"nothing to ask":          {runtime: v1alpha1.RuntimeGeneric, after: time.Hour, reason: "Unwatched", text: "Generic"},
		"a state without a time":  {state: &v1alpha1.QueueState{}, after: time.Minute, reason: "MonitorSilent"},
	} {
		qw := &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{UID: "worker-1"}, Spec: v1alpha1.QueueWorkerSpec{Monitor: c.monitor, Runtime: c.runtime}}
		qw.Status.QueueState, qw.Status.Conditions = c.state, c.before
		o := &rollout.Observed{QueueWorker: qw, Now: monitorMade.Add(c.after)}
		if !c.none {
			o.Watch.Deployment = ourMonitor(qw)
		}
		got := consumingCondition(o, &rollout.Plan{Monitor: rollout.MonitorPlan{Problem: c.problem}})
		switch {
		case got == nil && c.reason == "":
		case got == nil || got.Reason != c.reason || got.Status != metav1.ConditionUnknown || !strings.Contains(got.Message, c.text):
			t.Errorf("%s: %+v, want %s with %q", name, got, c.reason, c.text)
		}
	}
}

// What keeps a monitor's newest pod away is told, by Consuming where no monitor
// speaks, and beside it where an older one does.
func TestTheNewestMonitorThatDoesNotCome(t *testing.T) {
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: pods"}
	late := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}
	coming := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}
	for name, c := range map[string]struct {
		condition appsv1.DeploymentCondition
		state     *v1alpha1.QueueState
		edit      func(*rollout.Observed)
		ready     string // in the message of Ready; empty = nothing of the monitor
		consuming string // in the operator's word; empty = the monitor's own stands
	}{
		"refused, an older one speaks":   {condition: refused, state: spoken(0), ready: "; the monitor stays as it was: its pod cannot be made: exceeded quota: pods."},
		"refused, and nobody speaks":     {condition: refused, consuming: "The monitor has not looked at the queue yet. Its pod cannot be made: exceeded quota: pods."},
		"refused for long":               {condition: refused, edit: func(o *rollout.Observed) { o.Now = o.Now.Add(time.Hour) }, consuming: "The monitor has said nothing since it was made. Its pod cannot be made: exceeded quota: pods."},
		"refused, the only one":          {condition: refused, state: spoken(0), edit: func(o *rollout.Observed) { o.Watch.Deployment.Status.AvailableReplicas = 0 }},
		"refused, and a silent one":      {condition: refused, state: spoken(-time.Hour), consuming: "The monitor has said nothing since 2025-12-31T23:00:00Z; then the queue was Busy with depth 12. Its pod cannot be made: exceeded quota: pods."},
		"late, an older one speaks":      {condition: late, state: spoken(0), ready: "; the monitor stays as it was: its newest pod has not ended a first look in time"},
		"late, and nobody speaks":        {condition: late, consuming: "The monitor has not looked at the queue yet."},
		"late, the only one":             {condition: late, state: spoken(0), edit: func(o *rollout.Observed) { o.Watch.Deployment.Status.AvailableReplicas = 0 }},
		"coming":                         {condition: coming, state: spoken(0)},
		"refused before the last change": {condition: refused, state: spoken(0), edit: func(o *rollout.Observed) { o.Watch.Deployment.Generation++ }},
		"somebody else's Deployment":     {condition: refused, state: spoken(0), edit: func(o *rollout.Observed) { o.Watch.Deployment.OwnerReferences = nil; o.Watch.Deployment.Labels = nil }},
		"turned off":                     {condition: refused, edit: func(o *rollout.Observed) { o.QueueWorker.Spec.Monitor.Enabled = ptr.To(false) }, consuming: "Monitoring is turned off."},
	} {
		qw := &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{Name: "mail", UID: "worker-1"}}
		qw.Status.QueueState = c.state
		o := &rollout.Observed{QueueWorker: qw, Now: monitorMade.Add(time.Minute)}
		o.Watch.Deployment = ourMonitor(qw)
		o.Watch.Deployment.Status.AvailableReplicas = 1
		o.Watch.Deployment.Status.Conditions = []appsv1.DeploymentCondition{c.condition}
		if c.edit != nil {
			c.edit(o)
		}
		next := Of(o, &rollout.Plan{})
		ready := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady).Message
		if told := strings.Contains(ready, "monitor"); told != (c.ready != "") || !strings.Contains(ready, c.ready) {
			t.Errorf("%s: Ready says %q, want %q", name, ready, c.ready)
		}
		consuming := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionConsuming)
		switch {
		case consuming == nil && c.consuming == "":
		case consuming == nil || c.consuming == "" || consuming.Message != c.consuming:
			t.Errorf("%s: Consuming is %+v, want %q", name, consuming, c.consuming)
		}
	}
}

// What the monitor wrote is never part of what the operator applies: it would
// own it from then on.
func TestTheMonitorsPartIsItsOwn(t *testing.T) {
	qw := &v1alpha1.QueueWorker{}
	qw.Status.QueueState = spoken(time.Hour)
	qw.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConsuming, Status: metav1.ConditionTrue, Reason: "Busy"}}
	o := &rollout.Observed{QueueWorker: qw, Now: monitorMade.Add(time.Hour)}
	for name, next := range map[string]v1alpha1.QueueWorkerStatus{"Of": Of(o, &rollout.Plan{}), "OfDeleted": OfDeleted(o)} {
		if next.QueueState != nil || meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionConsuming) != nil {
			t.Errorf("%s: %+v", name, next)
		}
		if Forgotten(qw, &next) {
			t.Errorf("%s: the numbers of a monitor that speaks are removed", name)
		}
	}
	o.Now = monitorMade.Add(2 * time.Hour)
	if next := Of(o, &rollout.Plan{}); !Forgotten(qw, &next) {
		t.Error("the numbers of a silent monitor stay")
	}
}
