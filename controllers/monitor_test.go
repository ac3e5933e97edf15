// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	watchevent "sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/queueworker/operator/api/v1alpha1"
)

// monitored is a world whose QueueWorker has a monitor.
func monitored(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor = v1alpha1.Monitor{} })
	return w
}

var mailMonitor = types.NamespacedName{Namespace: mail.Namespace, Name: "mail-monitor"}

func ofMonitor() map[string]client.Object {
	return map[string]client.Object{
		"ServiceAccount": &corev1.ServiceAccount{}, "Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{}, "Deployment": &appsv1.Deployment{},
	}
}

func (w *world) consuming() metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionConsuming)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// madeNow gives the monitor's Deployment a time, since the fake API server notes
// down none.
func (w *world) madeNow() {
	w.t.Helper()
	made := &appsv1.Deployment{}
	if err := w.client.Get(context.Background(), mailMonitor, made); err != nil {
		w.t.Fatal(err)
	}
	made.CreationTimestamp = metav1.NewTime(w.clock.Now())
	if err := w.client.Update(context.Background(), made); err != nil {
		w.t.Fatal(err)
	}
}

func TestAMonitorIsMadeOnceAndRemoved(t *testing.T) {
	w := monitored(t)
	w.reconcile()
	for kind, object := range ofMonitor() {
		if err := w.client.Get(context.Background(), mailMonitor, object); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if !metav1.IsControlledBy(object, w.worker()) {
			t.Errorf("%s belongs to %v", kind, object.GetOwnerReferences())
		}
	}
	if w.applies != 5 || w.consuming().Reason != v1alpha1.ReasonMonitorStarting {
		t.Errorf("%d applies, %+v", w.applies, w.consuming())
	}
	w.madeNow()
	w.reconcile()
	w.restart()
	if w.reconcile(); w.applies != 5 {
		t.Errorf("%d applies after looking again", w.applies)
	}
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor.Enabled = ptr.To(false) })
	w.clock.SetTime(w.clock.Now().Add(statusPause))
	w.reconcile()
	for kind, object := range ofMonitor() {
		if err := w.client.Get(context.Background(), mailMonitor, object); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if w.consuming().Reason != v1alpha1.ReasonUnwatched {
		t.Errorf("%+v", w.consuming())
	}
}

// The image of the application is pulled with what its workers' account has.
func TestTheMonitorPullsAsTheWorkers(t *testing.T) {
	w := monitored(t)
	account := &corev1.ServiceAccount{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}}
	account.Namespace, account.Name = mail.Namespace, "default"
	if err := w.client.Create(context.Background(), account); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	made := &appsv1.Deployment{}
	if err := w.client.Get(context.Background(), mailMonitor, made); err != nil {
		t.Fatal(err)
	}
	if got := made.Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "registry" {
		t.Errorf("pulled with %v", got)
	}
}

// What is wrong with a monitor is told, and stalls no worker.
func TestAMonitorNeverHoldsUpTheWorkers(t *testing.T) {
	w := monitored(t)
	foreign := &corev1.ServiceAccount{}
	foreign.Namespace, foreign.Name = mailMonitor.Namespace, mailMonitor.Name
	if err := w.client.Create(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	if pause := w.reconcile(); pause != refusalPause {
		t.Errorf("looks again after %s", pause)
	}
	if c := w.consuming(); c.Reason != v1alpha1.ReasonMonitorSilent || !strings.Contains(c.Message, "ServiceAccount mail-monitor was not made by this operator") {
		t.Errorf("%+v", c)
	}
	w.get(&appsv1.Deployment{})
	if stalled := meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionStalled); stalled.Status != metav1.ConditionFalse {
		t.Errorf("%+v", stalled)
	}
	if told := w.told(); len(told) != 2 || !strings.HasPrefix(told[0], "Warning MonitorSilent There is no monitor:") {
		t.Errorf("told %q", told)
	}
	if err := w.client.Delete(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	w.answer = apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "mail-monitor", nil)
	w.clock.SetTime(w.clock.Now().Add(statusPause))
	w.reconcile()
	if c := w.consuming(); !strings.Contains(c.Message, "refuses ServiceAccount mail-monitor") {
		t.Errorf("%+v", c)
	}
	w.answer = nil
	w.clock.SetTime(w.clock.Now().Add(refusalPause))
	w.reconcile()
	if c := w.consuming(); c.Reason != v1alpha1.ReasonMonitorStarting {
		t.Errorf("%+v", c)
	}
}

