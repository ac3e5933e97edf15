// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	runtimeconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/controllers"
	"github.com/queueworker/operator/internal/certs"
	"github.com/queueworker/operator/internal/managerconfig"
	"github.com/queueworker/operator/internal/metrics"
	"github.com/queueworker/operator/webhooks"
)

const (
	// defaultNamespace is the operator's own namespace outside a cluster.
	defaultNamespace = "queueworker-system"
	// agentImage has the agent of the same version as this manager.
	agentImage = "queueworker/operator"
	// podNamespaceFile holds a pod's own namespace.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

// serve runs the operator until ctx ends or something breaks.
func serve(ctx context.Context, config *managerconfig.Config, kubeconfig string) error {
	if config.Namespace == "" {
		config.Namespace = ownNamespace()
	}
	if err := checkPorts(config); err != nil {
		return err
	}
	restConfig, err := loadRESTConfig(kubeconfig)
	if err != nil {
		return err
	}
	store := &certs.Store{}
	options := managerOptions(config, store)
	controllers.Prepare(restConfig, &options)
	limitRegistrationCache(&options.Cache, config)
	if err := checkCluster(ctx, config, restConfig); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, options)
	if err != nil {
		return explain(err, restConfig.Host)
	}
	if err := setUp(ctx, mgr, config, store); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version, "namespace", config.Namespace, "watchNamespaces", config.WatchNamespaces)
	return explain(mgr.Start(ctx), restConfig.Host)
}

// setUp adds the webhook, the controller and the checks of readiness.
func setUp(ctx context.Context, mgr ctrl.Manager, config *managerconfig.Config, store *certs.Store) error {
	own := metrics.New(ctrlmetrics.Registry)
	registered, err := setUpCertificates(mgr, config, func(cert tls.Certificate) {
		store.Set(cert)
		own.CertificateExpires(cert.Leaf.NotAfter)
	})
	if err != nil {
		return err
	}
	if err := webhooks.Setup(mgr, webhooks.Options{GraceCap: config.Caps.GracePeriodSeconds, Refused: own.Refused}); err != nil {
		return fmt.Errorf("setting up the webhook: %w", err)
	}
	if err := controllers.Setup(mgr, controllers.Options{
		GraceCap:                config.Caps.GracePeriodSeconds,
		AgentImage:              cmp.Or(config.Agent.Image, agentImage+":"+version),
		MaxConcurrentReconciles: config.Controller.MaxConcurrentReconciles,
		Metrics:                 own,
	}); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	// The webhook reads other QueueWorkers on every replica, not only where the
	// controller runs.
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.QueueWorker{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching QueueWorkers: %w", err)
	}
	listening := mgr.GetWebhookServer().StartedChecker()
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("cache", told("cache", func(*http.Request) error {
			if !informer.HasSynced() {
				return errors.New("the QueueWorkers are not read yet")
			}
			return nil
		})),
		mgr.AddReadyzCheck("webhook", told("webhook", func(request *http.Request) error {
			if err := registered(); err != nil {
				return err
			}
			if err := store.Ready(time.Now()); err != nil {
				return err
			}
			return listening(request)
		})),
	)
}

// told logs why a check fails, once for each reason: the endpoint itself tells
// nobody.
func told(name string, check healthz.Checker) healthz.Checker {
	var last atomic.Value
	return func(request *http.Request) error {
		err := check(request)
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		if previous, _ := last.Swap(reason).(string); previous != reason {
			ctrl.Log.WithName("readiness").Info("Changed", "check", name, "ready", err == nil, "reason", reason)
		}
		return err
	}
}

func managerOptions(config *managerconfig.Config, store *certs.Store) ctrl.Options {
	tlsOptions := []func(*tls.Config){func(c *tls.Config) {
		c.NextProtos = []string{"http/1.1"} // no HTTP/2: its streams can be reset faster than served
		c.GetCertificate = store.GetCertificate
	}}
	host, port := splitAddress(config.Webhook.BindAddress)
	seconds := func(n int32) *time.Duration { return ptr.To(time.Duration(n) * time.Second) }
	options := ctrl.Options{
		Scheme:                        scheme,
		GracefulShutdownTimeout:       seconds(config.ShutdownTimeoutSeconds),
		HealthProbeBindAddress:        config.Health.BindAddress,
		LeaderElection:                config.LeaderElection.Enabled,
		LeaderElectionID:              config.LeaderElection.LeaseName,
		LeaderElectionNamespace:       config.Namespace,
		LeaderElectionReleaseOnCancel: true, // the process ends right after the manager
		LeaseDuration:                 seconds(config.LeaderElection.LeaseDurationSeconds),
		RenewDeadline:                 seconds(config.LeaderElection.RenewDeadlineSeconds),
		RetryPeriod:                   seconds(config.LeaderElection.RetryPeriodSeconds),
		Controller:                    runtimeconfig.Controller{EnableWarmup: ptr.To(true)}, // a standby takes over with full caches
		WebhookServer:                 webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: tlsOptions}),
		Metrics: metricsserver.Options{
			BindAddress:    config.Metrics.BindAddress,
			SecureServing:  true,
			FilterProvider: onlyScrapers,
			TLSOpts:        tlsOptions,
		},
	}
	if len(config.WatchNamespaces) > 0 {
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range config.WatchNamespaces {
			options.Cache.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// loadRESTConfig never follows the KUBECONFIG of the environment: an operator
// must not act on a cluster that nobody named.
func loadRESTConfig(kubeconfig string) (*rest.Config, error) {
	var restConfig *rest.Config
	var err error
	if kubeconfig != "" {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
		restConfig, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
		if err != nil {
			err = fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
		}
	} else {
		restConfig, err = rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			err = errors.New("no cluster: pass --kubeconfig FILE, or run in a pod")
		}
	}
	if err != nil {
		return nil, err
	}
	restConfig.UserAgent = "queueworker-operator/" + version
	restConfig.QPS = -1 // the API server's own fairness limits us
	return restConfig, nil
}

func ownNamespace() string {
	if text, err := os.ReadFile(podNamespaceFile); err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text))
	}
	return defaultNamespace
}

func splitAddress(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address) // validated
	port, _ = strconv.Atoi(text)
	return host, port
}
