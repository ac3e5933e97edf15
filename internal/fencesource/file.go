// SPDX-License-Identifier: Apache-2.0

// Package fencesource makes from a QueueWorker the configuration file of its
// fence's sidecar, and the short names of what its providers offer.
package fencesource

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Where the sidecar finds its files.
const (
	Folder     = "/etc/queueworker"
	ConfigFile = "fence.yaml"
	DSNFile    = "dsn"
)

// file is what is written of a [fenceconfig.Config]: what the QueueWorker says.
// Everything else is the sidecar's own default. Field names are held by the
// sidecar's strict decoder.
type file struct {
	APIVersion  string     `json:"apiVersion"`
	Kind        string     `json:"kind"`
	HTTPSeconds int32      `json:"httpSeconds"`
	Store       store      `json:"store"`
	Retention   retention  `json:"retention"`
	Providers   []provider `json:"providers,omitempty"`
	Claims      []claims   `json:"claims,omitempty"`
}

type store struct {
	Driver  string `json:"driver"`
	DSNFile string `json:"dsnFile"`
	Table   string `json:"table"`
	Schema  string `json:"schema"`
}

type retention struct {
	DoneSeconds int32 `json:"doneSeconds"`
}

type provider struct {
	Name               string  `json:"name"`
	URL                string  `json:"url"`
	Key                string  `json:"key,omitempty"`
	KeyHeader          string  `json:"keyHeader,omitempty"`
	TimeoutSeconds     *int32  `json:"timeoutSeconds,omitempty"`
	MaxInFlightSeconds *int32  `json:"maxInFlightSeconds,omitempty"`
	KeyTTLSeconds      *int32  `json:"keyTTLSeconds,omitempty"`
	StoresErrors       bool    `json:"storesErrors,omitempty"`
	ActsOn5xx          *bool   `json:"actsOn5xx,omitempty"`
	ResendLimit        *int32  `json:"resendLimit,omitempty"`
	ProviderID         string  `json:"providerId,omitempty"`
	Lookup             *lookup `json:"lookup,omitempty"`
	LookupLagSeconds   *int32  `json:"lookupLagSeconds,omitempty"`
	DidNotAct          []int32 `json:"didNotAct,omitempty"`
}

type claims struct {
	Name               string `json:"name"`
	DoWithinSeconds    int64  `json:"doWithinSeconds"`
	MaxInFlightSeconds int64  `json:"maxInFlightSeconds"`
	CanCheck           bool   `json:"canCheck,omitempty"`
	ReviewAfterSeconds int64  `json:"reviewAfterSeconds,omitempty"`
}

// TakesTable says whether the sidecar takes a table of this name.
func TakesTable(name string) bool {
	_, err := sqlfence.ParseTable(name)
	return err == nil
}

// File is the text of the sidecar's configuration. It holds no secret: the
// connection string is in a file beside it. The chain says when a job that was
// stopped is dead.
func File(spec *v1alpha1.QueueWorkerSpec, chain *timeoutchain.Chain) string {
	f := file{
		APIVersion: fenceconfig.APIVersion, Kind: fenceconfig.Kind,
		HTTPSeconds: ptr.Deref(spec.Timeouts.HTTPSeconds, 0),
		Retention:   retention{*spec.EffectiveFenceRetention().DoneSeconds},
	}
	if s := spec.Fence.Store; s != nil {
		f.Store = store{
			Driver: string(s.Type), DSNFile: Folder + "/" + DSNFile,
			Table: spec.EffectiveFenceTable().Name, Schema: string(s.EffectiveSchema()),
		}
	}
	for i := range spec.Fence.Providers {
		f.Providers = append(f.Providers, providerOf(&spec.Fence.Providers[i]))
	}
	for i := range spec.Fence.Claims {
		f.Claims = append(f.Claims, claimsOf(&spec.Fence.Claims[i], chain.Watchdog()))
	}
	text, err := yaml.Marshal(f)
	if err != nil { // strings and numbers only: cannot happen
		return ""
	}
	return string(text)
}

func providerOf(p *v1alpha1.FenceProvider) provider {
	return provider{
		Name: p.Name, URL: p.URL, Key: p.Key, KeyHeader: p.EffectiveKeyHeader(),
		TimeoutSeconds: p.TimeoutSeconds, MaxInFlightSeconds: p.MaxInFlightSeconds,
		KeyTTLSeconds: p.KeyTTLSeconds, StoresErrors: p.StoresErrors, ActsOn5xx: p.ActsOn5xx,
		ResendLimit: p.ResendLimit, DidNotAct: p.DidNotAct,
		ProviderID: p.ProviderID, Lookup: lookupOf(p), LookupLagSeconds: p.LookupLagSeconds,
	}
}

// The times of a claim. A holder works inside its job, so it is dead when the
// watchdog has ended the job; what a frozen node adds is the same as for a
// provider.
const (
	defaultDoWithin    = 60
	defaultReviewAfter = 3600
)

func claimsOf(c *v1alpha1.FenceClaims, jobDead int64) claims {
	do := int64(ptr.Deref(c.DoWithinSeconds, defaultDoWithin))
	out := claims{
		Name: c.Name, DoWithinSeconds: do, CanCheck: c.CanCheck,
		MaxInFlightSeconds: max(do+timeoutchain.LeastInFlight, jobDead, timeoutchain.DefaultInFlight),
	}
	if c.CanCheck {
		out.ReviewAfterSeconds = max(defaultReviewAfter, 2*out.MaxInFlightSeconds)
	}
	return out
}
