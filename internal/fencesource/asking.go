// SPDX-License-Identifier: Apache-2.0

package fencesource

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
)

// lookup is what is written of a [fenceconfig.Lookup].
type lookup struct {
	Path       string   `json:"path"`
	Headers    []header `json:"headers,omitempty"`
	Succeeded  string   `json:"succeeded"`
	Processing string   `json:"processing,omitempty"`
	Absent     string   `json:"absent,omitempty"`
	Refused    string   `json:"refused,omitempty"`
	ProviderID string   `json:"providerId,omitempty"`
	Result     string   `json:"result,omitempty"`
}

type header struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	File  string `json:"file,omitempty"`
}

func lookupOf(p *v1alpha1.FenceProvider) *lookup {
	if p.Lookup == nil {
		return nil
	}
	l := &lookup{
		Path: p.Lookup.Path, Succeeded: p.Lookup.Succeeded, Processing: p.Lookup.Processing, Absent: p.Lookup.Absent,
		Refused: p.Lookup.Refused, ProviderID: p.Lookup.ProviderID, Result: p.Lookup.Result,
	}
	for i := range p.Lookup.Headers {
		h := &p.Lookup.Headers[i]
		written := header{Name: h.Name, Value: h.Value}
		if h.SecretRef != nil {
			written.File = Folder + "/" + headerFile(p.Name, i)
		}
		l.Headers = append(l.Headers, written)
	}
	return l
}

func headerFile(provider string, header int) string {
	return fmt.Sprintf("%s-header-%d", provider, header)
}

// SecretFile is an entry of a Secret that the sidecar reads from its folder.
type SecretFile struct {
	Ref  *v1alpha1.FenceSecretRef
	File string
}

// SecretFiles are the connection string and the values of lookups' headers.
func SecretFiles(f *v1alpha1.Fence) []SecretFile {
	var files []SecretFile
	if f.Store != nil {
		files = append(files, SecretFile{&f.Store.SecretRef, DSNFile})
	}
	for i := range f.Providers {
		p := &f.Providers[i]
		if p.Lookup == nil {
			continue
		}
		for j := range p.Lookup.Headers {
			if ref := p.Lookup.Headers[j].SecretRef; ref != nil {
				files = append(files, SecretFile{ref, headerFile(p.Name, j)})
			}
		}
	}
	return files
}

// Fault says which field of a provider the sidecar would refuse, and why in one
// line; both are empty where it takes the provider's expressions and its lookup.
func Fault(p *v1alpha1.FenceProvider) (field, why string) {
	if err := proxy.CheckKey(p.Key); err != nil {
		return "key", err.Error()
	}
	declared := proxy.Provider{KeyHeader: p.EffectiveKeyHeader(), ProviderID: p.ProviderID, Provider: fence.Provider{
		LagDeclared: p.LookupLagSeconds != nil,
		Times:       fence.Times{LookupLag: time.Duration(ptr.Deref(p.LookupLagSeconds, 0)) * time.Second},
	}}
	if l := lookupOf(p); l != nil {
		declared.Ask = &proxy.Lookup{
			Path: l.Path, Succeeded: l.Succeeded, Processing: l.Processing, Absent: l.Absent, Refused: l.Refused,
			ProviderID: l.ProviderID, Result: l.Result,
		}
		for _, h := range l.Headers {
			declared.Ask.Headers = append(declared.Ask.Headers, proxy.LookupHeader(h))
		}
	}
	declared = declared.WithDefaults()
	err := declared.CheckAsking()
	if err == nil {
		return "", ""
	}
	field, why, _ = strings.Cut(strings.ReplaceAll(err.Error(), "providerId", "providerID"), ": ")
	return field, why
}