// Nor does what cannot even be read: the workers are made and reported on, and it is tried again.
func TestAnUnreadableMonitorHoldsUpNobody(t *testing.T) {
	w := monitored(t)
	for _, c := range []struct {
		hidden error
		told   string
	}{
		{apierrors.NewInternalError(errors.New("busy")), ""},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "mail-monitor", errors.New("no role")), "The operator may not make it: serviceaccounts"},
	} {
		w.hidden = c.hidden
		w.clock.SetTime(w.clock.Now().Add(statusPause))
		if _, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: mail}); !errors.Is(err, c.hidden) {
			t.Errorf("returned %v, wanted %v", err, c.hidden)
		}
		w.get(&appsv1.Deployment{})
		if w.worker().Status.Chain == "" {
			t.Error("no status")
		}
		if got := w.consuming().Message; c.told != "" && !strings.Contains(got, c.told) {
			t.Errorf("Consuming says %q, wanted %q", got, c.told)
		}
	}
	w.hidden = nil
	w.clock.SetTime(w.clock.Now().Add(statusPause))
	w.reconcile()
	if c := w.consuming(); c.Reason != v1alpha1.ReasonMonitorStarting {
		t.Errorf("%+v", c)
	}
}

// Each trouble is told once, and its end; an empty and a busy queue are not.
func TestTroubleIsToldOnce(t *testing.T) {
	w, known := newWorld(t), &known{}
	qw := w.worker()
	for _, c := range []struct{ reason, told string }{
		{"Empty", ""}, {"Busy", ""}, {"Stuck", "Warning Stuck m"}, {"Stuck", ""}, {"Busy", "Normal Consuming No longer Stuck: m"},
		{"Empty", ""}, {"Stopped", "Warning Stopped m"}, {"Unknown", "Warning Unknown m"}, {"MonitorSilent", "Warning MonitorSilent m"},
		{"Paused", "Normal Consuming No longer MonitorSilent: m"}, {"Stuck", "Warning Stuck m"}, {"Unwatched", ""},
	} {
		qw.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConsuming, Reason: c.reason, Message: "m"}}
		w.reconciler.tellConsuming(known, qw, &v1alpha1.QueueWorkerStatus{})
		if got := strings.Join(w.told(), ","); got != c.told {
			t.Errorf("%s: told %q, want %q", c.reason, got, c.told)
		}
	}
}

// The monitor writes every few minutes: that is no reason to look.
func TestOnlyTroubleBringsALook(t *testing.T) {
	with := func(reason string, depth int64) *v1alpha1.QueueWorker {
		qw := &v1alpha1.QueueWorker{}
		qw.Status.QueueState = &v1alpha1.QueueState{Depth: &depth}
		qw.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConsuming, Reason: reason}}
		return qw
	}
	for _, c := range []struct {
		old, now string
		look     bool
	}{
		{"Busy", "Busy", false}, {"Empty", "Busy", false}, {"Busy", "Paused", false}, {"Stuck", "Stuck", false},
		{"Busy", "Stuck", true}, {"Stuck", "Busy", true}, {"MonitorStarting", "Empty", true}, {"MonitorSilent", "Stuck", true},
	} {
		if got := troubleChanged().Update(watchevent.UpdateEvent{ObjectOld: with(c.old, 1), ObjectNew: with(c.now, 2)}); got != c.look {
			t.Errorf("%s to %s: %t", c.old, c.now, got)
		}
	}
}

func TestTheSilenceOfAMonitorIsNoticed(t *testing.T) {
	w := monitored(t)
	w.reconcile()
	w.madeNow()
	pause := w.reconcile()
	if pause != 630*time.Second {
		t.Errorf("looks again after %s", pause)
	}
	w.clock.SetTime(w.clock.Now().Add(pause))
	w.reconcile()
	if c := w.consuming(); c.Reason != v1alpha1.ReasonMonitorSilent {
		t.Errorf("%+v", c)
	}
	if told := w.told(); len(told) == 0 || !strings.HasPrefix(told[len(told)-1], "Warning MonitorSilent") {
		t.Errorf("told %q", told)
	}
}

// speak writes the monitor's part of the status as of a time.
func (w *world) speak(at time.Time) {
	w.t.Helper()
	qw := w.worker()
	qw.Status.QueueState = &v1alpha1.QueueState{State: v1alpha1.StateBusy, Depth: ptr.To[int64](12), ObservedTime: ptr.To(metav1.NewTime(at))}
	meta.SetStatusCondition(&qw.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionConsuming, Status: metav1.ConditionTrue, Reason: "Busy"})
	if err := w.client.Status().Update(context.Background(), qw); err != nil {
		w.t.Fatal(err)
	}
}

