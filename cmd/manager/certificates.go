// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/queueworker/operator/internal/managerconfig"
)

// setUpCertificates sees to it that serve gets every certificate as it comes
// into force, and that the webhook is registered. registered says whether it is.
func setUpCertificates(mgr ctrl.Manager, config *managerconfig.Config, serve func(tls.Certificate)) (registered func() error, err error) {
	self := config.Webhook.Certificates.Mode == managerconfig.CertificatesSelf
	if !self {
		if err := watchProvided(mgr, config.Webhook.Certificates.Directory, serve); err != nil {
			return nil, err
		}
	}
	if !self && config.Webhook.URL == "" && config.Webhook.FailurePolicy == "" && len(config.WatchNamespaces) == 0 {
		return func() error { return nil }, nil // whoever provides the certificate registers the webhook
	}
	r := &registration{config: config, client: mgr.GetClient(), direct: mgr.GetAPIReader(), serve: serve, clock: clock.RealClock{}, elected: mgr.Elected()}
	return r.Ready, addRegistration(mgr, r, self)
}

func watchProvided(mgr ctrl.Manager, directory string, serve func(tls.Certificate)) error {
	watcher, err := certwatcher.New(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("webhook.certificates.directory %s: %w; mount tls.crt and tls.key there, or set webhook.certificates.mode to Self", directory, err)
	}
	if err != nil {
		return fmt.Errorf("webhook.certificates.directory %s: %w", directory, err)
	}
	watcher.RegisterCallback(serve)
	return mgr.Add(watcher)
}

// addRegistration runs the registration on every replica: at the start, when the
// replica is elected, and whenever the Secret or the webhook configuration
// changes.
func addRegistration(mgr ctrl.Manager, r *registration, self bool) error {
	c, err := controller.New("webhook-registration", mgr, controller.Options{
		Reconciler:         r,
		NeedLeaderElection: ptr.To(false),
	})
	if err != nil {
		return err
	}
	the := reconcile.Request{NamespacedName: secretKey(r.config)}
	sources := []source.Source{
		source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(the)
			go func() {
				select {
				case <-mgr.Elected():
					queue.Add(the)
				case <-ctx.Done():
				}
			}()
			return nil
		}),
		watchMetadata(mgr.GetCache(), configurationMetadata(), the),
	}
	if self {
		sources = append(sources, watchMetadata(mgr.GetCache(), secretMetadata(), the))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

func watchMetadata(objects cache.Cache, of *metav1.PartialObjectMetadata, the reconcile.Request) source.Source {
	return source.Kind(objects, of, handler.TypedEnqueueRequestsFromMapFunc(
		func(context.Context, *metav1.PartialObjectMetadata) []reconcile.Request {
			return []reconcile.Request{the}
		}))
}

// limitRegistrationCache keeps the metadata of the one Secret and the one
// webhook configuration: no Secret's content is ever cached, and the permission
// to watch can name the object.
func limitRegistrationCache(options *cache.Options, config *managerconfig.Config) {
	if options.ByObject == nil {
		options.ByObject = map[client.Object]cache.ByObject{}
	}
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector(metav1.ObjectNameField, name) }
	options.ByObject[secretMetadata()] = cache.ByObject{
		Namespaces: map[string]cache.Config{config.Namespace: {}},
		Field:      named(config.Webhook.Certificates.SecretName),
	}
	options.ByObject[configurationMetadata()] = cache.ByObject{Field: named(config.Webhook.ConfigurationName)}
}

func secretMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return object
}

func configurationMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	return object
}
