// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/hack/chart/render"
)

type schema struct {
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties any                `json:"additionalProperties"`
}

// The schema knows each value, and none that does not exist.
func TestTheSchemaKnowsTheValues(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal(read(t, render.Folder+"/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	var of schema
	if err := json.Unmarshal(read(t, render.Folder+"/values.schema.json"), &of); err != nil {
		t.Fatal(err)
	}
	delete(of.Properties, "global") // Helm adds it
	compare(t, "", values, &of)
}

func compare(t *testing.T, path string, values map[string]any, of *schema) {
	t.Helper()
	if of.AdditionalProperties != false {
		t.Errorf("%s: unknown values are not refused", path)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(of.Properties))); diff != "" {
		t.Errorf("below %q (values.yaml -, schema +):\n%s", path, diff)
	}
	for name, value := range values {
		below, isMap := value.(map[string]any)
		if part := of.Properties[name]; isMap && part != nil && len(part.Properties) > 0 && len(below) > 0 {
			compare(t, path+name+".", below, part)
		}
	}
}

func TestTheSchemaRefuses(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"a value that is unknown":   {"replica: 2", "replica"},
		"one that is, further down": {"webhook: {certificates: {name: a}}", "name"},
		"no manager":                {"replicas: 0", "replicas"},
		"text for a number":         {"replicas: two", "replicas"},
		"a policy":                  {"webhook: {failurePolicy: ignore}", "failurePolicy"},
		"a timeout":                 {"webhook: {timeoutSeconds: 31}", "timeoutSeconds"},
		"a mode":                    {"webhook: {certificates: {mode: Self}}", "mode"},
		"provided without a Secret": {`{webhook: {certificates: {mode: provided, caBundle: "-----BEGIN CERTIFICATE-----"}}}`, "secretName"},
		"a bundle that is no PEM":   {"webhook: {certificates: {caBundle: LS0t}}", "caBundle"},
		"a namespace":               {"watchNamespaces: [Shop]", "watchNamespaces"},
		"a namespace twice":         {"watchNamespaces: [shop, shop]", "watchNamespaces"},
		"a cap":                     {"caps: {gracePeriodSeconds: 0}", "gracePeriodSeconds"},
		"a cap that is too large":   {"caps: {gracePeriodSeconds: 31536001}", "gracePeriodSeconds"},
		"a tag in the repository":   {"image: {repository: operator:v1}", "repository"},
		"a digest":                  {"image: {digest: v1}", "digest"},
		"a level":                   {"logging: {level: warn}", "level"},
		"a label that is a number":  {"podLabels: {a: 1}", "podLabels"},
		"a reader without a place":  {"metrics: {readers: [{name: a}]}", "namespace"},
		"an interval":               {"metrics: {serviceMonitor: {interval: 30}}", "interval"},
		"a budget":                  {"podDisruptionBudget: {maxUnavailable: many}", "maxUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t).Render(render.Default, c.values)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %s", err, c.want)
			}
		})
	}
}

func TestTheSchemaTakes(t *testing.T) {
	for _, values := range []string{
		"image: {repository: 'registry.example:5000/queueworker/operator'}", "podDisruptionBudget: {maxUnavailable: 50%}",
		"caps: {gracePeriodSeconds: 31536000}", "global: {anything: 1}",
	} {
		if _, err := load(t).Render(render.Default, values); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestReadmeListsEveryValue(t *testing.T) {
	text, err := readme([]byte("# about the file\n\n# How many.\nreplicas: 2\nimage:\n  # Where\n  # it is.\n  repository: a|b\n# What is asked for.\nresources:\n  limits: {memory: 1Gi}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| `replicas` | `2` | How many. |", "| `image.repository` | `\"a|b\"` | Where it is. |", "| `resources` | `{\"limits\":{\"memory\":\"1Gi\"}}` | What is asked for. |"} {
		if !strings.Contains(text, row+"\n") {
			t.Errorf("no row %s in\n%s", row, text)
		}
	}
	if _, err := readme([]byte("# How many.\nreplicas: 2\nother: 1\n")); err == nil || !strings.Contains(err.Error(), "values.yaml:3: other has no comment") {
		t.Errorf("a value without a comment: %v", err)
	}
}
