// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fencesource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// fence adds what the sidecar is told.
func fence(c *timeoutchain.Chain, spec *v1alpha1.QueueWorkerSpec) {
	c.FenceStore = spec.Fence.Store != nil
	c.FenceDeclared = fenceDeclared(&spec.Fence)
	if c.Fence != timeoutchain.FenceProxy {
		return
	}
	if table := spec.EffectiveFenceTable().Name; !fencesource.TakesTable(table) {
		c.WrongTable = table
	}
	retention := spec.EffectiveFenceRetention()
	c.KeepDone, c.FailedJobsKept = value(retention.DoneSeconds), value(retention.FailedJobsSeconds)
	c.Claims = len(spec.Fence.Claims) > 0
	for i := range spec.Fence.Providers {
		c.Providers = append(c.Providers, provider(&spec.Fence.Providers[i]))
	}
}

func provider(p *v1alpha1.FenceProvider) timeoutchain.Provider {
	out := timeoutchain.Provider{Name: p.Name, Timeout: value(p.TimeoutSeconds), InFlight: value(p.MaxInFlightSeconds)}
	if p.KeysProtect() {
		out.KeyTTL = value(p.KeyTTLSeconds)
	}
	if p.Lookup != nil {
		out.LookupLag = value(p.LookupLagSeconds)
	}
	field, why := fencesource.Fault(p)
	out.Fault, out.FaultField = why, timeoutchain.Link(field)
	return out
}

func fenceDeclared(f *v1alpha1.Fence) []timeoutchain.Link {
	var links []timeoutchain.Link
	for _, part := range []struct {
		set  bool
		link timeoutchain.Link
	}{
		{f.ProviderKeyTTLSeconds != nil, timeoutchain.LinkProviderKeyTTL},
		{f.Store != nil, timeoutchain.LinkFenceStore},
		{len(f.Providers) > 0, timeoutchain.LinkProviders},
		{len(f.Claims) > 0, timeoutchain.LinkClaims},
		{f.Retention != v1alpha1.FenceRetention{}, timeoutchain.LinkFenceRetention},
	} {
		if part.set {
			links = append(links, part.link)
		}
	}
	return links
}

// ofProvider says whether a link is a provider's own, or below one.
func ofProvider(l timeoutchain.Link) bool {
	head, _, _ := strings.Cut(string(l), ".")
	return slices.Contains(providerLinks, timeoutchain.Link(head))
}

// providerLinks are the fields of a provider that a finding may name.
var providerLinks = []timeoutchain.Link{
	timeoutchain.LinkProviderKey, timeoutchain.LinkProviderTimeout, timeoutchain.LinkInFlight, timeoutchain.LinkKeyTTL,
	timeoutchain.LinkProviderID, timeoutchain.LinkLookup, timeoutchain.LinkLookupLag,
}

func providerPath(qw *v1alpha1.QueueWorker, l timeoutchain.Link, name string) *field.Path {
	isIt := func(p v1alpha1.FenceProvider) bool { return p.Name == name }
	return indexed(field.NewPath("spec", "fence", "providers"), slices.IndexFunc(qw.Spec.Fence.Providers, isIt)).Child(string(l))
}
