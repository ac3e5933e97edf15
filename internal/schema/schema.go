// SPDX-License-Identifier: Apache-2.0

// Package schema judges a QueueWorker by its CustomResourceDefinition without a
// server, with the API server's own code. An object is judged in the order in
// which the API server does it: [Schema.UnknownFields], [Schema.Complete],
// [Schema.Validate], [Schema.ValidateRules]; each can be called by itself.
package schema

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
)

// Schema is the schema of one version of a resource. It is safe for concurrent
// use.
type Schema struct {
	structural *structuralschema.Structural
	shape      validation.SchemaValidator
	rules      *cel.Validator
}

// Load reads the CRD that this program was built with. The rules are compiled
// once in the life of a program.
func Load() (*Schema, error) { return load() }

var load = sync.OnceValues(func() (*Schema, error) { return Parse(crd.QueueWorkers) })

// Parse builds a schema from a CRD with one version.
func Parse(manifest []byte) (*Schema, error) {
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &external); err != nil {
		return nil, fmt.Errorf("the CRD cannot be read: %w", err)
	}
	if len(external.Spec.Versions) != 1 {
		return nil, errors.New("the CRD must have one version")
	}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, &internal, nil); err != nil {
		return nil, fmt.Errorf("the CRD cannot be converted: %w", err)
	}
	// With a single version the conversion moves its schema to the top.
	properties := internal.Spec.Validation
	structural, err := structuralschema.NewStructural(properties.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the CRD's schema is not structural: %w", err)
	}
	shape, _, err := validation.NewSchemaValidator(properties.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the CRD's schema cannot be used: %w", err)
	}
	return &Schema{
		structural: structural,
		shape:      shape,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Decode reads one YAML or JSON document as kubectl sends it: a key that
// appears twice is an error, whole numbers stay whole.
func Decode(document []byte) (map[string]any, error) {
	body, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	return object, nil
}
