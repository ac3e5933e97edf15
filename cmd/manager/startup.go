// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/managerconfig"
)

// startupTimeout is how long the checks may wait for an API server.
const startupTimeout = 30 * time.Second

const (
	servedPoll    = 200 * time.Millisecond
	servedTimeout = 15 * time.Second
)

// checkPorts says which field holds a port that is taken, which the listeners
// themselves would not.
func checkPorts(config *managerconfig.Config) error {
	for _, endpoint := range []struct{ field, address string }{
		{"webhook.bindAddress", config.Webhook.BindAddress},
		{"metrics.bindAddress", config.Metrics.BindAddress},
		{"health.bindAddress", config.Health.BindAddress},
	} {
		if endpoint.address == managerconfig.Off {
			continue
		}
		listener, err := net.Listen("tcp", endpoint.address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("%s %s: the port is in use by another process; stop it or choose another port", endpoint.field, endpoint.address)
		case err != nil:
			return fmt.Errorf("%s %s: cannot listen there: %w", endpoint.field, endpoint.address, err)
		}
		_ = listener.Close()
	}
	return nil
}

// checkCluster finds at the start what would otherwise fail again and again: no
// API server, a CRD that is missing or older than the manager, no namespace, no
// permission.
func checkCluster(ctx context.Context, config *managerconfig.Config, restConfig *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	c, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return explain(err, restConfig.Host)
	}
	if err := checkCRD(ctx, c); err != nil {
		return explain(err, restConfig.Host)
	}
	if err := checkNamespace(ctx, c, config); err != nil {
		return explain(err, restConfig.Host)
	}
	return explain(checkPermissions(ctx, c, config.WatchNamespaces), restConfig.Host)
}

func checkCRD(ctx context.Context, c client.Client) error {
	var crd apiextensionsv1.CustomResourceDefinition
	err := c.Get(ctx, client.ObjectKey{Name: crdName}, &crd)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the CRD %s is not installed: install it with the operator's manifests, then start again", crdName)
	}
	if err != nil {
		return err
	}
	missing, err := missingFields(&crd)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("the installed CRD %s is older than this manager (version %s) and does not know %s: update it with this version's manifests, then start again",
			crdName, version, strings.Join(missing, ", "))
	}
	return waitUntilServed(ctx, c)
}

// waitUntilServed bridges the moment between the installation of the CRD and
// its API.
func waitUntilServed(ctx context.Context, c client.Client) error {
	err := wait.PollUntilContextTimeout(ctx, servedPoll, servedTimeout, true, func(context.Context) (bool, error) {
		_, err := c.RESTMapper().RESTMapping(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind).GroupKind(), v1alpha1.SchemeGroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the CRD %s is installed but its API is not served: kubectl describe crd %s says why", crdName, crdName)
	}
	return err
}

// checkNamespace creates the lease for show: that needs the same permission and
// the same namespace as the real one.
func checkNamespace(ctx context.Context, c client.Client, config *managerconfig.Config) error {
	if !config.LeaderElection.Enabled {
		return nil
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = config.Namespace, config.LeaderElection.LeaseName
	err := c.Create(ctx, lease, client.DryRunAll)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the operator's own namespace %q does not exist: create it, or set another one with --namespace", config.Namespace)
	}
	return err
}

func checkPermissions(ctx context.Context, c client.Client, watched []string) error {
	if len(watched) == 0 {
		watched = []string{""} // all
	}
	for _, namespace := range watched {
		for _, list := range []client.ObjectList{&v1alpha1.QueueWorkerList{}, &appsv1.DeploymentList{}, &corev1.PodList{}} {
			if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// explain says what to do about an error of the API server.
func explain(err error, server string) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("no permission: %w; bind the roles of config/rbac/role.yaml to this identity", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept the credentials: %w; check --kubeconfig or the service account", server, err)
	case errors.As(err, &status):
		return err
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cannot reach the API server %s: %w; check --kubeconfig, the network and that it runs", server, err)
	}
	return err
}
