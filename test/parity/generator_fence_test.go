// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"strings"

	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// fence declares a sidecar, also where the mode asks for none.
func (g *generator) fence(s *v1alpha1.QueueWorkerSpec, chain *timeoutchain.Chain) {
	f := &s.Fence
	if f.Mode != v1alpha1.FenceModeProxy && !g.chance(10) {
		return
	}
	if !g.slip() {
		f.Store = &v1alpha1.FenceStore{Type: pick(g, v1alpha1.FenceStorePostgreSQL, v1alpha1.FenceStoreMySQL), SecretRef: v1alpha1.FenceSecretRef{Name: "shop-fence"}}
	}
	if g.chance(20) {
		f.Table = &v1alpha1.FenceTable{Name: pick(g, "shop.charges", "charges_2")}
		if g.slip() {
			f.Table.Name = pick(g, "Charges", "shop.Charges", strings.Repeat("a", 49))
		}
	}
	if g.careful && s.Timeouts.HTTPSeconds == nil && s.Timeouts.JobSeconds > 5 && g.chance(70) {
		s.Timeouts.HTTPSeconds = ptr.To(atLeast(1, min(int64(s.Timeouts.JobSeconds)-1, 20)))
		chain.HTTP = timeoutchain.Of(int64(*s.Timeouts.HTTPSeconds))
	}
	for _, name := range []string{"stripe", "bank"} {
		if g.chance(80) {
			f.Providers = append(f.Providers, g.provider(name, chain))
		}
	}
	window, bounded := chain.RetryWindow()
	if bounded && g.chance(40) {
		failed := int64(g.IntN(100))
		f.Retention.FailedJobsSeconds = ptr.To(int32(failed))
		f.Retention.DoneSeconds = ptr.To(atLeast(1, window+int64(s.Timeouts.JobSeconds)+chain.Call()+failed+g.gap()-1))
	} else if g.chance(10) {
		f.Retention.DoneSeconds = ptr.To(int32(604_800 + g.IntN(2000)))
	}
}

func (g *generator) provider(name string, chain *timeoutchain.Chain) v1alpha1.FenceProvider {
	p := v1alpha1.FenceProvider{Name: name, URL: "https://" + name + ".example"}
	reply := max(chain.Call()-3, 1)
	if g.chance(40) {
		reply = int64(atLeast(1, chain.Call()-2-g.gap()))
		p.TimeoutSeconds = ptr.To(int32(reply))
	}
	flight := int64(300)
	if g.chance(40) {
		flight = int64(atLeast(1, reply+29+g.gap()))
		p.MaxInFlightSeconds = ptr.To(int32(flight))
	}
	if g.chance(50) {
		p.KeyTTLSeconds = ptr.To(atLeast(1, flight+1+g.gap()+pick(g, 0, chain.RetryAfter.Or(0))))
		p.StoresErrors = g.chance(60)
		if g.chance(50) {
			p.ActsOn5xx = ptr.To(g.chance(50))
		}
	}
	return p
}
