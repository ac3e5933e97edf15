// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// borrowed are the fields whose type is Kubernetes' own, with the words that
// lead to an explanation of what is below them.
var borrowed = []struct {
	path        []string
	explanation string
}{
	{[]string{"spec", "template"}, " Its fields: kubectl explain pod.spec."},
	{[]string{"spec", "strategy"}, " Its fields: kubectl explain deployment.spec.strategy."},
	{[]string{"spec", "monitor", "resources"}, " As in a container."},
	{[]string{"status", "conditions"}, " Their fields are those of every Kubernetes condition."},
}

// slim changes what is borrowed from Kubernetes. Its descriptions are four
// fifths of the CRD, which would then not fit into the annotation of a
// client-side apply. Its defaults would be written into the stored object, which
// then differs from the one in Git for ever.
func slim(root *schema) error {
	for _, b := range borrowed {
		field, err := at(root, b.path...)
		if err != nil {
			return err
		}
		own := field.Description
		walk(field, strip)
		field.Description = own + b.explanation
		if err := put(root, field, b.path...); err != nil {
			return err
		}
	}
	// Devices are for workers.
	if resources, err := at(root, "spec", "monitor", "resources"); err == nil {
		delete(resources.Properties, "claims")
	}
	template, err := at(root, "spec", "template")
	if err != nil {
		return err
	}
	if err := adapt(template); err != nil {
		return err
	}
	return put(root, template, "spec", "template")
}

// strip removes what only explains, what would be written into the object, and
// what is said twice.
func strip(s *schema) {
	s.Description = ""
	s.Default = nil
	if s.XListType != nil && *s.XListType == "atomic" {
		s.XListType = nil // lists are atomic unless they say otherwise
	}
	if s.XIntOrString {
		s.AnyOf = nil // "an integer or a string", which the extension says already
	}
}

// adapt makes the template's schema legal without defaults, and bounded.
func adapt(template *schema) error {
	podSpec, err := at(template, "spec")
	if err != nil {
		return err
	}
	// Ephemeral containers are never part of a template.
	delete(podSpec.Properties, "ephemeralContainers")

	// The key of a list map must be required or have a default. A pull secret
	// needs its name; two ports differ in a protocol that may be left out, so
	// that list is replaced as a whole.
	for name, field := range podSpec.Properties {
		switch name {
		case "imagePullSecrets":
			field.Items.Schema.Required = []string{"name"}
		case "containers", "initContainers":
			ports := field.Items.Schema.Properties["ports"]
			ports.XListType, ports.XListMapKeys = nil, nil
			field.Items.Schema.Properties["ports"] = ports
		}
		podSpec.Properties[name] = field
	}
	for _, b := range bounds {
		if err := bound(podSpec, b.path, b.limit); err != nil {
			return err
		}
	}
	return put(template, podSpec, "spec")
}

// bounds limit the lists and strings that rules read. The API server estimates
// the cost of a rule from the largest object that fits the schema; without
// bounds it refuses every rule that looks into a container.
var bounds = []struct {
	path  string
	limit int64
}{
	{"containers", 32},
	{"containers.*.name", 63},
	{"containers.*.env", 512},
	{"containers.*.env.*.name", 256},
	{"containers.*.volumeMounts", 128},
	{"containers.*.volumeMounts.*.name", 63},
	{"containers.*.volumeMounts.*.mountPath", 1024},
	{"initContainers", 32},
	{"initContainers.*.name", 63},
	{"initContainers.*.volumeMounts", 128},
	{"initContainers.*.volumeMounts.*.name", 63},
	{"initContainers.*.volumeMounts.*.mountPath", 1024},
	{"volumes", 128},
	{"volumes.*.name", 63},
	{"restartPolicy", 32},
}

func bound(s *schema, path string, limit int64) error {
	steps := strings.Split(path, ".")
	target, err := at(s, steps...)
	if err != nil {
		return err
	}
	if target.Type == "array" {
		target.MaxItems = &limit
	} else {
		target.MaxLength = &limit
	}
	return put(s, target, steps...)
}

// at finds the schema of a field; "*" stands for the items of a list.
func at(s *schema, steps ...string) (*schema, error) {
	for i, step := range steps {
		if step == "*" {
			if s.Items == nil || s.Items.Schema == nil {
				return nil, fmt.Errorf("%s is not a list", strings.Join(steps[:i], "."))
			}
			s = s.Items.Schema
			continue
		}
		next, ok := s.Properties[step]
		if !ok {
			return nil, fmt.Errorf("the schema has no field %s", strings.Join(steps[:i+1], "."))
		}
		s = &next
	}
	return s, nil
}

// put writes a field's schema back. Properties are values in a map, so every
// schema on the way is written again.
func put(s, field *schema, steps ...string) error {
	if len(steps) == 0 {
		*s = *field
		return nil
	}
	child, err := at(s, steps[0])
	if err != nil {
		return err
	}
	if err := put(child, field, steps[1:]...); err != nil {
		return err
	}
	if steps[0] != "*" {
		s.Properties[steps[0]] = *child
	}
	return nil
}

// walk visits a schema and everything below it.
func walk(s *schema, visit func(*schema)) {
	visit(s)
	for name, child := range s.Properties {
		walk(&child, visit)
		s.Properties[name] = child
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, visit)
	}
}
