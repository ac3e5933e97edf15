// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/status"
	"github.com/queueworker/operator/internal/workload"
)

// applyAsGit applies the manifest as a GitOps tool does, with the replicas it
// declares, if any.
func applyAsGit(ctx context.Context, qw *v1alpha1.QueueWorker, replicas *int64) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest(qw.Name)), &object.Object)).To(Succeed())
	object.SetNamespace(qw.Namespace)
	unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	if replicas != nil {
		Expect(unstructured.SetNestedField(object.Object, *replicas, "spec", "replicas")).To(Succeed())
	}
	Expect(k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("git"), client.ForceOwnership)).To(Succeed())
}

var _ = Describe("Another writer", func() {
	It("scales the QueueWorker, takes the number over from Git and gives it back", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		two, three := int64(2), int64(3)
		applyAsGit(ctx, qw, &two)
		settles(ctx, qw, 2)

		scaleTo(ctx, qw, 5)
		settles(ctx, qw, 5)
		scale := &autoscalingv1.Scale{}
		Expect(k8s.SubResource("scale").Get(ctx, qw, scale)).To(Succeed())
		Expect(scale.Status.Replicas).To(BeEquivalentTo(5))
		Expect(scale.Status.Selector).To(Equal("queueworker.dev/name=mail"))

		applyAsGit(ctx, qw, nil) // Git lets go of it
		Consistently(func() int32 { return *deploymentOf(ctx, qw).Spec.Replicas }, "500ms").Should(BeEquivalentTo(5))
		scaleTo(ctx, qw, 4)
		settles(ctx, qw, 4)

		applyAsGit(ctx, qw, &three) // and takes it back
		settles(ctx, qw, 3)
		Expect(replicaSets(ctx, qw)).To(Equal(1), "scaling never changes the template")
		Expect(eventsOf(ctx, qw)).NotTo(HaveKey(status.ReasonReplicasNotOurs))
	})

	It("is not fought over the Deployment's own replicas", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)

		scaleTo(ctx, deploymentOf(ctx, qw), 4)
		settles(ctx, qw, 4)
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Message).To(ContainSubstring("the Deployment's replicas belong to autoscaler, so spec.replicas 2 is not passed on"))
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 40 })
		settles(ctx, qw, 4)
		Expect(deploymentOf(ctx, qw).Spec.Replicas).To(HaveValue(BeEquivalentTo(4)))
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue(status.ReasonReplicasNotOurs, 1))

		scaleTo(ctx, deploymentOf(ctx, qw), 2) // given back
		settles(ctx, qw, 2)
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Message).NotTo(ContainSubstring("belong"))
		scaleTo(ctx, qw, 3)
		settles(ctx, qw, 3)
	})

	It("has what it changed repaired, and what it added left alone", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		before := deploymentOf(ctx, qw).Spec.Template.Spec

		change(ctx, deploymentOf(ctx, qw), "somebody", func(d *appsv1.Deployment) {
			worker := &d.Spec.Template.Spec.Containers[0]
			worker.Command = []string{"sleep", "infinity"}
			worker.Args = []string{"-c", "sleep infinity"}
			worker.Lifecycle.PreStop.Exec.Command = []string{"true"}
			second := int64(1)
			worker.LivenessProbe.TerminationGracePeriodSeconds = &second
			d.Spec.Template.Spec.InitContainers[0].Image = "registry.example/theirs:1"
			d.Spec.MinReadySeconds = 0
			worker.Env = worker.Env[:1]
			grace := int64(3)
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
			delete(d.Labels, v1alpha1.LabelName)
			annotate(&d.ObjectMeta, "owner", "somebody")
		})
		Eventually(func(g Gomega) {
			d := deploymentOf(ctx, qw)
			g.Expect(d.Spec.Template.Spec).To(Equal(before))
			g.Expect(d.Spec.MinReadySeconds).To(BeEquivalentTo(10))
			g.Expect(d.Labels).To(HaveKeyWithValue(v1alpha1.LabelName, qw.Name))
			g.Expect(d.Annotations).To(HaveKeyWithValue("owner", "somebody"))
		}).Should(Succeed())
		settles(ctx, qw, 2)

		By("deleting the Deployment, which comes back")
		deleted := deploymentOf(ctx, qw)
		Expect(k8s.Delete(ctx, deleted)).To(Succeed())
		Eventually(func(g Gomega) {
			again := &appsv1.Deployment{}
			g.Expect(k8s.Get(ctx, keyOf(deleted), again)).To(Succeed())
			g.Expect(again.UID).NotTo(Equal(deleted.UID))
		}).Should(Succeed())
		settles(ctx, qw, 2)
	})

	It("keeps an object of theirs with our name, until it is gone", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		foreign := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: qw.Name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "theirs"}},
				Template: qw.Spec.Template,
			},
		}
		foreign.Spec.Template.Labels = map[string]string{"app": "theirs"}
		Expect(k8s.Create(ctx, foreign)).To(Succeed())
		Expect(k8s.Create(ctx, qw)).To(Succeed())

		stalled := condition(ctx, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonForeignObject)
		Expect(stalled.Message).To(ContainSubstring("Deployment mail was not made by this operator"))
		becomes(ctx, qw, "Failed")
		scaleTo(ctx, qw, 3)
		Consistently(func() []string { return operator.writes.in(qw.Namespace, "/deployments/mail") }, time.Second).Should(BeEmpty())
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue(v1alpha1.ReasonForeignObject, 1))

		Expect(k8s.Delete(ctx, foreign)).To(Succeed())
		settles(ctx, qw, 3)
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue("Recovered", 1))
	})

	It("may add conditions of its own", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		theirs := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Audited", "status": "True", "reason": "Fine", "message": "All is well.", "lastTransitionTime": "2026-01-02T03:04:05Z",
		}}}}}
		theirs.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))
		theirs.SetName(qw.Name)
		theirs.SetNamespace(qw.Namespace)
		Expect(k8s.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("auditor"))).To(Succeed())
		scaleTo(ctx, qw, 3)
		settles(ctx, qw, 3)
		Expect(conditionOf(qw, "Audited").Reason).To(Equal("Fine"))
		Expect(qw.Status.Conditions).To(HaveLen(9))
	})

	It("may orphan the workers: the next QueueWorker of that name adopts them", func(ctx SpecContext) {
		collected(ctx)
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		pods := runningUIDs(ctx, qw)
		Expect(k8s.Delete(ctx, qw, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(func() error { return k8s.Get(ctx, keyOf(qw), &v1alpha1.QueueWorker{}) }).Should(MatchError(ContainSubstring("not found")))
		Expect(deploymentOf(ctx, qw).OwnerReferences).To(BeEmpty())

		again := worker(qw.Namespace, qw.Name)
		Expect(k8s.Create(ctx, again)).To(Succeed())
		settles(ctx, again, 2)
		Expect(workload.OwnershipOf(again, deploymentOf(ctx, again))).To(Equal(workload.Ours))
		Expect(runningUIDs(ctx, again)).To(ConsistOf(pods))
	})
})

func replicaSets(ctx context.Context, qw *v1alpha1.QueueWorker) int {
	GinkgoHelper()
	var sets appsv1.ReplicaSetList
	Expect(k8s.List(ctx, &sets, client.InNamespace(qw.Namespace), client.MatchingLabels{v1alpha1.LabelName: qw.Name})).To(Succeed())
	return len(sets.Items)
}
