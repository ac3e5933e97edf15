// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/workload"
)

// untilToldTo is how long a worker drains that goes when the spec says so.
const untilToldTo = "10m"

var _ = Describe("While workers drain", func() {
	It("a rolling update goes on until the last older one is gone, whatever the Deployment says", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		seen := seenSoFar(ctx, qw)

		rollTo(ctx, qw, "registry.example/shop:1.5.0")
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonDrainingOldPods)
		drain(ctx, qw, 2)
		oneIsDrained(ctx, qw)
		drain(ctx, qw, 1)
		out, err := kubectl(qw.Namespace, "", "rollout", "status", "--watch=false", "deployment/"+qw.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("successfully rolled out"))
		Expect(judged(ctx, qw)).To(Equal(kstatus.InProgressStatus), "the Deployment hides what still drains")

		oneIsDrained(ctx, qw)
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonSettled)
		Expect(podsOf(ctx, qw)).To(HaveLen(2), "it settled before the last older worker was gone")
		states := settledStates(ctx, qw, seen)
		Expect(reasons(states, v1alpha1.ConditionReconciling)).To(HaveExactElements(
			v1alpha1.ReasonRollingOut, v1alpha1.ReasonDrainingOldPods, v1alpha1.ReasonSettled))
		Expect(reasons(states, v1alpha1.ConditionReady)).To(HaveExactElements(v1alpha1.ReasonAvailable))
		Expect(reasons(states, v1alpha1.ConditionDraining)).To(HaveExactElements(
			v1alpha1.ReasonNoneDraining, v1alpha1.ReasonWorkersDraining, v1alpha1.ReasonNoneDraining))
		Expect(terminating(states)).To(HaveExactElements(
			BeEquivalentTo(0), BeEquivalentTo(2), BeEquivalentTo(1), BeEquivalentTo(0)))
	})

	It("another rollout waits for the workers of all older templates", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		seen := seenSoFar(ctx, qw)
		rollTo(ctx, qw, "registry.example/shop:1.5.0")
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonDrainingOldPods)
		rollTo(ctx, qw, "registry.example/shop:1.6.0")
		drain(ctx, qw, 4)
		Expect(conditionOf(qw, v1alpha1.ConditionDraining).Message).To(Equal(
			"4 workers may still finish a job, for up to 100 s; 4 run an older template."))
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonDrainingOldPods)
		allAreDrained(ctx, qw)
		settles(ctx, qw, 2)
		states := settledStates(ctx, qw, seen)
		under := reasons(states, v1alpha1.ConditionReconciling)
		Expect(under[len(under)-2:]).To(HaveExactElements(v1alpha1.ReasonDrainingOldPods, v1alpha1.ReasonSettled))
		Expect(under[:len(under)-1]).NotTo(ContainElement(v1alpha1.ReasonSettled))
		Expect(reasons(states, v1alpha1.ConditionReady)).To(HaveExactElements(v1alpha1.ReasonAvailable))
	})

	It("a Recreate starts no new one, and is ready only before and after", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		qw.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		seen := seenSoFar(ctx, qw)
		pods := watchPods(qw.Namespace)

		rollTo(ctx, qw, "registry.example/shop:1.5.0")
		condition(ctx, qw, v1alpha1.ConditionReady, v1alpha1.ReasonRecreating)
		drain(ctx, qw, 2)
		oneIsDrained(ctx, qw)
		drain(ctx, qw, 1)
		Expect(judged(ctx, qw)).To(Equal(kstatus.InProgressStatus))
		Expect(conditionOf(qw, v1alpha1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonRecreating)))
		oneIsDrained(ctx, qw)
		settles(ctx, qw, 2)

		Expect(pods.versions()).To(HaveLen(2))
		Expect(pods.overlaps()).To(BeEmpty(), "a worker started beside one of another template")
		states := settledStates(ctx, qw, seen)
		Expect(reasons(states, v1alpha1.ConditionReconciling)).To(HaveExactElements(v1alpha1.ReasonRollingOut, v1alpha1.ReasonSettled))
		Expect(reasons(states, v1alpha1.ConditionReady)).To(BeElementOf(
			[]string{v1alpha1.ReasonAvailable, v1alpha1.ReasonRecreating, v1alpha1.ReasonAvailable},
			[]string{v1alpha1.ReasonRecreating, v1alpha1.ReasonAvailable}))
		Expect(terminating(states)).To(HaveExactElements(
			BeEquivalentTo(0), BeEquivalentTo(2), BeEquivalentTo(1), BeEquivalentTo(0)))
	})

	It("scaling down is done at once and says who drains", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		qw.Spec.Replicas = ptr.To[int32](3)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 3)
		kept := runningUIDs(ctx, qw)
		seen := seenSoFar(ctx, qw)

		scaleTo(ctx, qw, 1)
		drain(ctx, qw, 2)
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonSettled)
		Expect(conditionOf(qw, v1alpha1.ConditionDraining).Message).To(Equal("2 workers may still finish a job, for up to 100 s."))
		Expect(judged(ctx, qw)).To(Equal(kstatus.CurrentStatus), "the workers that go on are the wanted ones")
		allAreDrained(ctx, qw)
		settles(ctx, qw, 1)
		Expect(kept).To(ContainElements(runningUIDs(ctx, qw)))

		scaleTo(ctx, qw, 0)
		condition(ctx, qw, v1alpha1.ConditionDraining, v1alpha1.ReasonWorkersDraining)
		Expect(conditionOf(qw, v1alpha1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonScaledToZero)))
		Expect(podsOf(ctx, qw)).To(HaveLen(1), "it drains")
		allAreDrained(ctx, qw)
		settles(ctx, qw, 0)
		Expect(podsOf(ctx, qw)).To(BeEmpty())
		states := settledStates(ctx, qw, seen)
		Expect(reasons(states, v1alpha1.ConditionReady)).To(HaveExactElements(v1alpha1.ReasonAvailable, v1alpha1.ReasonScaledToZero))
		Expect(peaks(states)).To(HaveExactElements(BeEquivalentTo(0), BeEquivalentTo(2), BeEquivalentTo(0), BeEquivalentTo(1), BeEquivalentTo(0)))
	})

	It("a deletion in the foreground keeps the QueueWorker, and with it the Deployment", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Expect(k8s.Delete(ctx, qw, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		drain(ctx, qw, 2)
		oneIsDrained(ctx, qw)
		drain(ctx, qw, 1)
		Expect(deploymentOf(ctx, qw).DeletionTimestamp).NotTo(BeNil())
		Expect(conditionOf(qw, v1alpha1.ConditionDraining).Message).To(Equal("1 worker may still finish a job, for up to 100 s."))
		Consistently(func() error { return k8s.Get(ctx, keyOf(qw), qw) }, "2s").Should(Succeed(), "it went before its last worker")
		Expect(podsOf(ctx, qw)).To(HaveLen(1))
		oneIsDrained(ctx, qw)
		Eventually(func() error { return k8s.Get(ctx, keyOf(qw), qw) }).Should(MatchError(ContainSubstring("not found")))
	})
})

