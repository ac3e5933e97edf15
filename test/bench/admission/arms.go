// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/hack/operator"
	"github.com/queueworker/operator/test/bench/measure"
)

// arm is one way of admission.
type arm struct {
	name           string
	webhook, rules bool // the webhook is registered; the CRD has its CEL rules
}

var arms = []arm{
	{name: "webhook + CEL", webhook: true, rules: true},
	{name: "CEL only", rules: true},
	{name: "neither"},
}

// order gives each arm the same mean position, so that whatever grows or drifts
// in the course of a run hits all of them alike.
var order = []int{0, 1, 2, 2, 1, 0}

// startStandby starts the manager as a replica that does not lead: its webhook
// answers as in production, its controller never acts. It leads once before, to
// make the certificate and register the webhook.
func startStandby(ctx context.Context, lab *measure.Lab) (*measure.Manager, error) {
	manager, err := lab.StartManager(ctx)
	if err != nil {
		return nil, err
	}
	if err := manager.Stop(); err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	if err := lab.Client.Get(ctx, client.ObjectKey{Namespace: operator.Namespace, Name: operator.Name}, lease); err != nil {
		return nil, err
	}
	lease.Spec.HolderIdentity = ptr.To("the benchmark")
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(7 * 24 * 3600))
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	if err := lab.Client.Update(ctx, lease); err != nil {
		return nil, err
	}
	return lab.StartManager(ctx)
}

// enter makes an arm's admission effective and proves it: by an object that the
// rules refuse and one that only the webhook warns of.
func (b *bench) enter(ctx context.Context, a arm) error {
	if err := b.lab.RegisterWebhook(ctx, a.webhook); err != nil {
		return err
	}
	if err := b.setRules(ctx, a.rules); err != nil {
		return err
	}
	const wanted, limit = 5, 30 * time.Second // in a row
	deadline := time.Now().Add(limit)
	for inARow := 0; inARow < wanted; {
		warned, refused, err := b.probe(ctx)
		if err != nil {
			return err
		}
		inARow++
		if warned != a.webhook || refused != a.rules {
			inARow = 0
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: after %s the webhook is active: %t, the rules: %t", a.name, limit, warned, refused)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// probe says whether the webhook warns and whether the rules refuse. Nothing is
// stored.
func (b *bench) probe(ctx context.Context) (warned, refused bool, err error) {
	b.warnings.Store(0)
	if err := b.prober.Create(ctx, b.risky.DeepCopy(), client.DryRunAll); err != nil {
		return false, false, fmt.Errorf("an object that is only warned of: %w", err)
	}
	warned = b.warnings.Load() > 0
	err = b.prober.Create(ctx, b.broken.DeepCopy(), client.DryRunAll)
	if refused = apierrors.IsInvalid(err); refused {
		err = nil
	}
	return warned, refused, err
}

// setRules installs the CRD, without its CEL rules where they are not wanted.
func (b *bench) setRules(ctx context.Context, wanted bool) error {
	whole := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(crd.QueueWorkers, whole); err != nil {
		return err
	}
	installed := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.lab.Client.Get(ctx, client.ObjectKeyFromObject(whole), installed); err != nil {
		return err
	}
	installed.Spec.Versions = whole.Spec.Versions
	if !wanted {
		for i := range installed.Spec.Versions {
			if strip(installed.Spec.Versions[i].Schema.OpenAPIV3Schema) == 0 {
				return errors.New("the CRD has no rules to strip")
			}
		}
	}
	return b.lab.Client.Update(ctx, installed)
}

// strip removes the CEL rules and says how many there were.
func strip(schema *apiextensionsv1.JSONSchemaProps) (removed int) {
	removed = len(schema.XValidations)
	schema.XValidations = nil
	for name, property := range schema.Properties {
		removed += strip(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		removed += strip(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		removed += strip(schema.AdditionalProperties.Schema)
	}
	return removed
}