// Whichever write somebody else overtakes, what the numbers were is told, and they are removed.
func TestLastWordsOutliveTheNumbers(t *testing.T) {
	for overtaken := range 3 {
		w := monitored(t)
		w.reconcile()
		w.speak(w.clock.Now())
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.overtaken = overtaken
		for range 3 {
			w.clock.SetTime(w.clock.Now().Add(statusPause))
			w.reconcile()
		}
		if c := w.consuming(); c.Reason != v1alpha1.ReasonMonitorSilent || !strings.Contains(c.Message, "then the queue was Busy with depth 12") {
			t.Errorf("write %d: %+v", overtaken, c)
		}
		if state := w.worker().Status.QueueState; state != nil {
			t.Errorf("write %d: the numbers stay: %+v", overtaken, state)
		}
		w.statuses = 0
		w.clock.SetTime(w.clock.Now().Add(statusPause))
		if w.reconcile(); w.statuses != 0 {
			t.Errorf("write %d: written again", overtaken)
		}
		if told := strings.Join(w.told(), ","); strings.Count(told, "MonitorSilent") != 1 {
			t.Errorf("write %d: told %s", overtaken, told)
		}
	}
}

// Nor is a monitor made for a worker that is gone, as the cache does not know yet.
func TestNoMonitorIsMadeForAWorkerThatIsGone(t *testing.T) {
	w := monitored(t)
	w.reconcile()
	if err := w.client.Delete(context.Background(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mailMonitor.Namespace, Name: mailMonitor.Name}}); err != nil {
		t.Fatal(err)
	}
	w.reconciler.live = gone{w.client}
	w.applies, w.statuses = 0, 0
	w.clock.SetTime(w.clock.Now().Add(statusPause))
	if again := w.reconcile(); again != 0 || w.applies != 0 || w.statuses != 0 {
		t.Errorf("%d applies, %d statuses, looks again after %v", w.applies, w.statuses, again)
	}
}

// The older monitor may speak until the newer has ended a first look.
func TestBothAccountsAreBoundMeanwhile(t *testing.T) {
	w := monitored(t)
	w.reconcile()
	bound := func() string {
		t.Helper()
		binding := &rbacv1.RoleBinding{}
		if err := w.client.Get(context.Background(), mailMonitor, binding); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, subject := range binding.Subjects {
			names = append(names, subject.Name)
		}
		return strings.Join(names, " ")
	}
	rolledOut := func(replicas, updated, available int32) {
		t.Helper()
		made := &appsv1.Deployment{}
		if err := w.client.Get(context.Background(), mailMonitor, made); err != nil {
			t.Fatal(err)
		}
		made.Status = appsv1.DeploymentStatus{ObservedGeneration: made.Generation, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available}
		if err := w.client.Status().Update(context.Background(), made); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
	}
	named := func(account string) {
		t.Helper()
		w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor.ServiceAccountName = account })
		w.reconcile()
	}
	is := func(want, when string) {
		t.Helper()
		if got := bound(); got != want {
			t.Errorf("%s: bound are %q, want %q", when, got, want)
		}
	}
	rolledOut(1, 1, 1)
	is("mail-monitor", "settled")
	named("sqs")
	is("sqs mail-monitor", "another is named")
	rolledOut(2, 1, 1)
	is("sqs mail-monitor", "the newer one starts")
	named("queue")
	is("queue sqs mail-monitor", "and a third, before it has ended a first look")
	rolledOut(2, 1, 2)
	is("queue sqs mail-monitor", "it has, and the older one is still there")
	rolledOut(1, 1, 1)
	is("queue", "it has replaced the older ones")
	rolledOut(1, 1, 0)
	is("queue", "it is unready for a while")
	named("")
	is("mail-monitor queue", "back")
}

// A change that is refused is told while the older monitor speaks, and what that one says stands.
func TestAnOlderMonitorThatStaysIsTold(t *testing.T) {
	w := monitored(t)
	w.reconcile()
	w.speak(w.clock.Now())
	w.told()
	w.answer = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "mail-monitor", errors.New("no budget"))
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor.IntervalSeconds = ptr.To[int32](60) })
	for range 2 {
		w.clock.SetTime(w.clock.Now().Add(statusPause))
		w.reconcile()
	}
	ready := meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(ready.Message, "the monitor stays as it was: the API server refuses Deployment mail-monitor") {
		t.Errorf("%+v", ready)
	}
	if state := w.worker().Status.QueueState; state == nil || w.consuming().Reason == v1alpha1.ReasonMonitorSilent {
		t.Errorf("%+v, %+v", state, w.consuming())
	}
	if told := strings.Join(w.told(), ","); strings.Count(told, "Warning MonitorStays the monitor stays as it was") != 1 {
		t.Errorf("told %s", told)
	}
	w.answer = nil
	w.clock.SetTime(w.clock.Now().Add(refusalPause))
	w.reconcile()
	if ready := meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionReady); strings.Contains(ready.Message, "monitor") {
		t.Errorf("%+v", ready)
	}
}
