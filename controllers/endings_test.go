// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	watchevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// podOf is a worker of mail that was asked to stop with so many of its 100
// seconds.
func podOf(name string, asked time.Time, granted int64) *corev1.Pod {
	wire := timeoutchain.Wire{Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, GraceSeconds: 100}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: mail.Namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{v1alpha1.LabelName: mail.Name},
			DeletionTimestamp: ptr.To(metav1.NewTime(asked.Add(time.Duration(granted) * time.Second))), DeletionGracePeriodSeconds: &granted,
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](100),
			Containers:                    []corev1.Container{{Name: "worker", Env: []corev1.EnvVar{{Name: timeoutchain.WireEnv, Value: wire.Encode()}}}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "worker", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}},
	}
}

// endedPod is the same pod after its worker's end.
func endedPod(pod *corev1.Pod, code int32, at time.Time, said termination.Message) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, FinishedAt: metav1.NewTime(at), Message: string(said.Encode()),
	}}
	return pod
}

var charge = &termination.Job{UUID: "d67e", Class: "Charge"}

// watch is the watch of pods, with the queue behind it.
type watch struct {
	w     *world
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (w *world) watch() watch {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	w.t.Cleanup(queue.ShutDown)
	return watch{w, queue}
}

func (h watch) created(pod *corev1.Pod) {
	h.w.reconciler.endings.handler().Create(context.Background(), watchevent.CreateEvent{Object: pod}, h.queue)
}

func (h watch) updated(pod *corev1.Pod) {
	h.w.reconciler.endings.handler().Update(context.Background(), watchevent.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, h.queue)
}

func (h watch) deleted(pod *corev1.Pod) {
	h.w.reconciler.endings.handler().Delete(context.Background(), watchevent.DeleteEvent{Object: pod}, h.queue)
}

func (w *world) series(name string) string {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var text []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			value := series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
			var reason string
			for _, label := range series.GetLabel() {
				if label.GetName() == "reason" {
					reason = label.GetValue() + " "
				}
			}
			text = append(text, fmt.Sprintf("%s%v", reason, value))
		}
	}
	return strings.Join(text, ", ")
}

func (w *world) expectSeries(kills, drains, unobserved string) {
	w.t.Helper()
	got := [3]string{w.series("queueworker_kills_total"), w.series("queueworker_drain_duration_seconds"), w.series("queueworker_unobserved_endings_total")}
	if got != [3]string{kills, drains, unobserved} {
		w.t.Errorf("kills, drains, unobserved: %q", got)
	}
}

// warnings are the events of that type since the last call.
func (w *world) warnings() []string {
	var told []string
	for _, text := range w.told() {
		if strings.HasPrefix(text, corev1.EventTypeWarning) {
			told = append(told, text)
		}
	}
	return told
}

