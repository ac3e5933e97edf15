// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/controllers"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/status"
)

const (
	kills      = "queueworker_kills_total"
	drains     = "queueworker_drain_duration_seconds"
	unobserved = "queueworker_unobserved_endings_total"
)

// The pods here are simulated. What a kubelet writes about the end of a worker
// is written by the specs, in the order in which a real one was seen to write
// it: the terminated status, then at once the last request of the deletion, with
// a grace of 0, with which the pod is gone.
var _ = Describe("The ends of workers, with a stand-in for the kubelet", func() {
	It("are taken from the watch, though a pod is gone at once", func(ctx SpecContext) {
		qw := startWorkers(ctx, 3)
		pods := podsOf(ctx, qw)
		drained, cut, late := &pods[0], &pods[1], &pods[2]

		By("draining one")
		Expect(k8s.Delete(ctx, drained)).To(Succeed())
		ends(ctx, drained, 41*time.Second, exit{0, "Completed"}, termination.Message{
			Outcome: termination.Drained, DrainAt: time.Now().Format(time.RFC3339), DrainSeconds: 40.6, WaitedFor: &termination.Job{Class: "Report"},
		})
		removed(ctx, drained)
		Eventually(func() *v1alpha1.LastDrain { return get(ctx, qw).Status.LastDrain }).Should(And(
			HaveField("Pod", drained.Name), HaveField("DurationSeconds", BeEquivalentTo(41)), HaveField("Job", "Report")))
		Expect(conditionOf(qw, v1alpha1.ConditionGraceHonored).Status).To(Equal(metav1.ConditionTrue))

		By("deleting one with less than it was promised")
		Expect(k8s.Delete(ctx, cut, client.GracePeriodSeconds(5))).To(Succeed())
		honored := condition(ctx, qw, v1alpha1.ConditionGraceHonored, v1alpha1.ReasonMayBeCut)
		Expect(honored.Message).To(ContainSubstring("pod " + cut.Name + " with 5 s instead of 100 s"))
		Eventually(func() []string { return notesOf(ctx, qw, controllers.EventMayBeCut) }).Should(HaveExactElements(
			ContainSubstring("Worker " + cut.Name + " is being stopped within 5 s, and was promised 100 s")))
		Expect(get(ctx, qw).Status.LastKill).To(BeNil(), "it was told before the kill")
		ends(ctx, cut, 7*time.Second, exit{137, "Error"}, inTheJob())
		removed(ctx, cut)
		Eventually(func() *v1alpha1.LastKill { return get(ctx, qw).Status.LastKill }).Should(And(
			HaveField("Pod", cut.Name), HaveField("Reason", v1alpha1.KillGraceCut), HaveField("Job", `App\Jobs\Charge d67e`),
			HaveField("Message", ContainSubstring("7 s after it was asked to stop with 100 s promised and 5 s granted"))))
		condition(ctx, qw, v1alpha1.ConditionGraceHonored, v1alpha1.ReasonPromiseKept)

		By("letting one outlast its whole grace")
		Expect(k8s.Delete(ctx, late)).To(Succeed())
		ends(ctx, late, 102*time.Second, exit{137, "Error"}, inTheJob())
		removed(ctx, late)
		Eventually(func() *v1alpha1.LastKill { return get(ctx, qw).Status.LastKill }).Should(HaveField("Reason", v1alpha1.KillGraceEnded))

		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(Equal(map[string]int{
			"RollingOut": 1, "RolledOut": 1, "MayBeCut": 1, "GraceCut": 1, "GraceEnded": 1}))
		Expect(notesOf(ctx, qw, "GraceCut")).To(HaveExactElements(qwMessage(cut.Name)))
		Expect(operator.counted(drains, qw, "")).To(BeEquivalentTo(1))
		Expect(operator.counted(kills, qw, "GraceCut")).To(BeEquivalentTo(1))
		Expect(operator.counted(kills, qw, "")).To(BeEquivalentTo(2))
		Expect(operator.counted(unobserved, qw, "")).To(BeZero())
	})

	It("are told apart: eviction, a second request, memory, a crash", func(ctx SpecContext) {
		qw := startWorkers(ctx, 4)
		pods := podsOf(ctx, qw)
		evicted, twice, memory, loop := &pods[0], &pods[1], &pods[2], &pods[3]

		eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](3)}}
		Expect(k8s.SubResource("eviction").Create(ctx, evicted, eviction)).To(Succeed())
		Expect(get(ctx, evicted).Status.Conditions).To(ContainElement(HaveField("Type", corev1.DisruptionTarget)))
		ends(ctx, evicted, 5*time.Second, exit{137, "Error"}, inTheJob())
		removed(ctx, evicted)
		lastKill(ctx, qw, evicted, v1alpha1.KillEvicted, "EvictionByEvictionAPI")

		Expect(k8s.Delete(ctx, twice)).To(Succeed())
		Expect(k8s.Delete(ctx, twice, client.GracePeriodSeconds(2))).To(Succeed())
		ends(ctx, twice, 6*time.Second, exit{137, "Error"}, inTheJob())
		removed(ctx, twice)
		lastKill(ctx, qw, twice, v1alpha1.KillGraceCut, "2 s granted")

		ends(ctx, memory, 10*time.Second, exit{137, "OOMKilled"}, termination.Message{})
		lastKill(ctx, qw, memory, v1alpha1.KillOOMKilled, "memory limit")

		By("crashing three times in the same pod")
		for run := range 3 {
			ends(ctx, loop, time.Duration(20+run)*time.Second, exit{70, "Error"}, termination.Message{Outcome: termination.Crashed, Reason: "the worker ended with code 1"})
			restarts(ctx, loop)
		}
		Eventually(func() float64 { return operator.counted(kills, qw, "Crashed") }).Should(BeEquivalentTo(3))
		lastKill(ctx, qw, loop, v1alpha1.KillCrashed, "the worker ended with code 1")
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(And(
			HaveKeyWithValue("Evicted", 1), HaveKeyWithValue("GraceCut", 1), HaveKeyWithValue("OOMKilled", 1), HaveKeyWithValue("MayBeCut", 2)))
	})

	It("are all counted when twenty come at once, in few writes", func(ctx SpecContext) {
		qw := startWorkers(ctx, 20)
		pods := podsOf(ctx, qw)
		before, began := len(operator.writes.in(qw.Namespace, "/status")), time.Now()
		scaleTo(ctx, qw, 0)
		drain(ctx, qw, 20)
		for i := range pods {
			ends(ctx, &pods[i], 10*time.Second, exit{0, "Completed"}, termination.Message{Outcome: termination.Drained, DrainSeconds: 10})
			removed(ctx, &pods[i])
		}
		settles(ctx, qw, 0)
		Eventually(func() float64 { return operator.counted(drains, qw, "") }).Should(BeEquivalentTo(20))
		Expect(operator.counted(unobserved, qw, "")).To(BeZero())
		Expect(len(operator.writes.in(qw.Namespace, "/status"))-before).To(BeNumerically("<=", mostWrites(began)), "of a hundred changes of pods")
	})

	It("are told of an admission that lowers the grace, and of a container that it adds, before any kill", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		lowersGrace(ctx, namespace)
		qw := worker(namespace, "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		honored := condition(ctx, qw, v1alpha1.ConditionGraceHonored, v1alpha1.ReasonAdmittedWithLess)
		Expect(honored).To(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", And(ContainSubstring("2 workers were admitted"), ContainSubstring("with 7 s instead of 100 s")))))
		Expect(conditionOf(qw, v1alpha1.ConditionReady)).To(And(HaveField("Status", metav1.ConditionTrue),
			HaveField("Message", ContainSubstring("something added the container mesh to the workers' pods"))))
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(And(
			HaveKey(v1alpha1.ReasonAdmittedWithLess), HaveKeyWithValue(status.ReasonSidecarStopsFirst, 1)))
		Expect(qw.Status.LastKill).To(BeNil())
	})
})

