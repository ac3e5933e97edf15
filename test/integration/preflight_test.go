// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// refusal is what a preflight says of an image whose job class breaks the chain.
const refusal = `preflight Refused: 1 errors, 0 warnings, 1 not verified
error job-not-below-retry-after: App\Jobs\Export (app/Jobs/Export.php): $timeout 600 must be below retryAfterSeconds 90: from second 90 on a second worker runs the same job while the first still does; set $timeout of App\Jobs\Export to at most 30 (67 with jobSeconds 67), or declare jobSeconds 600 and retryAfterSeconds 623
unverified class-not-verified: App\Jobs\Import (app/Jobs/Import.php): $tries is set in the constructor`

var _ = Describe("The preflight of a rollout", func() {
	It("keeps the older workers until an image passes, and says why", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		before := runningUIDs(ctx, qw)
		seen := seenSoFar(ctx, qw)

		By("rolling out an image that breaks the chain")
		roll(ctx, qw, "registry.example/shop:bad", refusal, "1")
		stalled := condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonPreflightRefused)
		Expect(stalled.Message).To(And(ContainSubstring(`App\Jobs\Export`), ContainSubstring("600"), ContainSubstring("90"),
			ContainSubstring(`set $timeout of App\Jobs\Export to at most 30`)))
		Expect(judged(ctx, qw)).To(Equal(kstatus.FailedStatus))
		Expect(conditionOf(qw, v1alpha1.ConditionPreflightPassed)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", HavePrefix("job-not-below-retry-after: "))))
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "the older workers go on")
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue(v1alpha1.ReasonPreflightRefused, 1))
		Expect(operator.gauged("queueworker_preflight_passed", qw)).To(HaveValue(BeZero()))
		quiet(ctx, qw)
		Expect(runningUIDs(ctx, qw)).To(ContainElements(before), "an older worker left")

		By("replacing the refused pod")
		refused := newestPods(ctx, qw)
		Expect(refused).To(HaveLen(1))
		Expect(k8s.Delete(ctx, &refused[0])).To(Succeed())
		Eventually(func() []corev1.Pod { return newestPods(ctx, qw) }).Should(ConsistOf(HaveField("UID", Not(Equal(refused[0].UID)))))

		By("rolling out the repaired image")
		roll(ctx, qw, "registry.example/shop:good", "", "")
		settles(ctx, qw, 2)
		Expect(conditionOf(qw, v1alpha1.ConditionPreflightPassed).Status).To(Equal(metav1.ConditionTrue))
		Expect(runningUIDs(ctx, qw)).NotTo(ContainElements(before))
		Eventually(func() *float64 { return operator.gauged("queueworker_preflight_passed", qw) }).Should(HaveValue(BeEquivalentTo(1)))

		Expect(strings.Join(picture(settledStates(ctx, qw, seen)), "\n")).To(Equal(strings.Join([]string{
			"Ready Available, RollingOut, PreflightPassed Pending",
			"Ready PreflightRefused, Stalled, PreflightPassed PreflightRefused",
			"Ready Available, RollingOut, PreflightPassed Pending",
			"Ready Available, RollingOut, PreflightPassed Passed",
			"Ready Available, Settled, PreflightPassed Passed",
		}, "\n")))
	})

	It("is no verdict where it did not come to an end", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		roll(ctx, qw, "registry.example/shop:slow", "", "137")
		passed := condition(ctx, qw, v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightUnfinished)
		Expect(passed.Status).To(Equal(metav1.ConditionUnknown))
		Expect(passed.Message).To(ContainSubstring("killed"))
		quiet(ctx, qw)
		Expect(judged(ctx, qw)).To(Equal(kstatus.InProgressStatus))
		Expect(operator.gauged("queueworker_preflight_passed", qw)).To(BeNil())
	})

	It("only warns under Warn", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		qw.Spec.Preflight.Policy = v1alpha1.PreflightWarn
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		roll(ctx, qw, "registry.example/shop:bad", refusal, "")
		settles(ctx, qw, 2)
		passed := condition(ctx, qw, v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightWarned)
		Expect(passed.Status).To(Equal(metav1.ConditionFalse))
		Expect(conditionOf(qw, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionFalse))
		Expect(newestPods(ctx, qw)).To(HaveLen(2))
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue(v1alpha1.ReasonPreflightWarned, 1))
	})

	It("is no part of a pod where it is switched off", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		qw.Spec.Preflight.Policy = v1alpha1.PreflightDisabled
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Expect(conditionOf(qw, v1alpha1.ConditionPreflightPassed)).To(And(
			HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonPreflightDisabled)))
		Expect(deploymentOf(ctx, qw).Spec.Template.Spec.InitContainers).To(ConsistOf(HaveField("Name", v1alpha1.AgentContainer)))
	})

	It("passes in a pod of its own before the older workers are drained", func(ctx SpecContext) {
		qw := drainsFor(databaseWorker(newNamespace(ctx), 60, 90), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		started := runningUIDs(ctx, qw)
		seen := seenSoFar(ctx, qw)
		deployed := deploymentOf(ctx, qw).Generation

		By("numbers that do not fit the older ones, in an image that breaks them")
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			numbers(qw, 600, 700)
			says(qw, refusal, "1")
		})
		condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonPreflightRefused)
		quiet(ctx, qw)
		trials := trialsOf(ctx, qw)
		Expect(trials).To(HaveLen(1))
		Expect(trials[0].Spec.Containers).To(ConsistOf(HaveField("Name", v1alpha1.PreflightContainer)))
		Expect(runningUIDs(ctx, qw)).To(ConsistOf(started), "a worker left or came")
		Expect(deploymentOf(ctx, qw).Generation).To(Equal(deployed), "the Deployment was written")
		Expect(conditionOf(get(ctx, qw), v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))

		By("the repaired image")
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { says(qw, "", "") })
		condition(ctx, qw, v1alpha1.ConditionReady, v1alpha1.ReasonRecreating)
		drain(ctx, qw, 2)
		allAreDrained(ctx, qw)
		settles(ctx, qw, 2)
		Expect(runningUIDs(ctx, qw)).NotTo(ContainElements(started))
		Eventually(func() []corev1.Pod { return trialsOf(ctx, qw) }).Should(BeEmpty(), "a pod that ran only the preflight is left")
		Expect(strings.Join(slices.Compact(reasons(settledStates(ctx, qw, seen), v1alpha1.ConditionReady)), " ")).To(Equal(
			"Available PreflightRefused Available Recreating Available"))
		quiet(ctx, qw)
	})

	It("says when the pod of its own is refused, and tries it again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		qw := worker(namespace, "mail")
		qw.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: namespace},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		}
		Expect(k8s.Create(ctx, quota)).To(Succeed())
		Eventually(func() corev1.ResourceList { return get(ctx, quota).Status.Used }).ShouldNot(BeEmpty())
		started := runningUIDs(ctx, qw)
		rollTo(ctx, qw, "registry.example/shop:1.5.0")
		stalled := condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonDeploymentRefused)
		Expect(stalled.Message).To(And(HavePrefix("The API server refuses Pod mail-preflight-"), ContainSubstring("exceeded quota")))
		writes := len(operator.writes.in(namespace, "/pods"))
		quiet(ctx, qw)
		Expect(operator.writes.in(namespace, "/pods")).To(HaveLen(writes), "it is sent again and again")
		Expect(runningUIDs(ctx, qw)).To(ConsistOf(started))
	})
})