// drain waits until the QueueWorker says that so many workers drain.
func drain(ctx context.Context, qw *v1alpha1.QueueWorker, workers int) {
	GinkgoHelper()
	Eventually(func() int32 { return get(ctx, qw).Status.TerminatingReplicas }).Should(BeEquivalentTo(workers))
}

// draining are the workers that were asked to stop.
func draining(ctx context.Context, qw *v1alpha1.QueueWorker) []corev1.Pod {
	GinkgoHelper()
	return slices.DeleteFunc(podsOf(ctx, qw), func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil })
}

// oneIsDrained lets one of the draining workers go.
func oneIsDrained(ctx context.Context, qw *v1alpha1.QueueWorker) {
	GinkgoHelper()
	pods := draining(ctx, qw)
	Expect(pods).NotTo(BeEmpty())
	isDrained(ctx, &pods[0])
}

// allAreDrained lets all draining workers go.
func allAreDrained(ctx context.Context, qw *v1alpha1.QueueWorker) {
	GinkgoHelper()
	for _, pod := range draining(ctx, qw) {
		isDrained(ctx, &pod)
	}
}

// isDrained is what a kubelet writes of a worker that has finished its job.
func isDrained(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	ends(ctx, pod, 10*time.Second, exit{0, "Completed"}, termination.Message{})
	removed(ctx, pod)
}

