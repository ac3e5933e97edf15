// SPDX-License-Identifier: Apache-2.0

// Package webhookload writes QueueWorkers without a pause while replicas of the
// operator are killed, and judges every answer. QW_LOAD=full does so for two
// minutes.
package webhookload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
)

const repository = "../../.."

// full says that the run may take minutes.
var full = os.Getenv("QW_LOAD") == "full"

var (
	controlPlane *cluster.Cluster
	k8s          client.Client // full rights, no cache; tells the writer what it is warned of
	binary       string        // the manager
	kubeconfig   string        // of the operator's service account
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := run(m)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run returns the exit code. The control plane is always our own: the webhook
// is registered on loopback.
func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // a first run builds the control plane
	defer cancel()
	folder, err := os.MkdirTemp("", "queueworker-load-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary, kubeconfig = filepath.Join(folder, "manager"), filepath.Join(folder, "kubeconfig")
	if err := operator.Build(ctx, repository, binary); err != nil {
		return 1, err
	}
	if controlPlane, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return 1, err
	}
	defer func() { _ = controlPlane.Stop() }()
	if err := install(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func install(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config := controlPlane.RESTConfig()
	config.WarningHandlerWithContext = toTheWriter{}
	var err error
	if k8s, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	kubectl := operator.Kubectl{Cluster: controlPlane, Root: repository}
	if err := kubectl.Install(ctx, operator.Definition, operator.Identity, operator.Webhook); err != nil {
		return err
	}
	if err := kubectl.WaitForDefinition(ctx); err != nil {
		return err
	}
	if err := kubectl.WaitForIdentity(ctx); err != nil {
		return err
	}
	return kubectl.WriteKubeconfig(ctx, operator.Name, kubeconfig)
}
