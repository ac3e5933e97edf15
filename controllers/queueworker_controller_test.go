// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/workload"
)

func TestSecondLookWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	if w.applies != 1 || w.statuses != 1 {
		t.Fatalf("%d applies and %d statuses at first", w.applies, w.statuses)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.reconcile()
	w.restart()
	w.reconcile()
	if w.applies != 1 || w.statuses != 1 {
		t.Errorf("%d applies and %d statuses after looking again", w.applies, w.statuses)
	}
}

func TestWhatTheAPIServerDropsIsSentOnce(t *testing.T) {
	w := newWorld(t)
	w.drops = true
	for range 3 {
		w.reconcile()
	}
	if w.applies != 1 {
		t.Errorf("applied %d times", w.applies)
	}
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Replicas = ptr.To[int32](3) })
	if w.reconcile(); w.applies != 2 {
		t.Errorf("a change was applied %d times", w.applies-1)
	}
}

// counters moves what the Deployment's controller counts.
func (w *world) counters(available int32) {
	w.t.Helper()
	deployment := &appsv1.Deployment{}
	w.get(deployment)
	deployment.Status.AvailableReplicas = available
	deployment.Status.ReadyReplicas = available
	if err := w.client.Status().Update(context.Background(), deployment); err != nil {
		w.t.Fatal(err)
	}
}

func TestCountersAreHeldBackForASecond(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.counters(1)
	w.clock.SetTime(w.clock.Now().Add(300 * time.Millisecond))
	if again := w.reconcile(); again != 700*time.Millisecond || w.statuses != 1 {
		t.Errorf("%d statuses, and the next look after %v", w.statuses, again)
	}
	w.clock.SetTime(w.clock.Now().Add(700 * time.Millisecond))
	if again := w.reconcile(); again != 0 || w.statuses != 2 || w.worker().Status.Ready != "1/2" {
		t.Errorf("%d statuses, Ready %s, and the next look after %v", w.statuses, w.worker().Status.Ready, again)
	}
	w.counters(2) // enough: Ready flips, which is told at once
	if again := w.reconcile(); again != 0 || w.statuses != 3 {
		t.Errorf("%d statuses, and the next look after %v", w.statuses, again)
	}
}

func TestTransitionTimesStayUntilTheStatusFlips(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	began := w.clock.Now()
	w.clock.SetTime(began.Add(time.Minute))
	w.counters(1)
	w.reconcile()
	ready := meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionReady)
	if !ready.LastTransitionTime.Time.Equal(began) || !strings.HasPrefix(ready.Message, "1 of 2") {
		t.Errorf("%+v", ready)
	}
	w.counters(2)
	w.reconcile()
	ready = meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionReady)
	if !ready.LastTransitionTime.Time.Equal(w.clock.Now()) {
		t.Errorf("%+v", ready)
	}
}

func invalid() error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "mail",
		field.ErrorList{field.NotFound(field.NewPath("spec", "template"), "x")})
}

func TestRefusalIsAskedForOnce(t *testing.T) {
	w := newWorld(t)
	w.answer = invalid()
	for range 3 {
		if again := w.reconcile(); again != 0 {
			t.Errorf("looks again after %v", again)
		}
	}
	stalled := meta.FindStatusCondition(w.worker().Status.Conditions, v1alpha1.ConditionStalled)
	if w.applies != 1 || w.statuses != 1 || stalled.Reason != v1alpha1.ReasonDeploymentRefused || !strings.Contains(stalled.Message, `spec.template: Not found: "x"`) {
		t.Errorf("%d applies, %d statuses, %+v", w.applies, w.statuses, stalled)
	}
	if told := w.told(); len(told) != 1 || !strings.Contains(told[0], "Warning DeploymentRefused") {
		t.Errorf("told %q", told)
	}
	w.answer = nil
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].Image = "x:2" })
	w.reconcile()
	if told := w.told(); w.applies != 2 || len(told) != 2 || !strings.Contains(told[0], "Normal Recovered") {
		t.Errorf("%d applies, told %q", w.applies, told)
	}
}

func TestForbiddenIsAskedAgainEachMinute(t *testing.T) {
	w := newWorld(t)
	w.answer = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "mail", fmt.Errorf("exceeded quota"))
	if again := w.reconcile(); again != refusalPause {
		t.Errorf("looks again after %v", again)
	}
	w.clock.SetTime(w.clock.Now().Add(30 * time.Second))
	if w.reconcile(); w.applies != 1 {
		t.Errorf("asked %d times within a minute", w.applies)
	}
	w.clock.SetTime(w.clock.Now().Add(30 * time.Second))
	w.answer = nil
	if w.reconcile(); w.applies != 2 {
		t.Errorf("asked %d times", w.applies)
	}
}

func TestEndOfTheNamespaceIsQuiet(t *testing.T) {
	w := newWorld(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "mail", fmt.Errorf("being terminated"))
	forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.answer = forbidden
	if again := w.reconcile(); again != 0 || w.statuses != 0 || len(w.told()) != 0 {
		t.Errorf("looks again after %v, %d statuses", again, w.statuses)
	}
}

