// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
)

func TestTheCRDOfThisVersionIsNotOld(t *testing.T) {
	missing, err := missingFields(installedCRD(t))
	if err != nil || len(missing) > 0 {
		t.Errorf("missing %v, %v; run make generate", missing, err)
	}
}

func TestAnOlderCRDIsFound(t *testing.T) {
	for _, path := range []string{
		"status.terminatingReplicas", "spec.fence", "spec.timeouts.httpSeconds",
		"spec.drain.beforeStop.timeoutSeconds", "spec.template",
	} {
		old := installedCRD(t)
		forget(t, old, path)
		missing, err := missingFields(old)
		if err != nil || !slices.Equal(missing, []string{path}) {
			t.Errorf("without %s: missing %v, %v", path, missing, err)
		}
	}
}

func TestACRDThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinitionVersion)
		want   string
	}{
		"other version": {func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Name = "v1" }, "does not serve version v1alpha1"},
		"not served":    {func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Served = false }, "does not serve version v1alpha1"},
		"no schema":     {func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Schema = nil }, "has no schema"},
	} {
		old := installedCRD(t)
		c.change(&old.Spec.Versions[0])
		if _, err := missingFields(old); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
	}
}

func installedCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	installed := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(crd.QueueWorkers, installed); err != nil {
		t.Fatal(err)
	}
	return installed
}

func forget(t *testing.T, installed *apiextensionsv1.CustomResourceDefinition, path string) {
	t.Helper()
	properties := installed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		properties = properties[name].Properties
	}
	last := names[len(names)-1]
	if _, ok := properties[last]; !ok {
		t.Fatalf("the CRD has no %s", path)
	}
	delete(properties, last)
}
