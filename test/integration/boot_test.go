// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

var _ = Describe("A worker that dies at its boot", func() {
	It("stops the rollout, though it was ready for a moment", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		old := runningUIDs(ctx, qw)
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			annotate(&qw.Spec.Template.ObjectMeta, cluster.ManualAnnotation, "")
		})
		Eventually(func() int { return len(runningUIDs(ctx, qw)) }).Should(Equal(3))
		newcomer := newcomerTo(ctx, qw, old)

		By("being ready")
		setReady(ctx, newcomer, corev1.ConditionTrue, time.Now())
		Consistently(func() []string { return runningUIDs(ctx, qw) }, "3s").Should(ContainElements(old))
		By("being dead")
		setReady(ctx, newcomer, corev1.ConditionFalse, time.Now())
		Consistently(func() []string { return runningUIDs(ctx, qw) }, "1s").Should(ContainElements(old))
		Expect(judged(ctx, qw)).To(Equal(kstatus.InProgressStatus))

		By("living on")
		setReady(ctx, newcomer, corev1.ConditionTrue, time.Now().Add(-time.Minute))
		Eventually(func() []string { return runningUIDs(ctx, qw) }).ShouldNot(ContainElements(old))
	})
})

// newcomerTo is a worker that is none of the old ones.
func newcomerTo(ctx context.Context, qw *v1alpha1.QueueWorker, old []string) *corev1.Pod {
	GinkgoHelper()
	for _, pod := range podsOf(ctx, qw) {
		if ok, _ := ContainElement(string(pod.UID)).Match(old); !ok {
			return &pod
		}
	}
	Fail("every worker is an old one")
	return nil
}

// setReady is what a kubelet says of a pod that runs.
func setReady(ctx context.Context, pod *corev1.Pod, ready corev1.ConditionStatus, since time.Time) {
	GinkgoHelper()
	get(ctx, pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}}
	Expect(k8s.Status().Update(ctx, pod)).To(Succeed())
}
