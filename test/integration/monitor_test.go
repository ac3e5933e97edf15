// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/monitor"
	"github.com/queueworker/operator/internal/workload"
)

// withToken is a client of a service account, by a token as its pod gets one.
func withToken(ctx context.Context, namespace, account string) client.Client {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	Expect(k8s.SubResource("token").Create(ctx, of, request)).To(Succeed())
	config := rest.AnonymousClientConfig(controlPlane.RESTConfig())
	config.BearerToken = request.Status.Token
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// monitorSays writes what the monitor's own code makes of a state, by server-side
// apply and with the monitor's token, as the monitor does.
func monitorSays(ctx context.Context, as client.Client, qw *v1alpha1.QueueWorker, state monitor.State, at time.Time) {
	GinkgoHelper()
	depth, oldest := int64(12), int64(3)
	seen := monitor.Status{State: state, Since: at.UTC().Truncate(time.Second), ObservedTime: at.UTC().Truncate(time.Second), Depth: &depth, OldestSeconds: &oldest, Failed: new(int64), Message: "12 jobs wait."}
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"queueState": asMap(seen),
		"conditions": []any{asMap(monitor.ConditionOf(seen, monitor.Condition{}, qw.Generation))},
	}}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))
	object.SetNamespace(qw.Namespace)
	object.SetName(qw.Name)
	Eventually(func() error { // the API server takes a new Role up a moment later
		return as.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner(v1alpha1.MonitorFieldManager), client.ForceOwnership)
	}).Should(Succeed())
}

// asMap is a document as the monitor sends it.
func asMap(document any) map[string]any {
	GinkgoHelper()
	text, err := json.Marshal(document)
	Expect(err).NotTo(HaveOccurred())
	fields := map[string]any{}
	Expect(utiljson.Unmarshal(text, &fields)).To(Succeed())
	return fields
}

// ownedBy is what a field manager owns of the status, as text.
func ownedBy(qw *v1alpha1.QueueWorker, manager string) string {
	var all []string
	for _, entry := range qw.ManagedFields {
		if entry.Manager == manager && entry.Subresource == "status" && entry.FieldsV1 != nil {
			all = append(all, entry.FieldsV1.GetRawString())
		}
	}
	return strings.Join(all, " ")
}

func monitorOf(qw *v1alpha1.QueueWorker) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: qw.Namespace, Name: workload.MonitorName(qw.Name)}
}

