// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
)

// The sidecars are simulated as the workers are: the specs write what a kubelet
// would.
var _ = Describe("A fence", func() {
	It("is there, is reported, and restarts nobody who has none", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "charges")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Expect(conditionOf(qw, v1alpha1.ConditionFenceReady).Reason).To(BeEmpty())
		Expect(qw.Status.Fence).To(BeEmpty())

		By("turning it on")
		change(ctx, qw, "team", func(qw *v1alpha1.QueueWorker) { qw.Spec.Fence = sidecar() })
		condition(ctx, qw, v1alpha1.ConditionFenceReady, v1alpha1.ReasonFenceServing)
		settles(ctx, qw, 2)
		Expect(qw.Status.Fence).To(Equal("stripe=A,mail=D"))
		for _, pod := range podsOf(ctx, qw) {
			text := pod.Annotations[v1alpha1.AnnotationFenceConfig]
			config, err := fenceconfig.Decode([]byte(text))
			Expect(err).NotTo(HaveOccurred(), text)
			Expect(config.HTTPSeconds).To(Equal(20))
			Expect(pod.Spec.InitContainers).To(ContainElement(And(
				HaveField("Name", v1alpha1.FenceContainer), HaveField("RestartPolicy", HaveValue(Equal(corev1.ContainerRestartPolicyAlways))), HaveField("Lifecycle", BeNil()))))
			Expect(pod.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: v1alpha1.FenceURLEnv, Value: "http://127.0.0.1:8470"}))
		}

		Eventually(func() float64 { return operator.counted("queueworker_fence_ready", qw, "") }).Should(BeEquivalentTo(1))

		By("losing the database of one")
		first, second := &podsOf(ctx, qw)[0], &podsOf(ctx, qw)[1]
		writeFence(ctx, first, func(status *corev1.ContainerStatus) { status.Ready = false })
		unready := condition(ctx, qw, v1alpha1.ConditionFenceReady, v1alpha1.ReasonFenceUnready)
		Expect(unready).To(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring("1 of 2 fences served and do not now, one of them in pod "+first.Name))))
		Eventually(func() float64 { return operator.counted("queueworker_fence_ready", qw, "") }).Should(BeZero())

		By("one that cannot serve at all")
		writeFence(ctx, second, func(status *corev1.ContainerStatus) {
			status.Ready, status.Started = false, ptr.To(false)
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "{}\nfence: table shop.fence has no unique index\n"}
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		})
		Expect(condition(ctx, qw, v1alpha1.ConditionFenceReady, v1alpha1.ReasonFenceFailed).Message).To(Equal(
			"1 of 2 fences ended with an error, in pod " + second.Name + ": fence: table shop.fence has no unique index."))

		By("both coming back")
		for _, pod := range []*corev1.Pod{first, second} {
			writeFence(ctx, pod, func(status *corev1.ContainerStatus) {
				status.Ready, status.Started = true, ptr.To(true)
				status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
			})
		}
		condition(ctx, qw, v1alpha1.ConditionFenceReady, v1alpha1.ReasonFenceServing)
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(And(
			HaveKeyWithValue("FenceUnready", 1), HaveKeyWithValue("FenceFailed", 1), HaveKeyWithValue("FenceServing", 1)))
		Expect(operator.counted("queueworker_fence_ready", qw, "")).To(BeEquivalentTo(1))

		By("changing what only rules read")
		before := runningUIDs(ctx, qw)
		change(ctx, qw, "team", func(qw *v1alpha1.QueueWorker) { qw.Spec.Fence.Retention.FailedJobsSeconds = ptr.To[int32](3600) })
		Eventually(func() int64 { return get(ctx, qw).Status.ObservedGeneration }).Should(Equal(get(ctx, qw).Generation))
		settles(ctx, qw, 2)
		Expect(runningUIDs(ctx, qw)).To(ConsistOf(before))

		By("turning it off")
		change(ctx, qw, "team", func(qw *v1alpha1.QueueWorker) { qw.Spec.Fence = v1alpha1.Fence{} })
		Eventually(func() string { return conditionOf(get(ctx, qw), v1alpha1.ConditionFenceReady).Reason }).Should(BeEmpty())
		settles(ctx, qw, 2)
		for _, pod := range podsOf(ctx, qw) {
			Expect(pod.Annotations).NotTo(HaveKey(v1alpha1.AnnotationFenceConfig))
		}
	})

	It("is refused by the CRD where it could not serve", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "charges")
		qw.Spec.Fence = sidecar()
		qw.Spec.Fence.Store = nil
		Expect(k8s.Create(ctx, qw)).To(MatchError(ContainSubstring("fence-incomplete: fence.mode is Proxy without store: the sidecar cannot start")))
		qw.Spec.Fence = sidecar()
		qw.Spec.Fence.Providers[1].TimeoutSeconds = ptr.To[int32](18)
		Expect(k8s.Create(ctx, qw)).To(MatchError(ContainSubstring("set timeoutSeconds of mail to 17")))
		qw.Spec.Fence.Providers[1].TimeoutSeconds, qw.Spec.Fence.Providers[1].Name = nil, "v1"
		Expect(k8s.Create(ctx, qw)).To(MatchError(ContainSubstring("v1 is the sidecar's own path")))
	})
})

func sidecar() v1alpha1.Fence {
	return v1alpha1.Fence{
		Mode:  v1alpha1.FenceModeProxy,
		Store: &v1alpha1.FenceStore{Type: v1alpha1.FenceStorePostgreSQL, SecretRef: v1alpha1.FenceSecretRef{Name: "shop-fence"}},
		Providers: []v1alpha1.FenceProvider{
			{Name: "stripe", URL: "https://api.stripe.com", KeyTTLSeconds: ptr.To[int32](86400), StoresErrors: true},
			{Name: "mail", URL: "https://mail.example"},
		},
	}
}

// writeFence writes what the kubelet says of a pod's sidecar.
func writeFence(ctx context.Context, pod *corev1.Pod, edit func(*corev1.ContainerStatus)) {
	GinkgoHelper()
	patch := client.MergeFrom(get(ctx, pod).DeepCopy())
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; status.Name == v1alpha1.FenceContainer {
			edit(status)
		}
	}
	Expect(k8s.Status().Patch(ctx, pod, patch)).To(Succeed())
}
