// SPDX-License-Identifier: Apache-2.0

// Package manager_test runs the manager's binary against a real API server,
// with the generated roles and nothing else.
package manager_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
)

const repository = "../../.."

var (
	controlPlane *cluster.Cluster
	scheme       = runtime.NewScheme()
	k8s          client.Client // full rights, no cache
	binary       string
	kubeconfig   string // of the operator's service account
	logs         string // folder of the managers' logs
)

func TestManager(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Manager")
}

// The control plane is always our own: the suite registers a webhook on
// loopback, which the API server of a user's cluster does not reach.
var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(2 * time.Minute) // the machine may be shared
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	binary, logs = filepath.Join(GinkgoT().TempDir(), "manager"), GinkgoT().TempDir()
	err := operator.Build(ctx, repository, binary)
	Expect(err).NotTo(HaveOccurred())
	controlPlane, err = cluster.Start(ctx, cluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	k8s, err = client.New(controlPlane.RESTConfig(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(kubectl().Install(ctx, operator.Identity)).To(Succeed())
	Expect(kubectl().WaitForIdentity(ctx)).To(Succeed())
	kubeconfig = kubeconfigOf(ctx, operator.Name)
}, NodeTimeout(20*time.Minute)) // a first run builds the control plane

func kubectl() operator.Kubectl { return operator.Kubectl{Cluster: controlPlane, Root: repository} }

// tokenOf makes a service account in the operator's namespace and returns its
// token.
func tokenOf(ctx context.Context, name string) string {
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: name}}
	Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, serviceAccount))).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(ctx, serviceAccount, request)).To(Succeed())
	return request.Status.Token
}

func kubeconfigOf(ctx context.Context, name string) string {
	GinkgoHelper()
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: name}}
	Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, serviceAccount))).To(Succeed())
	path := filepath.Join(GinkgoT().TempDir(), name+".kubeconfig")
	Expect(kubectl().WriteKubeconfig(ctx, name, path)).To(Succeed())
	return path
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	installed := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict(crd.QueueWorkers, installed)).To(Succeed())
	return installed
}
