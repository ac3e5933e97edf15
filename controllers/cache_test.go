// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestTrimmedPodTellsTheSame(t *testing.T) {
	wire := timeoutchain.Wire{Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, GraceSeconds: 100}
	ended := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", Message: "its last words", FinishedAt: metav1.NewTime(time.Unix(1_800_000_000, 0))}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "mail-1", Labels: map[string]string{"pod-template-hash": "f00"}, Annotations: map[string]string{"long": "text"},
			OwnerReferences: []metav1.OwnerReference{{Name: "mail-f00"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}, DeletionTimestamp: &metav1.Time{}, DeletionGracePeriodSeconds: ptr.To[int64](20),
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](100),
			Containers: []corev1.Container{
				{Name: "worker", Image: "x:1", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}, {Name: timeoutchain.WireEnv, Value: wire.Encode()}}},
				{Name: "proxy", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Reason: "Evicted", HostIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "long"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "copy", RestartCount: 1, State: corev1.ContainerState{Terminated: ended}},
				{Name: v1alpha1.FenceContainer, RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: corev1.ContainerState{Terminated: ended}},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "worker", Image: "x:1", ImageID: "long", RestartCount: 2, State: corev1.ContainerState{Terminated: ended}},
				{Name: "proxy", LastTerminationState: corev1.ContainerState{Terminated: ended}},
			},
		},
	}
	whole := pod.DeepCopy()
	trimmed, err := trimPod(pod)
	kept, ok := trimmed.(*corev1.Pod)
	if err != nil || !ok {
		t.Fatalf("%T, %v", trimmed, err)
	}
	if got, want := rollout.PodOf(kept), rollout.PodOf(whole); got != want || want.WireUnreadable || want.Beside != "proxy" {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	run := func(pod *corev1.Pod) outcome.Ending {
		return outcome.Judge(pod, outcome.Runs(pod)[0], outcome.GraceOf(pod))
	}
	if got, want := run(kept), run(whole); got != want || want.Reason != v1alpha1.KillEvicted {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, text := range []string{"secret", "long", "10.0.0.1", "PodScheduled", "mail-f00", "kubelet"} {
		if content, err := json.Marshal(kept); err != nil || bytes.Contains(content, []byte(text)) {
			t.Errorf("%q is kept: %s, %v", text, content, err)
		}
	}
	for state, want := range map[*corev1.ContainerStatus]rollout.Fence{
		{Ready: true}: rollout.FenceServing, {Started: ptr.To(true)}: rollout.FenceUnready,
		{State: corev1.ContainerState{Terminated: ended}}: rollout.FenceFailed,
	} {
		state.Name = v1alpha1.FenceContainer
		pod := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: trimStatuses([]corev1.ContainerStatus{*state})}}
		if got := rollout.PodOf(pod).Fence; got != want {
			t.Errorf("a fence that is %s is trimmed to one that is %s", want, got)
		}
	}
	if words := kept.Status.ContainerStatuses[1].LastTerminationState.Terminated; words != nil {
		t.Errorf("the last words of another container are kept: %+v", words)
	}
	if other, err := trimPod("a tombstone"); other != "a tombstone" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}

func TestTrimmedReplicaSetKeepsItsRevision(t *testing.T) {
	set := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Annotations:   map[string]string{revisionAnnotation: "7", v1alpha1.AnnotationAppliedTemplate: "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}}
	if _, err := trimReplicaSet(set); err != nil {
		t.Fatal(err)
	}
	if len(set.Annotations) != 1 || set.Annotations[revisionAnnotation] != "7" || set.ManagedFields != nil {
		t.Errorf("%+v", set)
	}
	if other, err := trimReplicaSet("a tombstone"); other != "a tombstone" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}

func TestTrimmedDeploymentKeepsWhoSetItsReplicas(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	ours := entry(v1alpha1.FieldManager, `{"f:spec":{"f:template":{}}}`)
	autoscaler := entry("autoscaler", `{"f:spec":{"f:replicas":{}}}`)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{ours, entry("kube-controller-manager", `{"f:status":{"f:replicas":{}}}`), autoscaler},
	}}
	if _, err := trimDeployment(deployment); err != nil {
		t.Fatal(err)
	}
	if want := []metav1.ManagedFieldsEntry{ours, autoscaler}; !equality.Semantic.DeepEqual(deployment.ManagedFields, want) {
		t.Errorf("%+v", deployment.ManagedFields)
	}
	if other, err := trimDeployment("a tombstone"); other != "a tombstone" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}

func TestTrimmedQueueWorkerKeepsItsOwnAnnotations(t *testing.T) {
	qw := &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "all of it once more", "team": "payments"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}}
	if _, err := trimQueueWorker(qw); err != nil {
		t.Fatal(err)
	}
	if len(qw.Annotations) != 1 || qw.Annotations["team"] != "payments" || qw.ManagedFields != nil {
		t.Errorf("%+v", qw.ObjectMeta)
	}
	if other, err := trimQueueWorker("a tombstone"); other != "a tombstone" || err != nil {
		t.Errorf("%v, %v", other, err)
	}
}

func TestWarningsOfTheAPIServerAreForDebugging(t *testing.T) {
	config, options := &rest.Config{}, &ctrl.Options{}
	Prepare(config, options)
	for _, verbosity := range []int{0, 1} {
		var lines int
		log := funcr.New(func(_, _ string) { lines++ }, funcr.Options{Verbosity: verbosity})
		config.WarningHandlerWithContext.HandleWarningHeaderWithContext(logr.NewContext(context.Background(), log), 299, "", "old object")
		if lines != verbosity {
			t.Errorf("verbosity %d: %d lines", verbosity, lines)
		}
	}
	if got := len(options.Cache.ByObject); got != 7 {
		t.Errorf("%d kinds are cached in a form of ours", got)
	}
	for _, object := range options.Client.Cache.DisableFor {
		if _, ok := object.(*corev1.Secret); ok {
			return
		}
	}
	t.Error("Secrets may be cached")
}