var _ = Describe("The ends of workers while no operator runs, with a stand-in for the kubelet", Serial, func() {
	It("are told once by the next one, or counted as unobserved", func(ctx SpecContext) {
		qw := startWorkers(ctx, 4)
		pods := podsOf(ctx, qw)
		crashed, later, vanished := &pods[0], &pods[1], &pods[2]
		crash := termination.Message{Outcome: termination.Crashed}
		ends(ctx, crashed, 10*time.Second, exit{70, "Error"}, crash)
		restarts(ctx, crashed)
		lastKill(ctx, qw, crashed, v1alpha1.KillCrashed, "")
		Expect(k8s.Delete(ctx, vanished)).To(Succeed())
		drain(ctx, qw, 1)
		quiet(ctx, qw)

		operator.stop()
		ends(ctx, later, 20*time.Second, exit{70, "Error"}, crash)
		restarts(ctx, later)
		ends(ctx, vanished, 30*time.Second, exit{0, "Completed"}, termination.Message{Outcome: termination.Drained})
		removed(ctx, vanished)
		operator = startOperator(nil)
		lastKill(ctx, qw, later, v1alpha1.KillCrashed, "")
		Eventually(func() float64 { return operator.counted(unobserved, qw, "") }).Should(BeEquivalentTo(1))
		Expect(operator.counted(kills, qw, "")).To(BeEquivalentTo(1))
		Eventually(func() int { return eventsOf(ctx, qw)["Crashed"] }).Should(Equal(2))

		By("starting a third one, which has nothing to tell")
		quiet(ctx, qw)
		operator.stop()
		operator = startOperator(nil)
		looksAt(1)
		Consistently(func() []string { return operator.writes.in(qw.Namespace, "") }, "2s").Should(BeEmpty())
		Expect(operator.counted(kills, qw, "") + operator.counted(unobserved, qw, "")).To(BeZero())
		Expect(eventsOf(ctx, qw)).To(HaveKeyWithValue("Crashed", 2))
	})
})

