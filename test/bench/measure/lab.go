// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
)

// Lab is a control plane with everything installed that the manager needs.
type Lab struct {
	Cluster *cluster.Cluster
	// Client has full rights, no cache and no rate limit.
	Client client.WithWatch

	binary, kubeconfig string
	endpoints          operator.Endpoints
	registered         []admissionv1.ValidatingWebhook
}

// Scheme knows every type that is used here.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// NewLab starts a control plane, builds the manager and installs what it needs.
// It is to be called in the root of the repository.
func NewLab(ctx context.Context, options cluster.Options) (*Lab, error) {
	controlPlane, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	l := &Lab{Cluster: controlPlane}
	if err := l.install(ctx); err != nil {
		return nil, errors.Join(err, controlPlane.Stop())
	}
	return l, nil
}

func (l *Lab) install(ctx context.Context) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	if l.Client, err = client.NewWithWatch(l.Cluster.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if l.endpoints, err = operator.FreeEndpoints(); err != nil {
		return err
	}
	folder := filepath.Dir(l.Cluster.KubeconfigPath()) // is removed with the control plane
	l.binary, l.kubeconfig = filepath.Join(folder, "manager"), filepath.Join(folder, "operator.kubeconfig")
	if err := operator.Build(ctx, ".", l.binary); err != nil {
		return err
	}
	kubectl := operator.Kubectl{Cluster: l.Cluster, Root: "."}
	if err := kubectl.Install(ctx, operator.Definition, operator.Identity, operator.Webhook); err != nil {
		return err
	}
	if err := kubectl.WaitForDefinition(ctx); err != nil {
		return err
	}
	return kubectl.WriteKubeconfig(ctx, operator.Name, l.kubeconfig)
}

// RegisterWebhook says whether the API server asks the webhook. The manager
// must have registered it once.
func (l *Lab) RegisterWebhook(ctx context.Context, on bool) error {
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	if err := l.Client.Get(ctx, client.ObjectKey{Name: operator.Name}, configuration); err != nil {
		return err
	}
	if len(configuration.Webhooks) > 0 {
		l.registered = configuration.DeepCopy().Webhooks
	}
	configuration.Webhooks = nil
	if on {
		configuration.Webhooks = l.registered
	}
	return l.Client.Update(ctx, configuration)
}
