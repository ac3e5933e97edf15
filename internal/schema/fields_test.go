// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"
	"testing"
)

func TestFields(t *testing.T) {
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                  "spec",
		"spec":                              "timeouts",
		"spec.timeouts":                     "jobSeconds",
		"spec.template.spec.containers[2]":  "image",
		"spec.template.spec.containers[12]": "livenessProbe",
	} {
		if got := s.Fields(path); !slices.Contains(got, want) || !slices.IsSorted(got) {
			t.Errorf("Fields(%q) = %v, want %s among them, in order", path, got, want)
		}
	}
	for _, path := range []string{"spec.timeouts.jobSeconds", "spec.nowhere", "spec.timeouts[0]", "spec.queue.names[0]"} {
		if got := s.Fields(path); len(got) != 0 {
			t.Errorf("Fields(%q) = %v, want none", path, got)
		}
	}
}