var _ = Describe("A monitor", func() {
	It("is a pod of its own that is no worker, and goes when it is turned off", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		qw.Spec.PodDisruptionBudget = &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		condition(ctx, qw, v1alpha1.ConditionConsuming, v1alpha1.ReasonMonitorStarting)

		deployment := &appsv1.Deployment{ObjectMeta: monitorOf(qw)}
		Eventually(func() int32 { return get(ctx, deployment).Status.AvailableReplicas }).Should(BeEquivalentTo(1))
		var pods corev1.PodList
		Expect(k8s.List(ctx, &pods, client.InNamespace(qw.Namespace))).To(Succeed())
		Expect(pods.Items).To(HaveLen(3))
		Expect(podsOf(ctx, qw)).To(HaveLen(2), "the workers' selector does not find it")
		for _, pod := range pods.Items {
			_, isMonitor := pod.Labels[v1alpha1.LabelMonitor]
			tokens := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == v1alpha1.MonitorTokenVolume })
			account := "default"
			if isMonitor {
				account = "mail-monitor"
			}
			Expect(pod.Spec.ServiceAccountName).To(Equal(account), pod.Name)
			Expect(tokens).To(Equal(isMonitor), pod.Name)
		}

		By("repairing what somebody removes")
		role := &rbacv1.Role{ObjectMeta: monitorOf(qw)}
		Expect(k8s.Delete(ctx, role)).To(Succeed())
		Eventually(func() error { return k8s.Get(ctx, keyOf(role), role) }).Should(Succeed())

		By("turning it off and on")
		as := withToken(ctx, qw.Namespace, "mail-monitor")
		monitorSays(ctx, as, qw, monitor.Busy, time.Now())
		change(ctx, qw, "team", func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor.Enabled = ptr.To(false) })
		condition(ctx, qw, v1alpha1.ConditionConsuming, v1alpha1.ReasonUnwatched)
		Eventually(func() *v1alpha1.QueueState { return get(ctx, qw).Status.QueueState }).Should(BeNil())
		for _, object := range []client.Object{
			&appsv1.Deployment{ObjectMeta: monitorOf(qw)}, &corev1.ServiceAccount{ObjectMeta: monitorOf(qw)},
			&rbacv1.Role{ObjectMeta: monitorOf(qw)}, &rbacv1.RoleBinding{ObjectMeta: monitorOf(qw)},
		} {
			Eventually(func() error { return k8s.Get(ctx, keyOf(object), object) }).Should(MatchError(ContainSubstring("not found")))
		}
		settles(ctx, qw, 2)
		change(ctx, qw, "team", func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor.Enabled = nil })
		condition(ctx, qw, v1alpha1.ConditionConsuming, v1alpha1.ReasonMonitorStarting)
		Eventually(func() error { return k8s.Get(ctx, keyOf(deployment), deployment) }).Should(Succeed())
	})

	It("writes beside the operator, and neither undoes the other", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Eventually(func() error {
			return k8s.Get(ctx, client.ObjectKey{Namespace: qw.Namespace, Name: "mail-monitor"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		as := withToken(ctx, qw.Namespace, "mail-monitor")
		monitorSays(ctx, as, qw, monitor.Busy, time.Now())
		before := get(ctx, qw).Status.DeepCopy()
		Expect(before.QueueState.Depth).To(HaveValue(BeEquivalentTo(12)))
		Expect(before.Ready).To(Equal("2/2"), "the monitor takes nothing of the operator's")
		Expect(conditionOf(qw, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
		columns, err := kubectl(qw.Namespace, "", "get", "qw")
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(columns, "\n")
		Expect(strings.Fields(lines[0])).To(Equal([]string{"NAME", "READY", "STATE", "DEPTH", "OLDEST", "FAILED", "CHAIN", "QUEUES", "AGE"}))
		Expect(strings.Fields(lines[1])[:8]).To(Equal([]string{"mail", "2/2", "Busy", "12", "3", "0", "20<30<90<100", "payments,default"}))

		By("the operator writing its own part several times")
		for _, replicas := range []int32{3, 1, 2} {
			scaleTo(ctx, qw, replicas)
			settles(ctx, qw, replicas)
			Expect(qw.Status.QueueState).To(Equal(before.QueueState))
			Expect(conditionOf(qw, v1alpha1.ConditionConsuming)).To(HaveField("Reason", "Busy"))
		}
		owned := ownedBy(get(ctx, qw), v1alpha1.FieldManager)
		Expect(owned).NotTo(ContainSubstring("queueState"))
		Expect(owned).NotTo(ContainSubstring("Consuming"))
		Expect(ownedBy(qw, v1alpha1.MonitorFieldManager)).To(And(ContainSubstring("f:queueState"), ContainSubstring("Consuming"), Not(ContainSubstring("Ready\""))))
		quiet(ctx, qw)

		By("trouble, told once by the operator")
		monitorSays(ctx, as, qw, monitor.Stuck, time.Now())
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue("Stuck", 1))
		monitorSays(ctx, as, qw, monitor.Busy, time.Now())
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue("Consuming", 1))
		Eventually(func() float64 { return operator.counted("queueworker_monitor_silent", qw, "") }).Should(BeZero())
	})

	It("is said to be silent, its numbers are removed, and its next word stands again", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Eventually(func() error {
			return k8s.Get(ctx, client.ObjectKey{Namespace: qw.Namespace, Name: "mail-monitor"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		as := withToken(ctx, qw.Namespace, "mail-monitor")
		for range 2 {
			long := time.Now().Add(-time.Hour)
			monitorSays(ctx, as, qw, monitor.Busy, long)
			silent := condition(ctx, qw, v1alpha1.ConditionConsuming, v1alpha1.ReasonMonitorSilent)
			Expect(silent.Status).To(Equal(metav1.ConditionUnknown))
			Expect(silent.Message).To(ContainSubstring("nothing since " + long.UTC().Format("2006-01-02T15:04:05Z") + "; then the queue was Busy with depth 12"))
			Eventually(func() *v1alpha1.QueueState { return get(ctx, qw).Status.QueueState }).Should(BeNil())
			Eventually(func() float64 { return operator.counted("queueworker_monitor_silent", qw, "") }).Should(BeEquivalentTo(1))
			quiet(ctx, qw)

			monitorSays(ctx, as, qw, monitor.Empty, time.Now())
			Eventually(func() float64 { return operator.counted("queueworker_monitor_silent", qw, "") }).Should(BeZero())
			scaleTo(ctx, qw, 3-get(ctx, qw).Status.Replicas+2) // a write of the operator's, which gives the condition up
			Consistently(func() string { return conditionOf(get(ctx, qw), v1alpha1.ConditionConsuming).Reason }, "3s", "100ms").Should(Equal("Empty"))
			Expect(qw.Status.QueueState.State).To(Equal(v1alpha1.StateEmpty))
		}
		Expect(eventsOf(ctx, qw)).To(And(HaveKeyWithValue("MonitorSilent", 2), HaveKeyWithValue("Consuming", 2)))
	})

	It("goes on under its account until the one of another account is ready, and says what that waits for", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		deployment := &appsv1.Deployment{ObjectMeta: monitorOf(qw)}
		Eventually(func() int32 { return get(ctx, deployment).Status.AvailableReplicas }).Should(BeEquivalentTo(1))
		as := withToken(ctx, qw.Namespace, "mail-monitor")
		monitorSays(ctx, as, qw, monitor.Busy, time.Now())

		By("naming an account that does not exist")
		change(ctx, qw, "team", func(qw *v1alpha1.QueueWorker) { qw.Spec.Monitor.ServiceAccountName = "sqs" })
		bound := func() (names []string) {
			for _, subject := range get(ctx, &rbacv1.RoleBinding{ObjectMeta: monitorOf(qw)}).Subjects {
				names = append(names, subject.Name)
			}
			return names
		}
		ready := func() string { return conditionOf(get(ctx, qw), v1alpha1.ConditionReady).Message }
		Eventually(bound).Should(Equal([]string{"sqs", "mail-monitor"}))
		Eventually(ready).Should(And(ContainSubstring("the monitor stays as it was: its pod cannot be made: "), ContainSubstring(`"sqs" not found`)))
		Expect(conditionOf(qw, v1alpha1.ConditionConsuming)).To(HaveField("Reason", "Busy"))
		Eventually(func() map[string]int { return eventsOf(ctx, qw) }).Should(HaveKeyWithValue("MonitorStays", 1))
		monitorSays(ctx, as, qw, monitor.Empty, time.Now())

		By("making it")
		Expect(k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: "sqs"}})).To(Succeed())
		Eventually(bound, "60s").Should(Equal([]string{"sqs"}))
		Eventually(ready).ShouldNot(ContainSubstring("monitor"))
		Expect(conditionOf(qw, v1alpha1.ConditionConsuming)).To(HaveField("Reason", "Empty"))
	})

	It("may read and patch the status of its own QueueWorker, and nothing else", func(ctx SpecContext) {
		qw := worker(newNamespace(ctx), "mail")
		other := worker(qw.Namespace, "other")
		twin := worker(newNamespace(ctx), "mail")
		for _, each := range []*v1alpha1.QueueWorker{qw, other, twin} {
			Expect(k8s.Create(ctx, each)).To(Succeed())
			settles(ctx, each, 2)
		}
		as := withToken(ctx, qw.Namespace, "mail-monitor")
		monitorSays(ctx, as, qw, monitor.Busy, time.Now())

		nobody := rulesOf(ctx, withToken(ctx, qw.Namespace, "default"), qw.Namespace)
		Expect(rulesOf(ctx, as, qw.Namespace)).To(ConsistOf(append(slices.Clone(nobody),
			"get queueworker.dev/queueworkers/status mail", "patch queueworker.dev/queueworkers/status mail")))
		Expect(rulesOf(ctx, as, twin.Namespace)).To(ConsistOf(nobody))

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: "shop-env"}}
		Expect(k8s.Create(ctx, secret)).To(Succeed())
		merge := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0},"status":{"ready":"9/9"}}`))
		for what, try := range map[string]func() error{
			"read the spec by itself": func() error { return as.Get(ctx, keyOf(qw), &v1alpha1.QueueWorker{}) },
			"list":                    func() error { return as.List(ctx, &v1alpha1.QueueWorkerList{}, client.InNamespace(qw.Namespace)) },
			"scale":                   func() error { return as.Patch(ctx, qw.DeepCopy(), merge) },
			"delete":                  func() error { return as.Delete(ctx, qw.DeepCopy()) },
			"another's status":        func() error { return as.Status().Patch(ctx, other.DeepCopy(), merge) },
			"its twin's status":       func() error { return as.Status().Patch(ctx, twin.DeepCopy(), merge) },
			"replace the status":      func() error { return as.Status().Update(ctx, qw.DeepCopy()) },
			"read a secret":           func() error { return as.Get(ctx, keyOf(secret), &corev1.Secret{}) },
			"list pods":               func() error { return as.List(ctx, &corev1.PodList{}, client.InNamespace(qw.Namespace)) },
			"write an event": func() error {
				return as.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: "x"}})
			},
			"get a token": func() error {
				of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: qw.Namespace, Name: "other-monitor"}}
				return as.SubResource("token").Create(ctx, of, &authenticationv1.TokenRequest{})
			},
		} {
			Expect(try()).To(MatchError(ContainSubstring("forbidden")), what)
		}

		By("a spec sent along with the status, which is dropped")
		Expect(as.Status().Patch(ctx, qw.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`)))).To(Succeed())
		Expect(get(ctx, qw).Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	})

	It("is left out where its name is taken, and the worker works", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		taken := worker(namespace, "mail-monitor")
		taken.Spec.Monitor.Enabled = ptr.To(false)
		Expect(k8s.Create(ctx, taken)).To(Succeed())
		settles(ctx, taken, 2)
		qw := worker(namespace, "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		Expect(condition(ctx, qw, v1alpha1.ConditionConsuming, v1alpha1.ReasonMonitorSilent).Message).To(ContainSubstring("Deployment mail-monitor was not made by this operator for it"))
		Expect(deploymentOf(ctx, taken).Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		settles(ctx, taken, 2)
	})
})

// rulesOf is everything that a client may do with objects of a namespace.
func rulesOf(ctx context.Context, as client.Client, namespace string) []string {
	GinkgoHelper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	Expect(as.Create(ctx, review)).To(Succeed())
	var all []string
	for _, rule := range review.Status.ResourceRules {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				all = append(all, fmt.Sprintf("%s %s/%s %s", verb, strings.Join(rule.APIGroups, ","), resource, strings.Join(rule.ResourceNames, ",")))
			}
		}
	}
	slices.Sort(all)
	return all
}