func TestEndingsAreTakenFromTheWatch(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	w.told()
	asked := w.clock.Now().Add(-time.Minute)
	h := w.watch()
	drained, cut := podOf("a", asked, 100), podOf("b", asked, 5)
	h.updated(drained)
	h.updated(cut)
	for _, pod := range []*corev1.Pod{
		endedPod(drained, 0, asked.Add(41*time.Second), termination.Message{Outcome: termination.Drained, DrainAt: asked.Format(time.RFC3339), DrainSeconds: 40.6}),
		endedPod(cut, 137, asked.Add(7*time.Second), termination.Message{Outcome: termination.GraceCut, Provisional: true, Job: charge}),
	} {
		h.updated(pod)
		pod = pod.DeepCopy()
		pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp = ptr.To[int64](0), ptr.To(metav1.NewTime(asked))
		h.updated(pod)
		h.deleted(pod) // nothing of it is in the cache any more
	}
	if h.queue.Len() != 1 {
		t.Fatalf("%d QueueWorkers are to be handled", h.queue.Len())
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.reconcile()
	w.expectSeries("GraceCut 1", "1", "")
	got := w.worker().Status
	if d := got.LastDrain; d == nil || d.Pod != "a" || d.DurationSeconds != 41 || !d.FinishTime.Time.Equal(asked.Add(41*time.Second)) {
		t.Errorf("%+v", d)
	}
	if k := got.LastKill; k == nil || k.Pod != "b" || k.Reason != v1alpha1.KillGraceCut || k.Job != "Charge d67e" || !strings.Contains(k.Message, "7 s after") {
		t.Errorf("%+v", k)
	}
	told := w.warnings()
	if len(told) != 2 || !strings.Contains(told[0], "GraceCut Worker b was killed") || !strings.Contains(told[1], "MayBeCut Worker b is being stopped within 5 s, and was promised 100 s") {
		t.Errorf("told %q", told)
	}
	if len(w.reconciler.endings.pods) != 0 {
		t.Error("pods that are gone are remembered")
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if w.reconcile(); len(w.told()) != 0 || w.statuses != 2 {
		t.Errorf("%d statuses", w.statuses)
	}
	w.expectSeries("GraceCut 1", "1", "")
}

func TestEndingsSurviveStatusesThatAreHeldBack(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	asked := w.clock.Now().Add(-time.Minute)
	h := w.watch()
	for i, name := range []string{"a", "c", "b"} { // b is told last and ended first
		at := asked.Add(time.Duration(10-i) * time.Second)
		h.deleted(endedPod(podOf(name, asked, 100), 70, at, termination.Message{Outcome: termination.Crashed}))
		w.reconcile()
	}
	if w.statuses != 1 || w.worker().Status.LastKill != nil {
		t.Fatalf("%d statuses within a second", w.statuses)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.reconcile()
	if k := w.worker().Status.LastKill; w.statuses != 2 || k == nil || k.Pod != "a" {
		t.Errorf("%d statuses, %+v", w.statuses, k)
	}
	w.expectSeries("Crashed 3", "", "")
}

func TestAnotherManagerTellsOnlyWhatIsNew(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	asked := w.clock.Now().Add(-time.Minute)
	crashed := func(name string, after time.Duration) *corev1.Pod {
		pod := endedPod(podOf(name, asked, 100), 70, asked.Add(after), termination.Message{Outcome: termination.Crashed})
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
		return pod
	}
	w.watch().updated(crashed("a", 10*time.Second))
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.reconcile()
	w.told()
	w.restart()
	h := w.watch()
	h.created(crashed("a", 10*time.Second))
	h.created(crashed("b", 20*time.Second)) // while no manager ran
	h.created(crashed("z", 5*time.Second))
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.reconcile()
	if told := w.warnings(); len(told) != 1 || !strings.Contains(told[0], "Crashed Worker b") || w.worker().Status.LastKill.Pod != "b" {
		t.Errorf("told %q, %+v", told, w.worker().Status.LastKill)
	}
	w.expectSeries("Crashed 1", "", "")
}

func TestWhatNobodySawIsCounted(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	asked := w.clock.Now()
	w.watch().deleted(podOf("forced", asked, 0))
	w.reconcile()
	w.expectSeries("", "", "1")

	qw := w.worker()
	qw.Status.TerminatingReplicas = 3
	if err := w.client.Status().Update(context.Background(), qw); err != nil {
		t.Fatal(err)
	}
	still := podOf("still", asked, 100)
	still.DeletionTimestamp, still.Finalizers = nil, []string{"keep/it"}
	for _, step := range []func() error{
		func() error { return w.client.Create(context.Background(), still) },
		func() error { return w.client.Delete(context.Background(), still) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	w.watch().created(endedPod(podOf("ended", asked, 100), 0, asked.Add(time.Second), termination.Message{Outcome: termination.Drained}))
	crashed := endedPod(podOf("crashed", asked, 100), 70, asked.Add(time.Second), termination.Message{Outcome: termination.Crashed})
	crashed.DeletionTimestamp, crashed.DeletionGracePeriodSeconds = nil, nil
	w.watch().created(crashed)
	for range 2 {
		w.reconcile()
	}
	w.expectSeries("Crashed 1", "1", "1") // 3 were stopping: one is, one has ended, and one is gone
}

func TestWhatWaitsIsBounded(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	asked := w.clock.Now()
	h := w.watch()
	for i := range maxEndings + 5 {
		h.deleted(endedPod(podOf(fmt.Sprint(i), asked, 100), 70, asked, termination.Message{Outcome: termination.Crashed}))
	}
	w.events.Events = make(chan string, 2*maxEndings)
	w.reconcile()
	w.expectSeries(fmt.Sprintf("Crashed %d", maxEndings), "", "5")
}

func TestWorkersThatOutliveTheirQueueWorkerAreTold(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	if err := w.client.Delete(context.Background(), w.worker()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.told()
	asked := w.clock.Now()
	h := w.watch()
	h.updated(endedPod(podOf("a", asked, 100), 137, asked.Add(101*time.Second), termination.Message{Outcome: termination.GraceCut, Provisional: true, Job: charge}))
	h.updated(endedPod(podOf("b", asked, 100), 0, asked.Add(time.Second), termination.Message{Outcome: termination.Drained}))
	w.reconcile()
	if told := w.told(); len(told) != 1 || !strings.Contains(told[0], "GraceEnded Worker a was killed at the end of its grace in job Charge d67e") {
		t.Errorf("told %q", told)
	}
	w.expectSeries("", "", "") // its series are gone with it
}

func TestOverdueDrainsAreLookedAtWhenTheyAreDue(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	pod := podOf("a", w.clock.Now(), 100)
	pod.DeletionTimestamp, pod.Finalizers = nil, []string{"keep/it"}
	if err := w.client.Create(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(context.Background(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(pod.DeletionTimestamp.Add(2 * time.Second)) // the fake server grants 0 s
	again := w.reconcile()
	if again != 3*time.Second {
		t.Fatalf("looks again after %v", again)
	}
	w.told()
	w.clock.SetTime(w.clock.Now().Add(again))
	if again := w.reconcile(); again != 0 {
		t.Errorf("looks again after %v", again)
	}
	if told := w.warnings(); len(told) != 1 || !strings.Contains(told[0], "DrainOverdue 1 worker may still finish a job; 1 should have been gone at ") {
		t.Errorf("told %q", told)
	}
}
