// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/status"
)

var _ = Describe("A rollout of a Database worker", func() {
	It("drains the older workers first where old and new numbers do not fit each other, and only then", func(ctx SpecContext) {
		qw := drainsFor(databaseWorker(newNamespace(ctx), 60, 90), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Expect(deploymentOf(ctx, qw).Spec.Strategy.Type).To(Equal(appsv1.RollingUpdateDeploymentStrategyType))

		for rollout, pair := range [][2]int32{{600, 700}, {60, 90}} {
			seen := seenSoFar(ctx, qw)
			pods := watchPods(qw.Namespace)
			setNumbers(ctx, qw, pair[0], pair[1])
			ready := condition(ctx, qw, v1alpha1.ConditionReady, v1alpha1.ReasonRecreating)
			Expect(ready.Status).To(Equal(metav1.ConditionFalse))
			Expect(ready.Message).To(And(ContainSubstring("this rollout runs as Recreate"), ContainSubstring("job 60 s and reservation 90 s"),
				ContainSubstring("job 600 s and reservation 700 s")))
			Expect(conditionOf(qw, v1alpha1.ConditionReconciling).Status).To(Equal(metav1.ConditionTrue))
			drain(ctx, qw, 2)
			allAreDrained(ctx, qw)
			settles(ctx, qw, 2)
			Expect(pods.versions()).To(HaveLen(2))
			Expect(pods.overlaps()).To(BeEmpty(), "a new worker started beside one that still polls with other numbers")
			Expect(reasons(settledStates(ctx, qw, seen), v1alpha1.ConditionReconciling)).To(HaveExactElements(
				v1alpha1.ReasonRollingOut, v1alpha1.ReasonSettled))
			Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue(status.ReasonRolloutAsRecreate, rollout+1))
			Expect(deploymentOf(ctx, qw).Spec.Strategy).To(And(
				HaveField("Type", appsv1.RollingUpdateDeploymentStrategyType), HaveField("RollingUpdate.MaxSurge", Not(BeNil()))))
			Expect(conditionOf(get(ctx, qw), v1alpha1.ConditionReady).Message).NotTo(ContainSubstring("Recreate"))
		}

		By("changing what fits")
		running := runningUIDs(ctx, qw)
		seen := seenSoFar(ctx, qw)
		pods := watchPods(qw.Namespace)
		setNumbers(ctx, qw, 70, 100)
		drain(ctx, qw, 2)
		allAreDrained(ctx, qw)
		settles(ctx, qw, 2)
		Expect(pods.overlaps()).NotTo(BeEmpty(), "an ordinary rolling update")
		Expect(runningUIDs(ctx, qw)).NotTo(ContainElements(running))
		Expect(reasons(settledStates(ctx, qw, seen), v1alpha1.ConditionReady)).To(HaveExactElements(v1alpha1.ReasonAvailable))

		var sets appsv1.ReplicaSetList
		Expect(k8s.List(ctx, &sets, client.InNamespace(qw.Namespace))).To(Succeed())
		Expect(sets.Items).To(HaveLen(3), "going back to RollingUpdate is no rollout")
		quiet(ctx, qw)
	})

	It("counts workers that still drain from the rollout before", func(ctx SpecContext) {
		qw := drainsFor(databaseWorker(newNamespace(ctx), 60, 90), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		setNumbers(ctx, qw, 80, 200) // fits
		condition(ctx, qw, v1alpha1.ConditionReconciling, v1alpha1.ReasonDrainingOldPods)
		pods := watchPods(qw.Namespace)
		setNumbers(ctx, qw, 150, 200) // fits the template before, and not the workers that drain
		condition(ctx, qw, v1alpha1.ConditionReady, v1alpha1.ReasonRecreating)
		drain(ctx, qw, 4)
		allAreDrained(ctx, qw)
		settles(ctx, qw, 2)
		newest := podsOf(ctx, qw)[0].Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		Expect(pods.overlaps()).NotTo(ContainElement(HavePrefix("mail-"+newest)), "it started beside an older one")
		Expect(deploymentOf(ctx, qw).Spec.Strategy.Type).To(Equal(appsv1.RollingUpdateDeploymentStrategyType))
	})
})

// databaseWorker polls a table, with a job and a reservation in seconds.
func databaseWorker(namespace string, job, reservation int32) *v1alpha1.QueueWorker {
	GinkgoHelper()
	qw := worker(namespace, "mail")
	qw.Spec.Queue.Connection = "database"
	qw.Spec.Timeouts.JobSeconds, qw.Spec.Timeouts.RetryAfterSeconds = job, ptr.To(reservation)
	return qw
}

func setNumbers(ctx context.Context, qw *v1alpha1.QueueWorker, job, reservation int32) {
	GinkgoHelper()
	change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { numbers(qw, job, reservation) })
}

func numbers(qw *v1alpha1.QueueWorker, job, reservation int32) {
	qw.Spec.Timeouts.JobSeconds, qw.Spec.Timeouts.RetryAfterSeconds = job, ptr.To(reservation)
}
