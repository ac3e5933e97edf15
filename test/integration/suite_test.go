// SPDX-License-Identifier: Apache-2.0

// Package integration_test runs the controller against a real API server, its
// controllers and simulated nodes. Each spec has a namespace of its own.
package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	install "github.com/queueworker/operator/hack/operator"
)

// timeout bounds every wait. Simulated pods are ready within a second, but the
// machine may be shared.
const timeout = 2 * time.Minute

var (
	controlPlane *cluster.Cluster
	scheme       = runtime.NewScheme()
	k8s          client.WithWatch // full rights, no cache
	operator     *operatorProcess // the one that runs unless a spec stops it
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Integration")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	SetDefaultEventuallyTimeout(timeout)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	var err error
	controlPlane, err = cluster.UseOrStart(ctx, cluster.Options{Nodes: 1, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	if controlPlane.Foreign() {
		Skip("these specs steer simulated pods, which your own cluster does not have")
	}
	k8s, err = client.NewWithWatch(controlPlane.RESTConfig(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	kubectl := install.Kubectl{Cluster: controlPlane, Root: "../.."}
	Expect(kubectl.Install(ctx, install.Definition, install.Identity)).To(Succeed())
	Expect(kubectl.WaitForDefinition(ctx)).To(Succeed())
	operator = startOperator(nil)
	DeferCleanup(func() { operator.stop() })
}, NodeTimeout(20*time.Minute)) // a first run builds the control plane

// newNamespace makes a namespace and watches its QueueWorkers until the spec
// ends, so that what must hold in every state is checked in every state.
func newNamespace(ctx context.Context) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "qw-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	history := watchHistory(namespace.Name)
	DeferCleanup(func() { history.stop() })
	return namespace.Name
}

// kubectl runs the pinned kubectl with the input and returns its output.
func kubectl(namespace, input string, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", controlPlane.KubeconfigPath(), "--namespace", namespace}, args...)
	command := exec.Command(controlPlane.Kubectl(), args...)
	command.Stdin = bytes.NewBufferString(input)
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w: %s", args[4:], err, out)
	}
	return string(out), err
}
