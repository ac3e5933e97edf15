// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/node/image"
	install "github.com/queueworker/operator/hack/operator"
)

// startOperator installs the operator once, from config/ and as a Deployment of its image, with a webhook that the API server
// reaches through a Service.
var startOperator = sync.OnceValue(func() error {
	ctx := context.Background()
	kubectl := install.Kubectl{Cluster: suite.node, Root: filepath.Join("..", "..")}
	if err := kubectl.Install(ctx, install.Identity, install.Definition, install.Webhook); err != nil {
		return err
	}
	if err := kubectl.WaitForDefinition(ctx); err != nil {
		return err
	}
	if err := apply(ctx, operatorObjects()...); err != nil {
		return err
	}
	if _, err := kubectl.Run(ctx, "-n "+install.Namespace+" rollout status deployment/"+install.Name+" --timeout=120s"); err != nil {
		logs, _ := kubectl.Run(ctx, "-n "+install.Namespace+" logs deployment/"+install.Name+" --tail=20")
		return fmt.Errorf("the operator is not ready: %w; the end of its log:\n%s", err, logs)
	}
	return await(ctx, patience, "the API server takes a QueueWorker for an owner", ownerIsKnown)
})

// ownerIsKnown asks as the operator. The part of the API server that checks owners learns of a new kind up to 10 s late, and the
// operator, once refused, waits for a minute.
func ownerIsKnown() error {
	labels := map[string]string{"app": "probe"}
	probe := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind, Name: "probe", UID: "probe", BlockOwnerDeletion: ptr.To(true),
		}}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
			},
		},
	}
	text, err := json.Marshal(probe)
	if err != nil {
		return err
	}
	_, err = kubectl(context.Background(), string(text), "create", "--dry-run=server",
		"--as=system:serviceaccount:"+install.Namespace+":"+install.Name, "-f", "-")
	return err
}

func config(path string) string { return filepath.Join("..", "..", "config", path) }

func operator(t *testing.T) {
	t.Helper()
	if err := startOperator(); err != nil {
		t.Fatal(err)
	}
}

func operatorObjects() []any {
	labels := map[string]string{"app.kubernetes.io/name": install.Name}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: install.Namespace}
	}
	return []any{
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(install.Name + "-webhook"),
			Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(9443)}}},
		},
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta(install.Name),
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: operatorPod()},
			},
		},
	}
}

func operatorPod() corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName:            install.Name,
		TerminationGracePeriodSeconds: ptr.To[int64](30),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "manager", Image: image.Name("operator"), ImagePullPolicy: corev1.PullNever,
			Args: []string{"--log-format=console", "--agent-image=" + image.Name("operator")},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8081)}},
				PeriodSeconds: 1,
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// queueWorker is the shop's worker as its team would declare it.
func (s *shop) queueWorker(name string, replicas int32, l limits) *v1alpha1.QueueWorker {
	env := append([]corev1.EnvVar{}, s.env...)
	return &v1alpha1.QueueWorker{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name, Namespace: namespace},
		Spec: v1alpha1.QueueWorkerSpec{
			Replicas: &replicas,
			Queue:    v1alpha1.Queue{Connection: s.connection},
			Timeouts: v1alpha1.Timeouts{
				HTTPSeconds: ptr.To[int32](5), JobSeconds: int32(l.job), RetryAfterSeconds: ptr.To(int32(l.retryAfter)),
			},
			Worker: v1alpha1.Worker{SleepSeconds: ptr.To[int32](1)},
			// Some of the applications here are broken on purpose, and drains are what is tried.
			Preflight: v1alpha1.Preflight{Policy: v1alpha1.PreflightWarn},
			// A second pod for each worker would be for nothing.
			Monitor: v1alpha1.Monitor{Enabled: ptr.To(false)},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				EnableServiceLinks: ptr.To(false),
				Containers: []corev1.Container{{
					Name: v1alpha1.WorkerContainer, Image: image.Name("app"), ImagePullPolicy: corev1.PullNever, Env: env,
				}},
			}},
		},
	}
}

// A declaration becomes a Deployment of real Laravel workers, and they work.
func TestQueueWorkerWorks(t *testing.T) {
	beside(t)
	operator(t)
	for _, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, connection)
			qw := s.queueWorker("payments", 2, ordinary)
			deployed(t, qw)
			mustKubectl(t, "wait", "qw/"+qw.Name, "--for=condition=Ready", "--timeout=120s")
			order := s.job("order")
			s.dispatch(t, "Charges", "order", map[string]any{"order": order, "seconds": 2})
			s.finished(t, "order")
			s.ranOnce(t, "order", 2)
			if n := charges(t)[order]; n != 1 {
				t.Errorf("the provider charged %d times, wanted once", n)
			}
			s.nothingLeft(t)
		})
	}
}

// The textbook's numbers, which a plain Deployment takes, cannot be declared.
func TestTextbookIsRefused(t *testing.T) {
	operator(t)
	s := newShop(t, onRedis)
	err := apply(t.Context(), s.queueWorker("textbook", 2, limits{job: 12, retryAfter: 5}))
	if err == nil {
		t.Fatal("a job of 12 s with a reservation of 5 s was admitted")
	}
	const want = "job-not-below-retry-after: jobSeconds 12 must be below retryAfterSeconds 5"
	if !strings.Contains(err.Error(), want) {
		t.Errorf("wanted the refusal to say %q, got: %v", want, err)
	}
}

// Only the webhook warns. It is asked through its Service, with a certificate that the operator made.
func TestWebhookAnswersThroughItsService(t *testing.T) {
	operator(t)
	registered, err := suite.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), install.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if to := registered.Webhooks[0].ClientConfig; to.Service == nil || to.URL != nil || len(to.CABundle) == 0 {
		t.Errorf("not reached by a Service with the operator's certificate: %+v", to)
	}
	out := mustKubectl(t, "create", "--dry-run=server", "-f", config("samples/warned/http-timeout-missing.yaml"))
	if !strings.Contains(out, "Warning: spec.timeouts.httpSeconds: http-timeout-missing") {
		t.Errorf("no warning: %s", out)
	}
}

// killOperator ends the manager as a crash would and waits until another is ready.
func killOperator(t *testing.T) {
	t.Helper()
	mustKubectl(t, "-n", install.Namespace, "delete", "pod", "-l", "app.kubernetes.io/name="+install.Name, "--grace-period=0", "--force")
	time.Sleep(time.Second)
	mustKubectl(t, "-n", install.Namespace, "rollout", "status", "deployment/"+install.Name, "--timeout=120s")
}
