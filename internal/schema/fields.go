// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Fields are the names that an object may use at a path such as
// spec.template.spec.containers[0], in order. There are none where the path does
// not exist or any name is allowed.
func (s *Schema) Fields(path string) []string {
	at := s.structural
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' }) {
		if at = descend(at, step); at == nil {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(at.Properties))
}

func descend(at *structuralschema.Structural, step string) *structuralschema.Structural {
	if strings.HasSuffix(step, "]") {
		return at.Items
	}
	next, known := at.Properties[step]
	if !known {
		return nil
	}
	return &next
}
