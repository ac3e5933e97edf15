// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/hack/operator"
	"github.com/queueworker/operator/internal/certs"
)

const (
	sharedQueue = "shared-queue-shorter-reservation" // CEL cannot judge it: it reads two objects
	secretName  = "queueworker-operator-webhook-cert"
)

// The specs tell one story: no manager, the first, its successors.
var _ = Describe("The manager", Ordered, func() {
	Context("that cannot start", cannotStart)
	Context("that runs", runs)
})

func runs() {
	var m *process

	It("is alive at once, and ready only with a certificate and a registered webhook", func(ctx SpecContext) {
		By("having a Secret that cannot be written")
		stuck := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: secretName}, Immutable: ptr.To(true)}
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, stuck))).To(Succeed())
		Expect(k8s.Create(ctx, stuck)).To(Succeed())
		m = startManager()
		Eventually(m.alive).Should(Equal(200))
		Eventually(m.log).Should(ContainSubstring("writing the certificate's Secret"))
		Consistently(m.ready).WithTimeout(time.Second).Should(Equal(500))
		Expect(m.alive()).To(Equal(200))

		By("having no webhook configuration")
		Expect(k8s.Delete(ctx, stuck)).To(Succeed())
		Expect(k8s.Create(ctx, emptySecret())).To(Succeed())
		Eventually(m.log).Should(ContainSubstring("the ValidatingWebhookConfiguration queueworker-operator is not installed"))
		Consistently(m.ready).WithTimeout(time.Second).Should(Equal(500))

		Expect(kubectl().Install(ctx, operator.Webhook)).To(Succeed())
		Eventually(m.ready).Should(Equal(200))
	})

	It("serves a certificate that the API server can trust, over HTTP/1.1", func(ctx SpecContext) {
		configuration := webhookConfiguration(ctx)
		for _, address := range []string{m.Webhook, m.Metrics} {
			Expect(handshake(address, configuration.ClientConfig.CABundle)).To(Equal("http/1.1"))
		}
		Expect(*configuration.FailurePolicy).To(Equal(admissionv1.Ignore))
		Expect(*configuration.TimeoutSeconds).To(BeEquivalentTo(5))
		Expect(*configuration.SideEffects).To(Equal(admissionv1.SideEffectClassNone))
	})

	It("refuses a broken QueueWorker with the whole text, and only then counts it", func(ctx SpecContext) {
		namespace := newNamespace(ctx, "refused")
		objects := sample("invalid/"+sharedQueue+".yaml", namespace)
		Expect(k8s.Create(ctx, objects[0])).To(Succeed())

		By("asking first")
		dryRun := func() error { return k8s.Create(ctx, objects[1].DeepCopy(), client.DryRunAll) }
		Eventually(dryRun).Should(MatchError(ContainSubstring(sharedQueue)))
		for range 3 {
			Expect(dryRun()).NotTo(Succeed())
		}

		By("meaning it")
		err := k8s.Create(ctx, objects[1].DeepCopy())
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(
			ContainSubstring("spec.timeouts.retryAfterSeconds"), // field
			ContainSubstring("60"), ContainSubstring("180"),     // both values
			ContainSubstring("slow-orders"),                 // whom it would hurt
			ContainSubstring("set retryAfterSeconds to 18"), // the fix
		)))
		var status apierrors.APIStatus
		Expect(errors.As(err, &status)).To(BeTrue())
		Expect(status.Status().Details.Causes).NotTo(BeEmpty(), "tools show causes beside the field")

		_, body := m.scrape(scraper(ctx))
		Expect(body).To(ContainSubstring(`queueworker_admission_refused_total{rule=%q} 1`+"\n", sharedQueue))
	})

	It("admits a risky one with a warning, and a dry run leaves nothing", func(ctx SpecContext) {
		namespace := newNamespace(ctx, "warned")
		heard := &warnings{}
		config := controlPlane.RESTConfig()
		config.WarningHandlerWithContext = heard
		c, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		risky := sample("warned/thin-margin.yaml", namespace)[0]

		Expect(c.Create(ctx, risky.DeepCopy(), client.DryRunAll)).To(Succeed())
		Expect(heard.all()).To(ContainElement(ContainSubstring("thin-margin")))
		Consistently(func() int {
			return count(ctx, &v1alpha1.QueueWorkerList{}, namespace) + count(ctx, &appsv1.DeploymentList{}, namespace)
		}).
			WithTimeout(time.Second).Should(BeZero())

		Expect(c.Create(ctx, risky)).To(Succeed())
		Eventually(func() string { _, body := m.scrape(scraper(ctx)); return body }).Should(ContainSubstring(
			`queueworker_chain_findings{namespace=%q,rule="thin-margin",severity="warning"} 1`, namespace))
		Expect(k8s.Delete(ctx, risky)).To(Succeed())
		Eventually(func() string { _, body := m.scrape(scraper(ctx)); return body }).ShouldNot(ContainSubstring(
			`queueworker_chain_findings{namespace=%q`, namespace))
	})

	It("shows its metrics only to whom the API server knows and allows", func(ctx SpecContext) {
		Expect(first(m.scrape(""))).To(Equal(401))
		code, body := m.scrape("made-up")
		Expect(code).To(Equal(401))
		Expect(body).NotTo(ContainSubstring("queueworker_"))
		Expect(first(m.scrape(tokenOf(ctx, "curious")))).To(Equal(403))
		code, body = m.scrape(scraper(ctx))
		Expect(code).To(Equal(200))
		for _, name := range []string{"queueworker_admission_refused_total", "queueworker_rollouts_total",
			"controller_runtime_reconcile_total", "leader_election_master_status"} {
			Expect(body).To(ContainSubstring("\n"+name), name)
		}
		Expect(body).To(MatchRegexp(`queueworker_webhook_certificate_expiry_timestamp_seconds [1-9]`))
	})

	It("may read one Secret, its own", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		own, err := client.New(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(own.Get(ctx, client.ObjectKey{Namespace: operator.Namespace, Name: secretName}, &corev1.Secret{})).To(Succeed())
		Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: "theirs"}})).To(Succeed())
		forbidden := WithTransform(apierrors.IsForbidden, BeTrue())
		Expect(own.Get(ctx, client.ObjectKey{Namespace: operator.Namespace, Name: "theirs"}, &corev1.Secret{})).To(forbidden)
		Expect(own.List(ctx, &corev1.SecretList{}, client.InNamespace(operator.Namespace))).To(forbidden)
		Expect(own.List(ctx, &corev1.SecretList{})).To(forbidden)
		Expect(own.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: "another"}})).To(forbidden)
	})

	It("repairs its registration", func(ctx SpecContext) {
		By("losing the authority")
		before := webhookConfiguration(ctx).ClientConfig.CABundle
		trust(ctx, nil)
		Eventually(func() []byte { return webhookConfiguration(ctx).ClientConfig.CABundle }).Should(Equal(before))

		By("losing the Secret, which it may fill and not make")
		Expect(k8s.Delete(ctx, emptySecret())).To(Succeed())
		Eventually(m.log).Should(ContainSubstring("the certificate's Secret queueworker-system/" + secretName + " is not installed"))
		Expect(k8s.Create(ctx, emptySecret())).To(Succeed())
		Eventually(func() []byte { return webhookConfiguration(ctx).ClientConfig.CABundle }).ShouldNot(Equal(before))
		Eventually(func() error {
			_, err := handshake(m.Webhook, webhookConfiguration(ctx).ClientConfig.CABundle)
			return err
		}).Should(Succeed())
		Eventually(m.ready).Should(Equal(200))
	})

	It("hands over at once when it is asked to stop", func(ctx SpecContext) {
		url, holder := *webhookConfiguration(ctx).ClientConfig.URL, leader(ctx)
		standby := startManager("--config=" + configFile("webhook: {failurePolicy: Fail}"))
		Eventually(standby.ready).Should(Equal(200))
		Consistently(func() string { return *webhookConfiguration(ctx).ClientConfig.URL + leader(ctx) }).
			WithTimeout(3*time.Second).Should(Equal(url+holder), "a standby writes nothing")

		code, took := m.stop()
		Expect(code).To(BeZero(), m.log())
		Expect(took).To(BeNumerically("<", 5*time.Second))
		stopped := time.Now()
		Eventually(func() string { return leader(ctx) }).ShouldNot(BeElementOf("", holder))
		Expect(time.Since(stopped)).To(BeNumerically("<", 11*time.Second), "the lease of 15 s was given back, not waited for")
		Eventually(func() string { return *webhookConfiguration(ctx).ClientConfig.URL }).Should(ContainSubstring(portOf(standby.Webhook)))
		Expect(*webhookConfiguration(ctx).FailurePolicy).To(Equal(admissionv1.Fail))
		m = standby

		namespace := newNamespace(ctx, "taken-over")
		worker := sample("payments.yaml", namespace)[0]
		Eventually(func() error { return k8s.Create(ctx, worker.DeepCopy()) }).Should(Succeed())
		Eventually(func() int { return count(ctx, &appsv1.DeploymentList{}, namespace) }).Should(Equal(1))
	})

	It("is not waited for by an object that is being deleted", func(ctx SpecContext) {
		namespace := newNamespace(ctx, "deleted")
		held, live := sample("payments.yaml", namespace)[0], sample("payments.yaml", namespace)[0]
		live.Name = "live"
		held.Finalizers = []string{"example.com/hold"}
		Expect(k8s.Create(ctx, held)).To(Succeed())
		Expect(k8s.Create(ctx, live)).To(Succeed())

		code, _ := m.stop()
		Expect(code).To(BeZero())
		Expect(*webhookConfiguration(ctx).FailurePolicy).To(Equal(admissionv1.Fail))
		patchLabel := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		Eventually(func() error { return k8s.Patch(ctx, live.DeepCopy(), patchLabel) }).Should(MatchError(ContainSubstring("failed calling webhook")),
			"or this test shows nothing")

		Expect(k8s.Delete(ctx, held)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
		controllerutil.RemoveFinalizer(held, "example.com/hold")
		Expect(k8s.Update(ctx, held)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(held), held))
		}).Should(BeTrue())
	})

	It("handles only the namespaces it was given, and judges no other", func(ctx SpecContext) {
		ours, theirs := newNamespace(ctx, "watched"), newNamespace(ctx, "unwatched")
		m = startManager("--watch-namespaces="+ours, "--config="+configFile("webhook: {failurePolicy: Fail}"))
		Eventually(m.ready).Should(Equal(200))
		Expect(webhookConfiguration(ctx).NamespaceSelector.MatchExpressions).To(HaveLen(1))

		for _, namespace := range []string{ours, theirs} {
			Eventually(func() error {
				return k8s.Create(ctx, sample("laravel-database.yaml", namespace)[0])
			}).Should(Succeed(), namespace)
		}
		Eventually(func() int { return count(ctx, &appsv1.DeploymentList{}, ours) }).Should(Equal(1))
		Consistently(func() int { return count(ctx, &appsv1.DeploymentList{}, theirs) }).WithTimeout(time.Second).Should(BeZero())
	})

	It("serves a certificate that somebody else provides, and its successor", func(ctx SpecContext) {
		Expect(first(m.stop())).To(BeZero())
		directory := GinkgoT().TempDir()
		authority := provide(ctx, directory)
		m = startManager("--config=" + configFile(fmt.Sprintf("webhook: {failurePolicy: Ignore, certificates: {mode: Provided, directory: %s}}", directory)))
		Eventually(m.ready).Should(Equal(200))
		_, err := handshake(m.Webhook, authority)
		Expect(err).NotTo(HaveOccurred())
		Expect(webhookConfiguration(ctx).NamespaceSelector.MatchExpressions).To(BeEmpty(), "all namespaces are watched again")

		authority = provide(ctx, directory)
		Eventually(func() error { _, err := handshake(m.Webhook, authority); return err }).Should(Succeed())
		Expect(first(m.stop())).To(BeZero())
	})
}

func emptySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: secretName}}
}

// provide writes a certificate for localhost, tells the API server to trust it,
// and returns its authority.
func provide(ctx context.Context, directory string) []byte {
	GinkgoHelper()
	data, _, err := certs.Renew(nil, "localhost", time.Now())
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"tls.key", "tls.crt"} {
		Expect(os.WriteFile(filepath.Join(directory, name), data[name], 0o600)).To(Succeed())
	}
	trust(ctx, data[certs.CACertKey])
	return data[certs.CACertKey]
}

// trust replaces the authority in the webhook configuration.
func trust(ctx context.Context, authority []byte) {
	GinkgoHelper()
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	Expect(k8s.Get(ctx, client.ObjectKey{Name: operator.Name}, configuration)).To(Succeed())
	patch := client.StrategicMergeFrom(configuration.DeepCopy())
	configuration.Webhooks[0].ClientConfig.CABundle = authority
	Expect(k8s.Patch(ctx, configuration, patch)).To(Succeed())
}

// handshake connects as the API server does and returns the protocol.
func handshake(address string, authority []byte) (string, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	connection, err := tls.Dial("tcp", address, &tls.Config{
		RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		return "", err
	}
	return connection.ConnectionState().NegotiatedProtocol, connection.Close()
}

func webhookConfiguration(ctx context.Context) admissionv1.ValidatingWebhook {
	GinkgoHelper()
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	Expect(k8s.Get(ctx, client.ObjectKey{Name: operator.Name}, configuration)).To(Succeed())
	Expect(configuration.Webhooks).To(HaveLen(1))
	return configuration.Webhooks[0]
}

func leader(ctx context.Context) string {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: operator.Namespace, Name: operator.Name}, lease)).To(Succeed())
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// scraper is the token of somebody who may read the metrics.
func scraper(ctx context.Context) string {
	GinkgoHelper()
	const name = "scraper"
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operator.Namespace, Name: name}},
		},
	} {
		Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, object))).To(Succeed())
	}
	return tokenOf(ctx, name)
}

func newNamespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// sample is the QueueWorkers of a file below config/samples.
func sample(path, namespace string) []*v1alpha1.QueueWorker {
	GinkgoHelper()
	all, err := samples.Load(filepath.Dir(path))
	Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(all, func(s samples.Sample) bool { return s.Path == path })
	Expect(i).To(BeNumerically(">=", 0), path)
	var found []*v1alpha1.QueueWorker
	for _, object := range all[i].Objects {
		if qw, ok := object.(*v1alpha1.QueueWorker); ok {
			qw.Namespace = namespace
			found = append(found, qw)
		}
	}
	return found
}

func count(ctx context.Context, list client.ObjectList, namespace string) int {
	GinkgoHelper()
	Expect(k8s.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	switch list := list.(type) {
	case *v1alpha1.QueueWorkerList:
		return len(list.Items)
	case *appsv1.DeploymentList:
		return len(list.Items)
	}
	Fail(fmt.Sprintf("%T", list))
	return 0
}

func first[T, U any](value T, _ U) T { return value }

func portOf(address string) string { return address[len("127.0.0.1"):] }

// warnings collects what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	heard []string
}

var _ rest.WarningHandlerWithContext = &warnings{}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}
