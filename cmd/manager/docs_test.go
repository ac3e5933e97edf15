// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/internal/managerconfig"
	"github.com/queueworker/operator/internal/metrics"
)

// The page of the manager states the defaults and the metrics; both are the
// program's.
func TestTheManualIsRight(t *testing.T) {
	content, err := os.ReadFile("../../docs/manager.md")
	if err != nil {
		t.Fatal(err)
	}
	manual := string(content)
	_, block, _ := strings.Cut(manual, "\n```yaml\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	stated, err := managerconfig.Decode([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(managerconfig.Default(), stated); diff != "" {
		t.Errorf("the defaults in docs/manager.md (program -, manual +):\n%s", diff)
	}
	keys := func(text []byte) (found []string) {
		for _, line := range strings.Split(string(text), "\n") {
			if key, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				found = append(found, key)
			}
		}
		slices.Sort(found)
		return found
	}
	all, err := yaml.Marshal(managerconfig.Default())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(keys(all), keys([]byte(block))); diff != "" {
		t.Errorf("docs/manager.md leaves fields out (program -, manual +):\n%s", diff)
	}

	registry := prometheus.NewRegistry()
	metrics.New(registry).SetFindings("shop", "pay", nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !strings.Contains(manual, "`"+family.GetName()) {
			t.Errorf("docs/manager.md does not mention %s", family.GetName())
		}
	}
}
