// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

// trials are the pods that run only a preflight.
func (w *world) trials() []corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	if err := w.client.List(context.Background(), &pods, client.HasLabels{v1alpha1.LabelPreflight}); err != nil {
		w.t.Fatal(err)
	}
	return pods.Items
}

// recreating is a world with a worker whose older pods go before new ones come.
func recreating(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
	w.reconcile()
	return w
}

func (w *world) image() string {
	w.t.Helper()
	deployment := &appsv1.Deployment{}
	w.get(deployment)
	return deployment.Spec.Template.Spec.Containers[0].Image
}

func TestARecreateIsTriedFirst(t *testing.T) {
	w := recreating(t)
	if n := len(w.trials()); n != 0 {
		t.Fatalf("%d trials of the first template: nobody works yet", n)
	}
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].Image = "x:2" })
	w.reconcile()
	w.reconcile()
	trials := w.trials()
	if len(trials) != 1 || w.image() != "x:1" {
		t.Fatalf("%d trials while the Deployment has %s", len(trials), w.image())
	}
	pod := &trials[0]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  v1alpha1.PreflightContainer,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "preflight Passed: 0 errors, 0 warnings, 0 not verified"}},
	}}
	if err := w.client.Status().Update(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	if w.reconcile(); w.image() != "x:2" {
		t.Errorf("after it has passed the Deployment has %s", w.image())
	}
	if w.reconcile(); len(w.trials()) != 0 {
		t.Error("the pod is left")
	}
}

// A pod with our labels may be anybody's.
func TestOnlyOurTrialsAreRemoved(t *testing.T) {
	w := recreating(t)
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: mail.Namespace, Name: "theirs", Labels: map[string]string{v1alpha1.LabelName: "", v1alpha1.LabelPreflight: mail.Name},
	}}
	if err := w.client.Create(context.Background(), theirs); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if n := len(w.trials()); n != 1 {
		t.Errorf("%d pods are left", n)
	}
}

func TestARefusedTrialIsSentOnceAMinute(t *testing.T) {
	w := recreating(t)
	sent := 0
	w.reconciler.client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			sent++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", nil)
		},
	})
	w.edit(func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].Image = "x:2" })
	for range 3 {
		if again := w.reconcile(); again != refusalPause {
			t.Errorf("looked at again after %v", again)
		}
	}
	if stalled := find(&w.worker().Status, v1alpha1.ConditionStalled); sent != 1 || !strings.Contains(stalled.Message, "refuses Pod mail-preflight-") {
		t.Errorf("sent %d times: %s", sent, stalled.Message)
	}
	w.clock.SetTime(w.clock.Now().Add(refusalPause + time.Second))
	if w.reconcile(); sent != 2 || w.image() != "x:1" {
		t.Errorf("sent %d times, the Deployment has %s", sent, w.image())
	}
}

// What is trimmed away is not read.
func TestATrimmedPodSaysTheSameOfItsPreflight(t *testing.T) {
	const brief = "preflight Refused: 2 errors, 0 warnings, 0 not verified\nerror a: x\nerror b: another"
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: brief, ContainerID: "long"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{v1alpha1.LabelName: "", v1alpha1.LabelPreflight: mail.Name},
			OwnerReferences: []metav1.OwnerReference{{Name: mail.Name}},
		},
		Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
			{Name: v1alpha1.PreflightContainer, LastTerminationState: corev1.ContainerState{Terminated: ended}},
		}},
	}
	want := rollout.PreflightOf(pod)
	if _, err := trimPod(pod); err != nil {
		t.Fatal(err)
	}
	if got := rollout.PreflightOf(pod); want == nil || got == nil || *got != *want || want.First != "a: x" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if kept := pod.Status.InitContainerStatuses[0].LastTerminationState.Terminated; strings.Contains(kept.Message, "another") || kept.ContainerID != "" {
		t.Errorf("%+v", kept)
	}
	if len(pod.OwnerReferences) != 1 {
		t.Error("nobody can tell any more whose trial it is")
	}
}

// A refused pod that is replaced makes no condition flip.
func TestAVerdictOutlivesItsPod(t *testing.T) {
	w := newWorld(t)
	refused := rollout.NewestPreflight([]rollout.Pod{{Version: "f00", Preflight: rollout.PreflightOf(&corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: v1alpha1.PreflightContainer, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "preflight Refused: 1 errors, 0 warnings, 0 not verified\nerror a: x"},
		}}},
	}})}}, "f00")
	known := &known{}
	read := func(version string, pods ...rollout.Pod) *rollout.Observed {
		o := &rollout.Observed{Pods: pods, NewestVersion: version}
		if err := w.reconciler.readPreflight(context.Background(), known, o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := read("f00", rollout.Pod{Version: "f00", Preflight: refused}); o.Preflight != refused {
		t.Errorf("%+v", o.Preflight)
	}
	if o := read("f00", rollout.Pod{Version: "f00"}); o.Preflight != refused {
		t.Errorf("after the pod was replaced: %+v", o.Preflight)
	}
	if o := read("f11"); o.Preflight != nil {
		t.Errorf("another template: %+v", o.Preflight)
	}
}
