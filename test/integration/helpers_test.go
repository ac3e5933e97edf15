// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// manifest is a QueueWorker as a user writes it.
func manifest(name string) string {
	return fmt.Sprintf(`apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata:
  name: %s
spec:
  replicas: 2
  queue: {connection: redis, names: [payments, default]}
  timeouts: {httpSeconds: 20, jobSeconds: 30, retryAfterSeconds: 90}
  template:
    spec:
      containers:
        - name: worker
          image: registry.example/shop:1.4.2
          env: [{name: APP_ENV, value: production}]
          resources: {limits: {cpu: "0.5", memory: 512Mi}}
          securityContext: {allowPrivilegeEscalation: false}
      volumes: [{name: scratch, emptyDir: {}}]
`, name)
}

// worker is the manifest as an object.
func worker(namespace, name string) *v1alpha1.QueueWorker {
	GinkgoHelper()
	qw := &v1alpha1.QueueWorker{}
	Expect(yaml.UnmarshalStrict([]byte(manifest(name)), qw)).To(Succeed())
	qw.Namespace = namespace
	return qw
}

// drainsFor makes the simulated pods of a QueueWorker stay Terminating. It has no
// monitor: that has the template's annotations, and would stay as long.
func drainsFor(qw *v1alpha1.QueueWorker, duration string) *v1alpha1.QueueWorker {
	qw.Spec.Monitor.Enabled = ptr.To(false)
	annotate(&qw.Spec.Template.ObjectMeta, cluster.TerminatingForAnnotation, duration)
	return qw
}

func annotate(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}

// get reads the object anew.
func get[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// change edits the object as somebody of that name would.
func change[T client.Object](ctx context.Context, object T, who string, edit func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		edit(object)
		return k8s.Update(ctx, object, client.FieldOwner(who))
	}).Should(Succeed())
}

// deploymentOf is the Deployment with the QueueWorker's name.
func deploymentOf(ctx context.Context, qw *v1alpha1.QueueWorker) *appsv1.Deployment {
	GinkgoHelper()
	return get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: qw.Name}})
}

func podsOf(ctx context.Context, qw *v1alpha1.QueueWorker) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(k8s.List(ctx, &pods, client.InNamespace(qw.Namespace), client.MatchingLabels{v1alpha1.LabelName: qw.Name})).To(Succeed())
	return pods.Items
}

// runningUIDs are the pods that nobody asked to stop.
func runningUIDs(ctx context.Context, qw *v1alpha1.QueueWorker) []string {
	GinkgoHelper()
	var uids []string
	for _, pod := range podsOf(ctx, qw) {
		if pod.DeletionTimestamp == nil {
			uids = append(uids, string(pod.UID))
		}
	}
	return uids
}

// judged is the verdict of the library that Flux and others use.
func judged(ctx context.Context, qw *v1alpha1.QueueWorker) kstatus.Status {
	GinkgoHelper()
	return verdictOf(get(ctx, qw))
}

// verdictOf is the same for the state at hand.
func verdictOf(qw *v1alpha1.QueueWorker) kstatus.Status {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(qw)
	Expect(err).NotTo(HaveOccurred())
	result, err := kstatus.Compute(&unstructured.Unstructured{Object: fields})
	Expect(err).NotTo(HaveOccurred())
	return result.Status
}

func becomes(ctx context.Context, qw *v1alpha1.QueueWorker, want kstatus.Status) {
	GinkgoHelper()
	Eventually(func() kstatus.Status { return judged(ctx, qw) }).Should(Equal(want), "%+v", &qw.Status)
}

// settles waits until the QueueWorker is Current and the Deployment has as many
// available workers.
func settles(ctx context.Context, qw *v1alpha1.QueueWorker, replicas int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(judged(ctx, qw)).To(Equal(kstatus.CurrentStatus))
		g.Expect(qw.Status.Ready).To(Equal(fmt.Sprintf("%d/%d", replicas, replicas)))
		g.Expect(qw.Status.Replicas).To(Equal(replicas))
		g.Expect(qw.Status.TerminatingReplicas).To(BeZero())
	}).Should(Succeed(), "%+v", &qw.Status)
}

// quiet waits until nothing was written for longer than counters are held back.
func quiet(ctx context.Context, qw *v1alpha1.QueueWorker) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		version := get(ctx, qw).ResourceVersion
		g.Consistently(func() string { return get(ctx, qw).ResourceVersion }, "1500ms", "100ms").Should(Equal(version))
	}).Should(Succeed())
}

// condition waits for a condition to have the reason.
func condition(ctx context.Context, qw *v1alpha1.QueueWorker, kind, reason string) metav1.Condition {
	GinkgoHelper()
	Eventually(func() string { return conditionOf(get(ctx, qw), kind).Reason }).Should(Equal(reason), "%+v", &qw.Status)
	return conditionOf(qw, kind)
}

// eventsOf are the reasons of the events about the QueueWorker, with how often
// each was told.
func eventsOf(ctx context.Context, qw *v1alpha1.QueueWorker) map[string]int {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(k8s.List(ctx, &list, client.InNamespace(qw.Namespace))).To(Succeed())
	reasons := map[string]int{}
	for _, event := range list.Items {
		if event.Regarding.UID != qw.UID {
			continue
		}
		times := 1
		if event.Series != nil {
			times = int(event.Series.Count)
		}
		reasons[event.Reason] += times
	}
	return reasons
}

// scaleTo writes the scale subresource, as an autoscaler does.
func scaleTo(ctx context.Context, object client.Object, replicas int32) {
	GinkgoHelper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	Expect(k8s.SubResource("scale").Update(ctx, object, client.WithSubResourceBody(scale), client.FieldOwner("autoscaler"))).To(Succeed())
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// collected waits until the garbage collector knows the kind; it looks for new
// ones every 30 s only.
func collected(ctx SpecContext) {
	GinkgoHelper()
	owner := worker("default", "collected")
	owner.Spec.Replicas = ptr.To[int32](0)
	Expect(k8s.Create(ctx, owner)).To(Succeed())
	settles(ctx, owner, 0)
	owned := deploymentOf(ctx, owner)
	Expect(k8s.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	Eventually(func() error { return k8s.Get(ctx, keyOf(owned), owned) }).Should(MatchError(ContainSubstring("not found")))
}
