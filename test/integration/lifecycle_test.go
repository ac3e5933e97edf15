// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

var _ = Describe("A QueueWorker", func() {
	It("gets a Deployment that keeps its chain, and says so", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "payments")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		Expect(qw.Status.ObservedGeneration).To(BeEquivalentTo(-1))
		settles(ctx, qw, 2)

		deployment := deploymentOf(ctx, qw)
		pod := deployment.Spec.Template.Spec
		Expect(pod.Containers[0].Command).To(Equal([]string{"/queueworker/agent", "run", "--"}))
		Expect(pod.Containers[0].Args).To(Equal([]string{
			"php", "artisan", "queue:work", "redis", "--queue=payments,default", "--timeout=30", "--tries=3",
			"--backoff=10,60", "--sleep=3", "--memory=128",
		}))
		Expect(pod.Containers[0].Lifecycle.PreStop.Exec.Command).To(Equal([]string{"/queueworker/agent", "drain"}))
		Expect(pod.InitContainers).To(HaveExactElements(
			And(HaveField("Name", v1alpha1.AgentContainer), HaveField("Image", agentImage)),
			And(HaveField("Name", v1alpha1.PreflightContainer), HaveField("Image", pod.Containers[0].Image))))
		Expect(pod.TerminationGracePeriodSeconds).To(HaveValue(BeEquivalentTo(100)))
		Expect(pod.Containers[0].Env).To(HaveLen(4))
		Expect(pod.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: v1alpha1.MetricsEnv, Value: ":9465"}))
		Expect(pod.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "REDIS_QUEUE_RETRY_AFTER", Value: "90"}))
		for _, env := range pod.Containers[0].Env {
			if env.Name == timeoutchain.WireEnv {
				wire, err := timeoutchain.DecodeWire(env.Value)
				Expect(err).NotTo(HaveOccurred())
				Expect(wire.GraceSeconds).To(BeEquivalentTo(100))
			}
		}
		Expect(metav1.IsControlledBy(deployment, qw)).To(BeTrue())
		Expect(deployment.OwnerReferences[0].BlockOwnerDeletion).To(HaveValue(BeTrue()))
		Expect(deployment.Spec.Selector.MatchLabels).To(Equal(map[string]string{v1alpha1.LabelName: "payments"}))
		Expect(deployment.Spec.Strategy.RollingUpdate.MaxSurge).To(HaveValue(Equal(intstr.FromString("25%"))))

		Expect(qw.Status).To(And(
			HaveField("ObservedGeneration", qw.Generation), HaveField("Chain", "20<30<90<100"),
			HaveField("TerminationGracePeriodSeconds", BeEquivalentTo(100)), HaveField("Queues", "payments,default"),
			HaveField("ReadyReplicas", BeEquivalentTo(2)), HaveField("UpdatedReplicas", BeEquivalentTo(2)),
			HaveField("Selector", "queueworker.dev/name=payments")))
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonAvailable))
		Expect(conditionOf(qw, v1alpha1.ConditionChainIntact).Reason).To(Equal(v1alpha1.ReasonEveryLinkHolds))
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(Equal(map[string]int{"RollingOut": 1, "RolledOut": 1}))
	})

	It("is in progress until the last older worker has drained, and ready all along", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		seen := seenSoFar(ctx, qw)
		old := runningUIDs(ctx, qw)

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			qw.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:1.5.0"
		})
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonDrainingOldPods)
		drain(ctx, qw, 2)
		allAreDrained(ctx, qw)
		settles(ctx, qw, 2)
		Eventually(func() []v1alpha1.QueueWorker { return since(qw.Namespace, qw.Name, seen) }).Should(ContainElement(Satisfy(func(state v1alpha1.QueueWorker) bool {
			return conditionOf(&state, v1alpha1.ConditionReconciling).Reason == v1alpha1.ReasonDrainingOldPods &&
				state.Status.UpdatedReplicas == 2 && state.Status.TerminatingReplicas > 0 &&
				conditionOf(&state, v1alpha1.ConditionDraining).Status == metav1.ConditionTrue && verdictOf(&state) == kstatus.InProgressStatus
		})), "the Deployment is done, the drain is not")
		Expect(runningUIDs(ctx, qw)).NotTo(ContainElements(old))
		Expect(conditionOf(qw, v1alpha1.ConditionDraining).Status).To(Equal(metav1.ConditionFalse))
		for _, state := range since(qw.Namespace, qw.Name, seen) {
			Expect(conditionOf(&state, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "%+v", state.Status)
			Expect(conditionOf(&state, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionFalse), "%+v", state.Status)
		}
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(Equal(map[string]int{"RollingOut": 2, "RolledOut": 2}))
	})

	It("keeps its budget as long as it is asked for, and tells of a second one", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		qw.Spec.PodDisruptionBudget = &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		budget := get(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: qw.Name}})
		Expect(budget.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)))

		other := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: "everything"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MinAvailable: ptr.To(intstr.FromInt32(1))},
		}
		Expect(k8s.Create(ctx, other)).To(Succeed())
		Eventually(func() string { return conditionOf(get(ctx, qw), v1alpha1.ConditionReady).Message }).Should(ContainSubstring("PodDisruptionBudget everything"))
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue("ForeignDisruptionBudget", 1))

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			qw.Spec.PodDisruptionBudget = &v1alpha1.PodDisruptionBudget{MinAvailable: ptr.To(intstr.FromString("50%"))}
		})
		Eventually(func() *intstr.IntOrString { return get(ctx, budget).Spec.MinAvailable }).Should(HaveValue(Equal(intstr.FromString("50%"))))
		Expect(budget.Spec.MaxUnavailable).To(BeNil())

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.PodDisruptionBudget = nil })
		Eventually(func() error { return k8s.Get(ctx, keyOf(budget), budget) }).Should(MatchError(ContainSubstring("not found")))
		Consistently(func() error { return k8s.Get(ctx, keyOf(other), other) }, time.Second).Should(Succeed())
	})

	It("can be scaled to nothing and stays ready", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		scaleTo(ctx, qw, 0)
		settles(ctx, qw, 0)
		Expect(conditionOf(qw, v1alpha1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonScaledToZero)))
		scaleTo(ctx, qw, 1)
		settles(ctx, qw, 1)
	})

	It("can switch to Recreate and back", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		before := runningUIDs(ctx, qw)
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			qw.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		})
		Eventually(func() appsv1.DeploymentStrategyType { return deploymentOf(ctx, qw).Spec.Strategy.Type }).Should(Equal(appsv1.RecreateDeploymentStrategyType))
		settles(ctx, qw, 2)
		Expect(runningUIDs(ctx, qw)).To(ConsistOf(before), "another strategy needs no other pods")

		seen := seenSoFar(ctx, qw)
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 40 })
		condition(ctx, qw, v1alpha1.ConditionReady, v1alpha1.ReasonRecreating)
		drain(ctx, qw, 2)
		allAreDrained(ctx, qw)
		settles(ctx, qw, 2)
		Eventually(func() []v1alpha1.QueueWorker { return since(qw.Namespace, qw.Name, seen) }).Should(ContainElement(Satisfy(func(state v1alpha1.QueueWorker) bool {
			ready := conditionOf(&state, v1alpha1.ConditionReady)
			return ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonRecreating && verdictOf(&state) == kstatus.InProgressStatus
		})))

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Strategy = appsv1.DeploymentStrategy{} })
		Eventually(func() *appsv1.RollingUpdateDeployment { return deploymentOf(ctx, qw).Spec.Strategy.RollingUpdate }).ShouldNot(BeNil())
		settles(ctx, qw, 2)
	})

	It("keeps what kubectl rollout restart does", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		before := runningUIDs(ctx, qw)
		_, err := kubectl(qw.Namespace, "", "rollout", "restart", "deployment/"+qw.Name)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() []string { return runningUIDs(ctx, qw) }).ShouldNot(ContainElements(before))
		settles(ctx, qw, 2)
		restarted := runningUIDs(ctx, qw)
		Expect(deploymentOf(ctx, qw).Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Labels = map[string]string{"team": "billing"} })
		scaleTo(ctx, qw, 3)
		settles(ctx, qw, 3)
		Expect(runningUIDs(ctx, qw)).To(ContainElements(restarted), "neither labels nor scaling touch running workers")
		Expect(deploymentOf(ctx, qw).Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))
	})

	It("looks the same to kubectl when it is applied again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for _, how := range [][]string{{}, {"--server-side", "--field-manager=git"}} {
			name := "client"
			if len(how) > 0 {
				name = "server"
			}
			text := manifest(name)
			apply := append([]string{"apply", "-f", "-"}, how...)
			_, err := kubectl(namespace, text, apply...)
			Expect(err).NotTo(HaveOccurred())
			qw := worker(namespace, name)
			settles(ctx, qw, 2)
			quiet(ctx, qw)
			version := qw.ResourceVersion
			out, err := kubectl(namespace, text, apply...)
			Expect(err).NotTo(HaveOccurred())
			if len(how) == 0 {
				Expect(out).To(ContainSubstring("unchanged"))
			}
			out, err = kubectl(namespace, text, append([]string{"diff", "-f", "-"}, how...)...)
			Expect(err).NotTo(HaveOccurred(), "kubectl diff ends with 1 where there is a difference")
			Expect(out).To(BeEmpty())
			_, err = kubectl(namespace, text, append(apply, "--dry-run=server")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(get(ctx, qw).ResourceVersion).To(Equal(version))
		}
	})
})
