// SPDX-License-Identifier: Apache-2.0

// Package webhooks registers the validating webhook. What it decides is in
// internal/admission.
package webhooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/queueworker/operator/api/v1alpha1"
	chainadmission "github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// A deleting object never waits for the webhook: with failurePolicy Fail and
// the webhook down, its finalizers could not be removed.
//
// +kubebuilder:webhookconfiguration:mutating=false,name=queueworker-operator
// +kubebuilder:webhook:path=/validate-queueworker-dev-v1alpha1-queueworker,mutating=false,failurePolicy=ignore,sideEffects=None,groups=queueworker.dev,resources=queueworkers,verbs=create;update,versions=v1alpha1,name=validate.queueworker.dev,admissionReviewVersions=v1,timeoutSeconds=5,patch=`{"matchConditions":[{"name":"not-deleting","expression":"!has(object.metadata.deletionTimestamp)"}],"clientConfig":{"service":{"namespace":"queueworker-system","name":"queueworker-operator-webhook"}}}`
// +kubebuilder:rbac:groups=queueworker.dev,resources=queueworkers,verbs=get;list;watch

// Options configures the webhook.
type Options struct {
	// GraceCap is the longest grace, in seconds, that the platform grants; 0
	// means timeoutchain.DefaultGraceCap.
	GraceCap int64
	// Refused, if set, is called once per rule that refused an object for good;
	// dry runs are not reported.
	Refused func(rule string)
}

// Setup registers the webhook with the manager's server.
func Setup(mgr ctrl.Manager, opts Options) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.QueueWorker{}).
		WithValidator(&validator{reader: mgr.GetClient(), opts: opts}).
		Complete()
}

type validator struct {
	reader client.Reader
	opts   Options
}

var _ admission.Validator[*v1alpha1.QueueWorker] = &validator{}

// ValidateCreate judges a new object.
func (v *validator) ValidateCreate(ctx context.Context, qw *v1alpha1.QueueWorker) (admission.Warnings, error) {
	opts, err := v.surroundings(ctx, qw)
	if err != nil {
		return nil, err
	}
	return v.answer(ctx, qw, chainadmission.Validate(qw, opts))
}

// ValidateUpdate judges a change.
func (v *validator) ValidateUpdate(ctx context.Context, old, qw *v1alpha1.QueueWorker) (admission.Warnings, error) {
	opts, err := v.surroundings(ctx, qw)
	if err != nil {
		return nil, err
	}
	return v.answer(ctx, qw, chainadmission.ValidateUpdate(old, qw, opts))
}

// ValidateDelete lets everything go.
func (v *validator) ValidateDelete(context.Context, *v1alpha1.QueueWorker) (admission.Warnings, error) {
	return nil, nil
}

func (v *validator) surroundings(ctx context.Context, qw *v1alpha1.QueueWorker) (chainadmission.Options, error) {
	opts := chainadmission.Options{GraceCap: v.opts.GraceCap}
	if qw.Spec.EffectiveDriver() != v1alpha1.DriverDatabase {
		return opts, nil // only the database driver shares reservations
	}
	var list v1alpha1.QueueWorkerList
	if err := v.reader.List(ctx, &list, client.InNamespace(qw.Namespace)); err != nil {
		return opts, fmt.Errorf("the other QueueWorkers of namespace %s cannot be read, so a shared queue cannot be judged; try again: %w", qw.Namespace, err)
	}
	opts.Others = list.Items
	return opts, nil
}

func (v *validator) answer(ctx context.Context, qw *v1alpha1.QueueWorker, result chainadmission.Result) (admission.Warnings, error) {
	errs := result.Errors()
	if len(errs) == 0 {
		return result.Warnings(), nil
	}
	if v.opts.Refused != nil && !dryRun(ctx) {
		for _, f := range timeoutchain.Blocking(result.Findings) {
			v.opts.Refused(f.Rule)
		}
	}
	kind := v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind).GroupKind()
	return result.Warnings(), apierrors.NewInvalid(kind, qw.Name, errs)
}

func dryRun(ctx context.Context) bool {
	request, err := admission.RequestFromContext(ctx)
	return err == nil && request.DryRun != nil && *request.DryRun
}