func TestOtherErrorsAreRetried(t *testing.T) {
	w := newWorld(t)
	w.answer = apierrors.NewTooManyRequestsError("later")
	_, err := w.reconciler.Reconcile(context.Background(), requestFor(mail))
	if !apierrors.IsTooManyRequests(err) || w.statuses != 0 {
		t.Errorf("%v, %d statuses", err, w.statuses)
	}
}

func TestForeignDeploymentIsLookedAtAgain(t *testing.T) {
	w := newWorld(t)
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mail.Namespace, Name: mail.Name}}
	if err := w.client.Create(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	if again := w.reconcile(); again != foreignPause || w.applies != 0 {
		t.Errorf("looks again after %v, %d applies", again, w.applies)
	}
	foreign.Labels = workload.Labels(w.worker())
	if err := w.client.Update(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	if again := w.reconcile(); again != 0 || w.applies != 1 {
		t.Errorf("looks again after %v, %d applies", again, w.applies)
	}
	w.get(foreign)
	if !metav1.IsControlledBy(foreign, w.worker()) {
		t.Error("it was not adopted")
	}
}

func TestDeletedWorkerIsOnlyReportedOn(t *testing.T) {
	w := newWorld(t)
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Finalizers = []string{"foregroundDeletion"} })
	w.reconcile()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: mail.Namespace, Name: "mail-1", Labels: map[string]string{v1alpha1.LabelName: "mail"}, Finalizers: []string{"keep/it"},
	}}
	for _, step := range []error{
		w.client.Create(context.Background(), pod), w.client.Delete(context.Background(), pod), w.client.Delete(context.Background(), w.worker()),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Replicas = ptr.To[int32](9) })
	w.reconcile()
	if got := w.worker().Status; w.applies != 1 || got.TerminatingReplicas != 1 {
		t.Errorf("%d applies, %+v", w.applies, got)
	}
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Finalizers = nil })
	w.reconcile()
	if len(w.reconciler.memory.byWorker) != 0 {
		t.Error("a QueueWorker that is gone is remembered")
	}
}

// gone is an API server from which the QueueWorker is gone, whatever the cache
// says.
type gone struct{ client.Reader }

func (g gone) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*v1alpha1.QueueWorker); ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "queueworkers"}, key.Name)
	}
	return g.Reader.Get(ctx, key, object, options...)
}

func TestNothingIsMadeForAWorkerThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.reconciler.live = gone{w.client}
	if again := w.reconcile(); again != 0 || w.applies != 0 || w.statuses != 0 {
		t.Errorf("%d applies, %d statuses, looks again after %v", w.applies, w.statuses, again)
	}
}

func TestEventsTellEachStateOnce(t *testing.T) {
	of := func(ready, reconciling, stalled metav1.Condition) *v1alpha1.QueueWorkerStatus {
		ready.Type, reconciling.Type, stalled.Type = v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
		return &v1alpha1.QueueWorkerStatus{Conditions: []metav1.Condition{ready, reconciling, stalled}}
	}
	yes := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	no := metav1.Condition{Status: metav1.ConditionFalse, Reason: "x"}
	for name, c := range map[string]struct {
		old, next *v1alpha1.QueueWorkerStatus
		want      string
	}{
		"new":               {&v1alpha1.QueueWorkerStatus{}, of(no, yes("RollingOut", "1"), no), "RollingOut"},
		"goes on":           {of(no, yes("RollingOut", "1"), no), of(no, yes("RollingOut", "2"), no), ""},
		"drains":            {of(no, yes("RollingOut", "1"), no), of(no, yes("DrainingOldPods", "2"), no), ""},
		"done":              {of(no, yes("DrainingOldPods", "1"), no), of(no, no, no), "RolledOut"},
		"scaled":            {of(no, yes("Scaling", "1"), no), of(no, no, no), ""},
		"another strategy":  {of(no, no, no), of(no, yes("Applying", "1"), no), ""},
		"stalls":            {of(no, yes("RollingOut", "1"), no), of(no, no, yes("ImageUnavailable", "1")), "ImageUnavailable"},
		"another number":    {of(no, no, yes("ImageUnavailable", "1")), of(no, no, yes("ImageUnavailable", "2")), ""},
		"another cause":     {of(no, no, yes("ChainBroken", "1")), of(no, no, yes("ChainBroken", "2")), "ChainBroken"},
		"another reason":    {of(no, no, yes("ChainBroken", "1")), of(no, no, yes("ForeignObject", "1")), "ForeignObject"},
		"recovers, rolling": {of(no, no, yes("ChainBroken", "1")), of(no, yes("RollingOut", "1"), no), "Recovered RollingOut"},
	} {
		var reasons []string
		for _, e := range eventsOf(c.old, c.next, nil) {
			reasons = append(reasons, e.reason)
		}
		if got := strings.Join(reasons, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
