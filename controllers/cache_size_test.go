// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// maxPodBytes is what one cached pod may take. 5,000 QueueWorkers with a pod
// each, and everything else of theirs, have to fit into 350 MiB.
const maxPodBytes = 5 << 10

func TestACachedPodIsSmall(t *testing.T) {
	const pods = 2000
	text, err := json.Marshal(realisticPod())
	if err != nil {
		t.Fatal(err)
	}
	measure := func(trim bool) uint64 {
		kept := make([]*corev1.Pod, pods)
		before := heap()
		for i := range kept {
			pod := &corev1.Pod{}
			if err := json.Unmarshal(text, pod); err != nil {
				t.Fatal(err)
			}
			if trim {
				if _, err := trimPod(pod); err != nil {
					t.Fatal(err)
				}
			}
			kept[i] = pod
		}
		after := heap()
		runtime.KeepAlive(kept)
		return (after - before) / pods
	}
	whole, trimmed := measure(false), measure(true)
	t.Logf("a pod takes %d bytes, and %d in the cache", whole, trimmed)
	if trimmed > maxPodBytes {
		t.Errorf("a cached pod takes %d bytes, at most %d are wanted", trimmed, maxPodBytes)
	}
	if whole < 3*trimmed {
		t.Errorf("a whole pod takes only %d bytes: the measurement is wrong, or nothing is trimmed", whole)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// realisticPod is a worker as a kubelet reports it: with a proxy beside it, two
// init containers, and the environment of a real application.
func realisticPod() *corev1.Pod {
	wire := timeoutchain.Wire{Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, Driver: timeoutchain.Database,
		JobSeconds: 30, RetryAfterSeconds: 90, GraceSeconds: 100, WatchdogSeconds: 55}
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "payments-7d9c5b9c4f-x2x7k", UID: types.UID("b9a5e6a0-3f1e-4c8a-9a55-1f2e3d4c5b6a"), ResourceVersion: "123456789",
			Labels:          map[string]string{v1alpha1.LabelName: "payments", "pod-template-hash": "7d9c5b9c4f", "team": "payments"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "note": strings.Repeat("x", 200)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "payments-7d9c5b9c4f", Controller: ptr.To(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](100),
			NodeName:                      "node-1", ServiceAccountName: "default",
			Volumes: []corev1.Volume{{Name: "queueworker", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.88.0.7", StartTime: &now},
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	container := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Image: "registry.example/" + name + ":1.4.2", Command: []string{"/queueworker/agent", "run", "--", "php", "artisan", "queue:work"}}
		for i := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: strings.Repeat("v", 30)})
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: timeoutchain.WireEnv, Value: wire.Encode()})
		return c
	}
	status := func(name string, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Image: "registry.example/" + name + ":1.4.2", State: state, Ready: true, Started: ptr.To(true),
			ImageID: "registry.example/" + name + "@sha256:" + strings.Repeat("0", 64), ContainerID: "containerd://" + strings.Repeat("1", 64)}
	}
	for _, name := range []string{"worker", "proxy"} {
		pod.Spec.Containers = append(pod.Spec.Containers, container(name))
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status(name, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}))
	}
	for _, name := range []string{"queueworker-agent", "migrate"} {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, container(name))
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status(name, corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now, ContainerID: "containerd://" + strings.Repeat("1", 64)}}))
	}
	return pod
}

// What is remembered of a written object is small until the cache has it.
func TestAWrittenObjectIsRememberedInLittleMemory(t *testing.T) {
	const objects = 2000
	text, err := json.Marshal(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: realisticPod().Spec}}})
	if err != nil {
		t.Fatal(err)
	}
	each := func(keep func(*appsv1.Deployment) any) uint64 {
		kept := make([]any, objects)
		before := heap()
		for i := range kept {
			deployment := &appsv1.Deployment{}
			if err := json.Unmarshal(text, deployment); err != nil {
				t.Fatal(err)
			}
			kept[i] = keep(deployment)
		}
		after := heap()
		runtime.KeepAlive(kept)
		return (after - before) / objects
	}
	whole := each(func(d *appsv1.Deployment) any { return d })
	remembered := each(func(d *appsv1.Deployment) any { return aheadOf(d) })
	t.Logf("a Deployment takes %d bytes, and %d until the cache has it", whole, remembered)
	if 2*remembered > whole {
		t.Errorf("a written Deployment takes %d bytes, decoded %d", remembered, whole)
	}
}
