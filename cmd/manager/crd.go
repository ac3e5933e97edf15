// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

const crdName = "queueworkers." + v1alpha1.GroupName

// missingFields are the fields of the Go types that the installed CRD does not
// know. Writing one of them fails, so a manager must not start on an older CRD.
// Types of other packages, such as the pod template, are not compared.
func missingFields(crd *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	for _, v := range crd.Spec.Versions {
		if v.Name != v1alpha1.SchemeGroupVersion.Version || !v.Served {
			continue
		}
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, fmt.Errorf("the CRD %s has no schema", crd.Name)
		}
		var missing []string
		for _, part := range []struct {
			name string
			of   any
		}{{"spec", v1alpha1.QueueWorkerSpec{}}, {"status", v1alpha1.QueueWorkerStatus{}}} {
			schema := v.Schema.OpenAPIV3Schema.Properties[part.name]
			missing = append(missing, compare(part.name, reflect.TypeOf(part.of), schema)...)
		}
		return missing, nil
	}
	return nil, fmt.Errorf("the CRD %s does not serve version %s", crd.Name, v1alpha1.SchemeGroupVersion.Version)
}

func compare(path string, of reflect.Type, schema apiextensionsv1.JSONSchemaProps) []string {
	var missing []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property, known := schema.Properties[name]
		switch inner := dereference(field.Type); {
		case name == "" || name == "-":
		case !known:
			missing = append(missing, path+"."+name)
		case inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath():
			missing = append(missing, compare(path+"."+name, inner, property)...)
		}
	}
	return missing
}

func dereference(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
