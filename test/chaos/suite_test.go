// SPDX-License-Identifier: Apache-2.0

// Package chaos kills the real manager wherever it can be killed, and the API
// server under it, and holds the outcome against that of a run without kills.
// QW_CHAOS=full runs more of it, for minutes.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
)

const repository = "../.."

// full says that the run may take minutes.
var full = os.Getenv("QW_CHAOS") == "full"

var (
	controlPlane *cluster.Cluster
	scheme       = runtime.NewScheme()
	k8s          client.Client // full rights, no cache
	binary       string        // the manager
	// asOperator carries requests with the rights of the operator's service
	// account and nothing else.
	asOperator http.RoundTripper
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := run(m)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run returns the exit code. The control plane is always our own: it is killed.
func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // a first run builds the control plane
	defer cancel()
	folder, err := os.MkdirTemp("", "queueworker-chaos-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary = filepath.Join(folder, "manager")
	if err := operator.Build(ctx, repository, binary); err != nil {
		return 1, err
	}
	if controlPlane, err = cluster.Start(ctx, cluster.Options{Nodes: 1}); err != nil {
		return 1, err
	}
	defer func() { _ = controlPlane.Stop() }()
	if err := install(ctx, filepath.Join(folder, "kubeconfig")); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func kubectl() operator.Kubectl { return operator.Kubectl{Cluster: controlPlane, Root: repository} }

// install sets up what the operator needs, and its identity.
func install(ctx context.Context, kubeconfig string) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if k8s, err = client.New(controlPlane.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := kubectl().Install(ctx, operator.Definition, operator.Identity); err != nil {
		return err
	}
	if err := kubectl().WaitForDefinition(ctx); err != nil {
		return err
	}
	if err := kubectl().WaitForIdentity(ctx); err != nil {
		return err
	}
	if err := kubectl().WriteKubeconfig(ctx, operator.Name, kubeconfig); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	asOperator, err = rest.TransportFor(config)
	return err
}

func newNamespace(ctx context.Context, t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "qw-"}}
	if err := k8s.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}