// says sets what the simulated preflight says and how it ends; empty texts: it
// passes.
func says(qw *v1alpha1.QueueWorker, message, exit string) {
	for annotation, value := range map[string]string{cluster.PreflightAnnotation: message, cluster.PreflightExitAnnotation: exit} {
		delete(qw.Spec.Template.Annotations, annotation)
		if value != "" {
			annotate(&qw.Spec.Template.ObjectMeta, annotation, value)
		}
	}
}

// roll changes the image to one whose preflight says this.
func roll(ctx context.Context, qw *v1alpha1.QueueWorker, image, message, exit string) {
	GinkgoHelper()
	change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
		qw.Spec.Template.Spec.Containers[0].Image = image
		says(qw, message, exit)
	})
}

// newestPods are the pods of the image that the spec names.
func newestPods(ctx context.Context, qw *v1alpha1.QueueWorker) []corev1.Pod {
	GinkgoHelper()
	return slices.DeleteFunc(podsOf(ctx, qw), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Spec.Containers[0].Image != qw.Spec.Template.Spec.Containers[0].Image
	})
}

// trialsOf are the pods that run only a preflight.
func trialsOf(ctx context.Context, qw *v1alpha1.QueueWorker) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(k8s.List(ctx, &pods, client.InNamespace(qw.Namespace), client.MatchingLabels{v1alpha1.LabelPreflight: qw.Name})).To(Succeed())
	return pods.Items
}

// picture is what a reader of the status saw, each state once while it stays.
func picture(states []v1alpha1.QueueWorker) []string {
	var lines []string
	for i := range states {
		of := func(kind string) string { return conditionOf(&states[i], kind).Reason }
		under := of(v1alpha1.ConditionReconciling)
		switch {
		case conditionOf(&states[i], v1alpha1.ConditionStalled).Status == metav1.ConditionTrue:
			under = "Stalled"
		case under == v1alpha1.ReasonDrainingOldPods: // for a moment: simulated pods are gone at once
			under = v1alpha1.ReasonRollingOut
		}
		lines = append(lines, fmt.Sprintf("Ready %s, %s, PreflightPassed %s", of(v1alpha1.ConditionReady), under, of(v1alpha1.ConditionPreflightPassed)))
	}
	return slices.Compact(lines)
}
