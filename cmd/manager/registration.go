// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/queueworker/operator/internal/certs"
	"github.com/queueworker/operator/internal/managerconfig"
)

const (
	// checkEvery is how often the end of the certificate is looked at; anything
	// else is noticed by a watch.
	checkEvery = 12 * time.Hour
	// retrySoon follows a write that somebody else was faster with.
	retrySoon = 200 * time.Millisecond
)

var errWaitingForLeader = errors.New("waiting for the leading replica")

// registration keeps the webhook reachable: a certificate in its Secret and in
// the listener, and a webhook configuration that tells the API server where the
// listener is and whom to trust. The leader writes; the other replicas follow,
// so that two of them with different configurations, as in an upgrade, do not
// undo each other's writes.
type registration struct {
	config  *managerconfig.Config
	client  client.Client
	direct  client.Reader // past the cache, which holds only metadata
	serve   func(tls.Certificate)
	clock   clock.PassiveClock
	elected <-chan struct{} // closed once this replica leads

	// state is why the webhook is not registered; empty once it is.
	state atomic.Pointer[string]
}

// Ready is nil once the webhook is registered.
func (r *registration) Ready() error {
	switch state := r.state.Load(); {
	case state == nil:
		return errors.New("the webhook is not registered yet")
	case *state != "":
		return errors.New(*state)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *registration) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := r.ensure(ctx)
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	r.state.Store(&reason)
	switch {
	case errors.Is(err, errWaitingForLeader):
		return reconcile.Result{}, nil // its write is watched
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return reconcile.Result{RequeueAfter: retrySoon}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: checkEvery}, nil
}

func (r *registration) ensure(ctx context.Context) error {
	var authority []byte
	if r.config.Webhook.Certificates.Mode == managerconfig.CertificatesSelf {
		data, err := r.ensureSecret(ctx)
		if err != nil {
			return err
		}
		cert, err := certs.Parse(data)
		if err != nil {
			return err
		}
		r.serve(cert) // before the API server is told to trust it
		authority = data[certs.CACertKey]
	}
	return r.ensureConfiguration(ctx, authority)
}

func (r *registration) ensureSecret(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	key := secretKey(r.config)
	err := r.direct.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the certificate's Secret %s: %w", key, err)
	}
	missing := err != nil
	if !r.leads() {
		if _, err := certs.Parse(secret.Data); err != nil {
			return nil, fmt.Errorf("%w to make a certificate", errWaitingForLeader)
		}
		return secret.Data, nil
	}
	data, changed, err := certs.Renew(secret.Data, servingHost(r.config), r.clock.Now())
	if err != nil || !changed {
		return data, err
	}
	secret.Namespace, secret.Name, secret.Data = key.Namespace, key.Name, data
	if missing { // outside of a cluster, with more rights than the role gives
		secret.Type = corev1.SecretTypeOpaque
		err = r.client.Create(ctx, secret)
	} else {
		err = r.client.Update(ctx, secret)
	}
	if missing && apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the certificate's Secret %s is not installed: install it with the operator's manifests, it may be empty", key)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the certificate's Secret %s: %w", key, err)
	}
	log.FromContext(ctx).Info("Made a certificate for the webhook", "host", servingHost(r.config), "secret", key)
	return data, nil
}

func (r *registration) ensureConfiguration(ctx context.Context, authority []byte) error {
	installed := &admissionv1.ValidatingWebhookConfiguration{}
	name := r.config.Webhook.ConfigurationName
	if err := r.direct.Get(ctx, client.ObjectKey{Name: name}, installed); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the ValidatingWebhookConfiguration %s is not installed: install it with the operator's manifests", name)
		}
		return fmt.Errorf("reading the ValidatingWebhookConfiguration %s: %w", name, err)
	}
	if !r.leads() {
		return trusts(installed, authority)
	}
	before := installed.DeepCopy()
	for i := range installed.Webhooks {
		register(&installed.Webhooks[i], r.config, authority)
	}
	if equality.Semantic.DeepEqual(before, installed) {
		return nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, installed, patch); err != nil {
		return fmt.Errorf("writing the ValidatingWebhookConfiguration %s: %w", name, err)
	}
	log.FromContext(ctx).Info("Registered the webhook", "configuration", name)
	return nil
}

func (r *registration) leads() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}

// trusts is nil where the API server trusts the authority; without one of ours
// that is somebody else's business.
func trusts(installed *admissionv1.ValidatingWebhookConfiguration, authority []byte) error {
	for _, webhook := range installed.Webhooks {
		if authority != nil && !bytes.Equal(webhook.ClientConfig.CABundle, authority) {
			return fmt.Errorf("%w to register the webhook", errWaitingForLeader)
		}
	}
	return nil
}

// register lays what the manager knows over the installed webhook, and leaves
// the rest to whoever installed it.
func register(webhook *admissionv1.ValidatingWebhook, config *managerconfig.Config, authority []byte) {
	target := &webhook.ClientConfig
	path := servedPath(target)
	switch {
	case config.Webhook.URL != "":
		address := strings.TrimSuffix(config.Webhook.URL, "/") + path
		target.URL, target.Service = &address, nil
	case authority != nil: // the certificate is made out to this Service
		if target.Service == nil {
			target.URL, target.Service = nil, &admissionv1.ServiceReference{Path: &path}
		}
		target.Service.Namespace, target.Service.Name = config.Namespace, config.Webhook.ServiceName
	}
	if authority != nil {
		target.CABundle = authority
	}
	if config.Webhook.FailurePolicy != "" {
		policy := admissionv1.FailurePolicyType(config.Webhook.FailurePolicy)
		webhook.FailurePolicy = &policy
	}
	webhook.NamespaceSelector = onlyWatched(webhook.NamespaceSelector, config.WatchNamespaces)
}

// onlyWatched keeps other namespaces from asking, of which nothing is known. A
// selector of that kind is taken back once all are watched; any other stays.
func onlyWatched(installed *metav1.LabelSelector, watched []string) *metav1.LabelSelector {
	ours := installed != nil && len(installed.MatchLabels) == 0 && len(installed.MatchExpressions) == 1 &&
		installed.MatchExpressions[0].Key == corev1.LabelMetadataName &&
		installed.MatchExpressions[0].Operator == metav1.LabelSelectorOpIn
	switch {
	case len(watched) > 0:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: watched,
		}}}
	case ours:
		return &metav1.LabelSelector{}
	}
	return installed
}

// servedPath is the path of the installed webhook, whichever way it is reached.
func servedPath(target *admissionv1.WebhookClientConfig) string {
	if target.Service != nil && target.Service.Path != nil {
		return *target.Service.Path
	}
	if target.URL != nil {
		if u, err := url.Parse(*target.URL); err == nil {
			return u.Path
		}
	}
	return ""
}

// servingHost is the name under which the API server reaches the webhook.
func servingHost(config *managerconfig.Config) string {
	if u, err := url.Parse(config.Webhook.URL); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return config.Webhook.ServiceName + "." + config.Namespace + ".svc"
}

func secretKey(config *managerconfig.Config) types.NamespacedName {
	return types.NamespacedName{Namespace: config.Namespace, Name: config.Webhook.Certificates.SecretName}
}
