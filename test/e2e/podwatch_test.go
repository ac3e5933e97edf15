// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// podWatch keeps what the API server last said of each pod, also of those that are gone.
type podWatch struct {
	mu   sync.Mutex
	pods map[string]seenPod // by name; no name is used twice
}

type seenPod struct {
	*corev1.Pod
	asked time.Time // when its end was asked for, to the second; zero before
	gone  time.Time // when its end was seen; zero while it exists
}

func watchPods(ctx context.Context) (*podWatch, error) {
	w := &podWatch{pods: map[string]seenPod{}}
	factory := informers.NewSharedInformerFactoryWithOptions(suite.client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.saw(object, time.Time{}) },
		UpdateFunc: func(_, object any) { w.saw(object, time.Time{}) },
		DeleteFunc: func(object any) { w.saw(object, time.Now()) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, errors.New("pods cannot be watched")
	}
	return w, nil
}

func (w *podWatch) saw(object any, gone time.Time) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	pod := object.(*corev1.Pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.pods[pod.Name].asked
	if asked.IsZero() && pod.DeletionTimestamp != nil { // only the first word of it: the kubelet's last one replaces the time
		asked = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	w.pods[pod.Name] = seenPod{Pod: pod, asked: asked, gone: gone}
}

func (w *podWatch) get(name string) (seenPod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, ok := w.pods[name]
	return pod, ok
}

// labelled are the pods with this label, the gone ones too.
func (w *podWatch) labelled(key, value string) []seenPod {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []seenPod
	for _, pod := range w.pods {
		if pod.Labels[key] == value {
			found = append(found, pod)
		}
	}
	return found
}

// live tells whether the pod exists and nobody has asked for its end.
func (p seenPod) live() bool { return p.gone.IsZero() && p.DeletionTimestamp == nil }

// ready tells whether all of the pod's containers work.
func (p seenPod) ready() bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// faults are signs of a bad end: a container that was killed or failed, or was started more than once.
func (p seenPod) faults() []string {
	var found []string
	for _, status := range p.Status.ContainerStatuses {
		if status.RestartCount > 0 {
			found = append(found, fmt.Sprintf("container %s was restarted %d times", status.Name, status.RestartCount))
		}
		switch end := status.State.Terminated; {
		case end == nil:
			found = append(found, fmt.Sprintf("container %s: no end was reported", status.Name))
		case end.ExitCode != 0:
			found = append(found, fmt.Sprintf("container %s ended with %d, %s: %s", status.Name, end.ExitCode, end.Reason, end.Message))
		}
	}
	return found
}

// awaitReady waits until a pod works.
func awaitReady(t *testing.T, name string) {
	t.Helper()
	eventually(t, patience, "pod "+name+" is ready", func() bool {
		pod, ok := suite.pods.get(name)
		return ok && pod.ready()
	})
}

// awaitGone waits until a pod is gone and returns what was last seen of it.
func awaitGone(t *testing.T, name string) seenPod {
	t.Helper()
	eventually(t, patience, "pod "+name+" is gone", func() bool {
		pod, _ := suite.pods.get(name)
		return !pod.gone.IsZero()
	})
	pod, _ := suite.pods.get(name)
	return pod
}

// failedHooks are the events of hooks that failed, of pods whose name starts so.
func failedHooks(t *testing.T, pod string) []string {
	t.Helper()
	events, err := suite.client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedPreStopHook"})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, event := range events.Items {
		if len(event.InvolvedObject.Name) >= len(pod) && event.InvolvedObject.Name[:len(pod)] == pod {
			found = append(found, event.InvolvedObject.Name+": "+event.Message)
		}
	}
	return found
}