func rollTo(ctx context.Context, qw *v1alpha1.QueueWorker, image string) {
	GinkgoHelper()
	change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].Image = image })
}

// settledStates are the states after the given number of them, up to the
// stored one, that the operator reported about the newest spec of their time.
func settledStates(ctx context.Context, qw *v1alpha1.QueueWorker, seen int) []v1alpha1.QueueWorker {
	GinkgoHelper()
	end := seenSoFar(ctx, qw)
	states := since(qw.Namespace, qw.Name, 0)[seen:end]
	return slices.DeleteFunc(states, func(state v1alpha1.QueueWorker) bool { return state.Status.ObservedGeneration != state.Generation })
}

// seenSoFar is how many states the watch has brought, the stored one among them.
func seenSoFar(ctx context.Context, qw *v1alpha1.QueueWorker) int {
	GinkgoHelper()
	var states []v1alpha1.QueueWorker
	newest := get(ctx, qw).ResourceVersion
	Eventually(func() bool {
		states = since(qw.Namespace, qw.Name, 0)
		return slices.ContainsFunc(states, func(state v1alpha1.QueueWorker) bool { return state.ResourceVersion == newest })
	}).Should(BeTrue(), "the watch has not brought the newest state")
	return len(states)
}

// reasons are those of a condition, each once while it stays.
func reasons(states []v1alpha1.QueueWorker, kind string) []string {
	var all []string
	for i := range states {
		all = append(all, conditionOf(&states[i], kind).Reason)
	}
	return slices.Compact(all)
}

// terminating are the numbers of draining workers, each once while it stays.
// How many steps a rise has depends on the moments of looking: only its top is
// kept.
func terminating(states []v1alpha1.QueueWorker) []int32 {
	return turns(states, func(a, b, c int32) bool { return a < b && b < c })
}

// peaks are the same, and of a fall only the bottom is kept.
func peaks(states []v1alpha1.QueueWorker) []int32 {
	return turns(states, func(a, b, c int32) bool { return a < b && b < c || a > b && b > c })
}

func turns(states []v1alpha1.QueueWorker, onTheWay func(a, b, c int32) bool) []int32 {
	var all []int32
	for i := range states {
		all = slices.Compact(append(all, states[i].Status.TerminatingReplicas))
		if n := len(all); n > 2 && onTheWay(all[n-3], all[n-2], all[n-1]) {
			all = slices.Delete(all, n-2, n-1)
		}
	}
	return all
}

// podLog is what a watch tells of the pods of a namespace, in order.
type podLog struct {
	mu      sync.Mutex
	running map[string]string // by name: version
	seen    map[string]bool   // versions
	beside  []string
}

func watchPods(namespace string) *podLog {
	GinkgoHelper()
	watcher, err := k8s.Watch(context.Background(), &corev1.PodList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watcher.Stop)
	log := &podLog{running: map[string]string{}, seen: map[string]bool{}}
	go func() {
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && !workload.OfATrial(pod) {
				log.add(event.Type, pod)
			}
		}
	}()
	return log
}

func (l *podLog) add(kind watch.EventType, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	version := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case kind == watch.Added:
		for other, its := range l.running {
			if its != version {
				l.beside = append(l.beside, fmt.Sprintf("%s beside %s", pod.Name, other))
			}
		}
		l.running[pod.Name], l.seen[version] = version, true
	case kind == watch.Deleted || ended:
		delete(l.running, pod.Name)
	}
}

func (l *podLog) versions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.seen))
}

func (l *podLog) overlaps() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beside
}
