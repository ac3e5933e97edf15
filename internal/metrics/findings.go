// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// findings counts, at each scrape, the QueueWorkers in which a rule finds
// something. It keeps what was found per object, so that a repaired or deleted
// object takes its series with it.
type findings struct {
	desc *prometheus.Desc

	mu       sync.Mutex
	byObject map[object]map[series]struct{}
}

type object struct{ namespace, name string }

type series struct{ rule, severity, namespace string }

func newFindings() *findings {
	return &findings{
		desc: prometheus.NewDesc("queueworker_chain_findings",
			"QueueWorkers in which the rule finds something now, by rule, severity (error or warning) and namespace. "+
				"No series where a rule finds nothing.",
			[]string{"rule", "severity", "namespace"}, nil),
		byObject: map[object]map[series]struct{}{},
	}
}

func (f *findings) set(namespace, name string, found []timeoutchain.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := object{namespace, name}
	if len(found) == 0 {
		delete(f.byObject, key)
		return
	}
	of := make(map[series]struct{}, len(found))
	for _, finding := range found {
		of[series{knownRule(finding.Rule), string(finding.Severity), namespace}] = struct{}{}
	}
	f.byObject[key] = of
}

// Describe implements prometheus.Collector.
func (f *findings) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }

// Collect implements prometheus.Collector.
func (f *findings) Collect(ch chan<- prometheus.Metric) {
	for s, n := range f.counts() {
		ch <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(n), s.rule, s.severity, s.namespace)
	}
}

func (f *findings) counts() map[series]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[series]int{}
	for _, of := range f.byObject {
		for s := range of {
			counts[s]++
		}
	}
	return counts
}
