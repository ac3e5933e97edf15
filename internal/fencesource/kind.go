// SPDX-License-Identifier: Apache-2.0

package fencesource

import (
	"strings"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Kind is what a provider offers, in the letters of docs/fence.md: A stores
// results and errors, B only successes, B' has keys that do not protect, C can
// be asked, C-strict can be asked but not believed when it shows nothing, D
// offers nothing. A and B may be asked as well: A+C.
func Kind(p *v1alpha1.FenceProvider) string {
	asked := ""
	if p.Lookup != nil {
		asked = "C"
		if p.LookupLagSeconds == nil {
			asked = "C-strict"
		}
	}
	keyed := ""
	switch {
	case p.KeysProtect() && p.StoresErrors:
		keyed = "A"
	case p.KeysProtect():
		keyed = "B"
	case p.KeyTTLSeconds != nil && asked == "":
		return "B'"
	}
	switch {
	case keyed != "" && asked != "":
		return keyed + "+" + asked
	case keyed+asked == "":
		return "D"
	default:
		return keyed + asked
	}
}

// Kinds is the fence in one word, for people: stripe=A,mail=D, or Table, and
// empty where there is none.
func Kinds(spec *v1alpha1.QueueWorkerSpec) string {
	switch mode := spec.EffectiveFenceMode(); mode {
	case v1alpha1.FenceModeProxy:
	case v1alpha1.FenceModeTable:
		return string(mode)
	default:
		return ""
	}
	var kinds []string
	for i := range spec.Fence.Providers {
		p := &spec.Fence.Providers[i]
		kinds = append(kinds, p.Name+"="+Kind(p))
	}
	for i := range spec.Fence.Claims {
		kinds = append(kinds, spec.Fence.Claims[i].Name+"=D")
	}
	return strings.Join(kinds, ",")
}
