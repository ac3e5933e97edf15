// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
)

var _ = Describe("Deletion", func() {
	BeforeEach(collected)

	It("in the background leaves the drain to the garbage collector", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		writes := len(operator.writes.in(qw.Namespace, "/deployments/mail"))
		Expect(k8s.Delete(ctx, qw, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(func(g Gomega) {
			pods := podsOf(ctx, qw)
			g.Expect(pods).To(HaveLen(2))
			for _, pod := range pods {
				g.Expect(pod.DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(100)))
			}
		}).Should(Succeed())
		Expect(k8s.Get(ctx, keyOf(qw), qw)).To(MatchError(ContainSubstring("not found")))

		By("making it again while the old workers drain")
		again := worker(qw.Namespace, qw.Name)
		Expect(k8s.Create(ctx, again)).To(Succeed())
		drain(ctx, again, 2)
		Expect(judged(ctx, again)).To(Equal(kstatus.InProgressStatus))
		allAreDrained(ctx, again)
		settles(ctx, again, 2)
		Expect(operator.writes.in(qw.Namespace, "/deployments/mail")).To(HaveLen(writes+1), "one write made the new Deployment")
	})

	It("in the foreground reports the drain and touches nothing", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), untilToldTo)
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		writes := len(operator.writes.in(qw.Namespace, "/deployments/mail"))
		seen := seenSoFar(ctx, qw)
		Expect(k8s.Delete(ctx, qw, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		drain(ctx, qw, 2)
		allAreDrained(ctx, qw)
		Eventually(func() error { return k8s.Get(ctx, keyOf(qw), &v1alpha1.QueueWorker{}) }).Should(MatchError(ContainSubstring("not found")))
		Eventually(func() []v1alpha1.QueueWorker { return since(qw.Namespace, qw.Name, seen) }).Should(ContainElement(Satisfy(func(state v1alpha1.QueueWorker) bool {
			return conditionOf(&state, v1alpha1.ConditionDraining).Message == "2 workers may still finish a job, for up to 100 s." &&
				state.Status.TerminatingReplicas == 2 && verdictOf(&state) == kstatus.TerminatingStatus
		})))
		Expect(podsOf(ctx, qw)).To(BeEmpty())
		Expect(operator.writes.in(qw.Namespace, "/deployments/mail")).To(HaveLen(writes))
	})

	It("of the namespace ends", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), "2s")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: qw.Namespace}}
		Expect(k8s.Delete(ctx, namespace)).To(Succeed())
		Eventually(func() error { return k8s.Get(ctx, keyOf(namespace), namespace) }).Should(MatchError(ContainSubstring("not found")))
	})
})
