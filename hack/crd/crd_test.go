// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Every error that one object can decide is in the CRD, and nothing else.
func TestEveryErrorHasARule(t *testing.T) {
	t.Parallel()
	var have, want []string
	for _, r := range rules() {
		have = append(have, r.id)
	}
	for _, r := range timeoutchain.Declarable() {
		if r.InTheCRD() {
			want = append(want, r.ID)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if have = slices.Compact(have); !slices.Equal(have, want) {
		t.Errorf("the CRD has %v, the registry %v", have, want)
	}
}

func root(t *testing.T) *schema {
	t.Helper()
	var manifest apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.QueueWorkers, &manifest); err != nil {
		t.Fatal(err)
	}
	return manifest.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestRulesShowAtFieldsThatExist(t *testing.T) {
	t.Parallel()
	spec := root(t)
	for _, r := range rules() {
		if _, err := at(spec, append([]string{"spec"}, strings.Split(r.field, ".")...)...); err != nil {
			t.Errorf("%s: %v", r.id, err)
		}
	}
}

func TestBorrowedSchemasAreSlim(t *testing.T) {
	t.Parallel()
	spec := root(t)
	for _, b := range borrowed {
		field, err := at(spec, b.path...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(field.Description, strings.TrimSpace(b.explanation)) {
			t.Errorf("%v does not say where its fields are explained: %s", b.path, field.Description)
		}
		own := field.Description
		walk(field, func(s *schema) {
			if s.Default != nil || s.Description != "" && s.Description != own {
				t.Errorf("%v: a default or a description below it: %s", b.path, s.Description)
			}
		})
	}
	pod, err := at(spec, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	if _, there := pod.Properties["ephemeralContainers"]; there {
		t.Error("ephemeralContainers are part of a template")
	}
	for _, b := range bounds {
		field, err := at(pod, strings.Split(b.path, ".")...)
		if err != nil {
			t.Fatal(err)
		}
		if field.MaxItems == nil && field.MaxLength == nil {
			t.Errorf("%s has no bound", b.path)
		}
	}
}

// What is finished already must not change when it is finished once more, but
// for the rules, which would be there twice.
func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	first, err := finish(crd.QueueWorkers)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := finish(crd.QueueWorkers)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("two runs differ")
		}
	}
}

func TestAnotherSchemaIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new string }{
		"no template":   {"template:", "pattern:"},
		"no env":        {"env:", "environment:"},
		"unknown field": {"apiVersion: apiextensions", "oops: 1\napiVersion: apiextensions"},
		"not YAML":      {"kind: Cust", "\tkind: Cust"},
		"no conditions": {"conditions:", "states:"},
	} {
		broken := bytes.ReplaceAll(crd.QueueWorkers, []byte(c.old), []byte(c.new))
		if _, err := finish(broken); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	v := vocabulary{
		"one":    "self.one",
		"long":   "self.a.very.long.path.of.a.number",
		"double": "($one * $long + $one * $long)",
	}
	for expression, want := range map[string]string{
		"$one + $one > 1":   "self.one + self.one > 1",
		"$long > 1":         "self.a.very.long.path.of.a.number > 1",
		"$long > $one":      "self.a.very.long.path.of.a.number > self.one",
		"$double > $double": "[self.a.very.long.path.of.a.number].all(long, [(self.one * long + self.one * long)].all(double, double > double))",
	} {
		if got := v.condition(expression); got != want {
			t.Errorf("%s is\n%s, want\n%s", expression, got, want)
		}
	}
	for text, want := range map[string]string{
		"it's plain":           `'it\'s plain'`,
		"{$one} of {$one}":     "'%s of %s'.format([self.one, self.one])",
		"{$long} and {$long}!": "[self.a.very.long.path.of.a.number].map(long, '%s and %s!'.format([long, long]))[0]",
	} {
		if got := v.message(text); got != want {
			t.Errorf("%s is\n%s, want\n%s", text, got, want)
		}
	}
}

// A rule goes on one part of the spec where it and its text read nothing else.
func TestPlace(t *testing.T) {
	t.Parallel()
	r := rule{id: "x", holds: "self.timeouts.a < self.timeouts.b", text: "{self.timeouts.a}", field: "timeouts.a"}
	place, v := r.validation(timeoutchain.SectionTimeouts)
	if strings.Join(place, ".") != "spec.timeouts" || v.Rule != "self.a < self.b" || v.FieldPath != ".a" || v.OptionalOldSelf != nil {
		t.Errorf("%v %+v", place, v)
	}
	r.text = "{self.queue.names}"
	place, v = r.validation(timeoutchain.SectionTimeouts)
	const want = "(self.timeouts.a < self.timeouts.b) || oldSelf.optMap(old, old.timeouts == self.timeouts).orValue(false)"
	if strings.Join(place, ".") != "spec" || v.Rule != want || v.FieldPath != ".timeouts.a" || v.OptionalOldSelf == nil {
		t.Errorf("%v %+v", place, v)
	}
	if _, v = r.validation(timeoutchain.SectionTimeouts | timeoutchain.SectionQueue); !strings.Contains(v.Rule, "old.queue == self.queue && old.timeouts == self.timeouts") {
		t.Error(v.Rule)
	}
}
