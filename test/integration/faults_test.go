// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

var _ = Describe("What only a change can fix", func() {
	It("is a Deployment that the API server refuses", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		mount := []corev1.VolumeMount{{Name: "no-such-volume", MountPath: "/data"}}
		qw.Spec.Template.Spec.Containers[0].VolumeMounts = mount
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		stalled := condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonDeploymentRefused)
		Expect(stalled.Message).To(And(ContainSubstring("volumeMounts[0].name"), ContainSubstring(`Not found: "no-such-volume"`)))
		becomes(ctx, qw, kstatus.FailedStatus)
		Consistently(func() int { return len(operator.writes.in(qw.Namespace, "/deployments/mail")) }, "1500ms").Should(Equal(1), "no hot loop")

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].VolumeMounts = nil })
		settles(ctx, qw, 2)

		By("refusing a change of a running one: it runs on and is scaled")
		pods := runningUIDs(ctx, qw)
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].VolumeMounts = mount })
		condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonDeploymentRefused)
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
		scaleTo(ctx, qw, 3)
		Eventually(func() int { return len(runningUIDs(ctx, qw)) }).Should(Equal(3))
		Expect(runningUIDs(ctx, qw)).To(ContainElements(pods))
		becomes(ctx, qw, kstatus.FailedStatus)
		writes := func() int { return len(operator.writes.in(qw.Namespace, "/deployments/mail")) }
		Eventually(func(g Gomega) {
			before := writes()
			g.Consistently(writes, "1500ms").Should(Equal(before))
		}).Should(Succeed(), "no hot loop")

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].VolumeMounts = nil })
		settles(ctx, qw, 3)
		Expect(runningUIDs(ctx, qw)).To(ContainElements(pods), "the template is the old one again")
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(And(
			HaveKeyWithValue(v1alpha1.ReasonDeploymentRefused, 2), HaveKeyWithValue("Recovered", 2)))
	})

	It("is a budget that the API server refuses", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		many := intstr.FromString("many")
		qw.Spec.PodDisruptionBudget = &v1alpha1.PodDisruptionBudget{MaxUnavailable: &many}
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		stalled := condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonDeploymentRefused)
		Expect(stalled.Message).To(ContainSubstring("The API server refuses PodDisruptionBudget mail"))
		Eventually(func() metav1.ConditionStatus { return conditionOf(get(ctx, qw), v1alpha1.ConditionReady).Status }).Should(Equal(metav1.ConditionTrue), "the workers run all the same")
		Consistently(func() []string { return operator.writes.in(qw.Namespace, "/poddisruptionbudgets/mail") }, time.Second).Should(HaveLen(1))
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.PodDisruptionBudget = nil })
		settles(ctx, qw, 2)
	})

	It("is an image that cannot be pulled", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			annotate(&qw.Spec.Template.ObjectMeta, cluster.ManualAnnotation, "true")
			qw.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:no-such-tag"
		})
		var waiting *corev1.Pod
		Eventually(func() *corev1.Pod { waiting = pending(ctx, qw); return waiting }).ShouldNot(BeNil())
		waiting.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "worker", Image: waiting.Spec.Containers[0].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
		Expect(k8s.Status().Update(ctx, waiting)).To(Succeed())

		stalled := condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonImageUnavailable)
		Expect(stalled.Message).To(Equal("1 worker cannot start because an image cannot be pulled: container worker, image registry.example/shop:no-such-tag: ImagePullBackOff."))
		Expect(judged(ctx, qw)).To(Equal(kstatus.FailedStatus))
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "the older workers go on")

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) {
			qw.Spec.Template.Annotations = nil
			qw.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:1.4.2"
		})
		settles(ctx, qw, 2)
	})

	It("is an object that broke the chain before the rules came", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		running, stillborn := worker(namespace, "running"), worker(namespace, "stillborn")
		Expect(k8s.Create(ctx, running)).To(Succeed())
		settles(ctx, running, 2)
		pods := runningUIDs(ctx, running)

		withoutRules(ctx, func() {
			stillborn.Spec.Timeouts.JobSeconds = 100
			Expect(k8s.Create(ctx, stillborn)).To(Succeed())
			change(ctx, running, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 100 })
		})
		intact := condition(ctx, running, v1alpha1.ConditionChainIntact, v1alpha1.ReasonChainBroken)
		Expect(intact.Message).To(ContainSubstring("job-not-below-retry-after"))
		condition(ctx, running, v1alpha1.ConditionStalled, v1alpha1.ReasonChainBroken)
		becomes(ctx, running, kstatus.FailedStatus)
		Expect(running.Status.Chain).To(HavePrefix("20<100>=90"))
		Expect(running.Status.TerminationGracePeriodSeconds).To(BeEquivalentTo(100), "what the workers really get")

		By("scaling and labelling it through the rules")
		scaleTo(ctx, running, 3)
		change(ctx, running, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Labels = map[string]string{"team": "billing"} })
		Eventually(func() int { return len(runningUIDs(ctx, running)) }).Should(Equal(3))
		Expect(runningUIDs(ctx, running)).To(ContainElements(pods), "the template is frozen")
		change(ctx, running, "somebody", func(qw *v1alpha1.QueueWorker) {
			qw.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:1.5.0"
		})
		Eventually(func() int64 { return get(ctx, running).Status.ObservedGeneration }).Should(Equal(running.Generation))
		Consistently(func() []string { return runningUIDs(ctx, running) }, "500ms").Should(ContainElements(pods))

		By("making nothing of one that never ran")
		condition(ctx, stillborn, v1alpha1.ConditionStalled, v1alpha1.ReasonChainBroken)
		Expect(conditionOf(stillborn, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionFalse))
		Consistently(func() []string { return operator.writes.in(namespace, "/deployments/stillborn") }, time.Second).Should(BeEmpty())
		for _, qw := range []*v1alpha1.QueueWorker{running, stillborn} {
			Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue(v1alpha1.ReasonChainBroken, 1))
		}

		By("repairing both")
		for _, qw := range []*v1alpha1.QueueWorker{running, stillborn} {
			change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 30 })
		}
		settles(ctx, running, 3)
		settles(ctx, stillborn, 2)
		Expect(runningUIDs(ctx, running)).NotTo(ContainElements(pods), "now the new image runs")
	})

	It("is only a risk where another QueueWorker is at fault", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		long, short := worker(namespace, "long"), worker(namespace, "short")
		for _, qw := range []*v1alpha1.QueueWorker{long, short} {
			qw.Spec.Queue.Connection, qw.Spec.Queue.Store = "database", "shop-mysql"
		}
		retryAfter := int32(150)
		long.Spec.Timeouts.JobSeconds, long.Spec.Timeouts.RetryAfterSeconds = 100, &retryAfter
		Expect(k8s.Create(ctx, long)).To(Succeed())
		settles(ctx, long, 2)
		Expect(k8s.Create(ctx, short)).To(Succeed()) // no webhook runs here
		settles(ctx, short, 2)
		intact := condition(ctx, long, v1alpha1.ConditionChainIntact, v1alpha1.ReasonHoldsWithWarnings)
		Expect(intact.Message).To(ContainSubstring("shared-queue-shorter-reservation"))
		Expect(judged(ctx, long)).To(Equal(kstatus.CurrentStatus))
		Expect(k8s.Delete(ctx, short)).To(Succeed())
		Eventually(func() string { return conditionOf(get(ctx, long), v1alpha1.ConditionChainIntact).Message }).
			ShouldNot(ContainSubstring("shared-queue-shorter-reservation"))
	})
})