// startWorkers makes a QueueWorker whose simulated pods go only when the spec
// says so.
func startWorkers(ctx context.Context, replicas int32) *v1alpha1.QueueWorker {
	GinkgoHelper()
	qw := drainsFor(worker(newNamespace(ctx), "mail"), "10m")
	qw.Spec.Replicas = &replicas
	Expect(k8s.Create(ctx, qw)).To(Succeed())
	settles(ctx, qw, replicas)
	return qw
}

// inTheJob is what the agent leaves for the case that it is killed.
func inTheJob() termination.Message {
	return termination.Message{Outcome: termination.GraceCut, Provisional: true, Job: &termination.Job{UUID: "d67e", Class: `App\Jobs\Charge`}}
}

// exit is how a container ended, in the words of the kubelet.
type exit struct {
	code   int32
	reason string
}

// ends writes the end of the pod's worker, so long after the request to stop,
// or after now where there was none. A message without outcome is none.
func ends(ctx context.Context, pod *corev1.Pod, after time.Duration, how exit, said termination.Message) {
	GinkgoHelper()
	began := time.Now()
	if get(ctx, pod).DeletionTimestamp != nil {
		began = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	ended := &corev1.ContainerStateTerminated{
		ExitCode: how.code, Reason: how.reason, StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(began.Add(after)),
	}
	if said.Outcome != "" {
		ended.Message = string(said.Encode())
	}
	writeWorker(ctx, pod, func(status *corev1.ContainerStatus) {
		status.State, status.Ready, status.Started = corev1.ContainerState{Terminated: ended}, false, ptr.To(false)
	})
}

// restarts writes the next run of the pod's worker.
func restarts(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	writeWorker(ctx, pod, func(status *corev1.ContainerStatus) {
		status.LastTerminationState, status.RestartCount = status.State, status.RestartCount+1
		status.State, status.Ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, true
	})
}

func writeWorker(ctx context.Context, pod *corev1.Pod, edit func(*corev1.ContainerStatus)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := k8s.Get(ctx, keyOf(pod), pod); err != nil {
			return err
		}
		edit(&pod.Status.ContainerStatuses[0])
		return k8s.Status().Update(ctx, pod)
	}).Should(Succeed())
}

// removed is the kubelet's last request.
func removed(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	Expect(k8s.Get(ctx, keyOf(pod), pod)).To(MatchError(ContainSubstring("not found")))
}

func lastKill(ctx context.Context, qw *v1alpha1.QueueWorker, pod *corev1.Pod, reason v1alpha1.KillReason, text string) {
	GinkgoHelper()
	Eventually(func() *v1alpha1.LastKill { return get(ctx, qw).Status.LastKill }).Should(And(
		HaveField("Pod", pod.Name), HaveField("Reason", reason), HaveField("Message", ContainSubstring(text))))
}

// notesOf are the texts of the events with that reason.
func notesOf(ctx context.Context, qw *v1alpha1.QueueWorker, reason string) []string {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(k8s.List(ctx, &list, client.InNamespace(qw.Namespace))).To(Succeed())
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.UID == qw.UID && event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

func qwMessage(pod string) any {
	return And(ContainSubstring("Worker "+pod+" "), ContainSubstring(`App\Jobs\Charge d67e`))
}

// lowersGrace installs a policy of somebody's that lowers the grace of every pod
// in the namespace and adds a container to it.
func lowersGrace(ctx context.Context, namespace string) {
	GinkgoHelper()
	policy := strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: >-
          Object{spec: Object.spec{terminationGracePeriodSeconds: 7,
          containers: [Object.spec.containers{name: "mesh", image: "registry.example/mesh:1"}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`, "NAME", namespace)
	out, err := kubectl("default", policy, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), out)
	DeferCleanup(func() {
		out, err := kubectl("default", policy, "delete", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
	})
	Eventually(func(g Gomega) { // the API server takes up a policy a moment later
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "x"}}},
		}
		g.Expect(k8s.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Spec.TerminationGracePeriodSeconds).To(HaveValue(BeEquivalentTo(7)), fmt.Sprint(probe.Spec))
	}).Should(Succeed())
}