// pending is a worker pod that has not started yet.
func pending(ctx context.Context, qw *v1alpha1.QueueWorker) *corev1.Pod {
	for _, pod := range podsOf(ctx, qw) {
		if pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			return &pod
		}
	}
	return nil
}

// withoutRules does something while the CRD has no CEL rules, as before an
// upgrade.
func withoutRules(ctx context.Context, do func()) {
	GinkgoHelper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	key := client.ObjectKey{Name: "queueworkers.queueworker.dev"}
	Expect(k8s.Get(ctx, key, definition)).To(Succeed())
	full := definition.Spec.DeepCopy()
	dropRules(definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
	Expect(k8s.Update(ctx, definition)).To(Succeed())
	probe := func(jobSeconds int32) error {
		qw := worker("default", "probe")
		qw.Spec.Timeouts.JobSeconds = jobSeconds
		return k8s.Create(ctx, qw, client.DryRunAll)
	}
	Eventually(func() error { return probe(1000) }).Should(Succeed())
	do()
	Expect(k8s.Get(ctx, key, definition)).To(Succeed())
	definition.Spec = *full
	Expect(k8s.Update(ctx, definition)).To(Succeed())
	Eventually(func() error { return probe(1000) }).Should(MatchError(ContainSubstring("job-not-below-retry-after")))
}

func dropRules(schema *apiextensionsv1.JSONSchemaProps) {
	schema.XValidations = nil
	for name, property := range schema.Properties {
		dropRules(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		dropRules(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		dropRules(schema.AdditionalProperties.Schema)
	}
}
