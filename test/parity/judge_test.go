// SPDX-License-Identifier: Apache-2.0

// Package parity holds the CRD's CEL rules and the Go rules to the same
// verdicts: on the cases, on each side of every edge, and on thousands of random
// objects, new and changed.
package parity

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/schema"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func loadSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// completed is what the API server would judge. An object that does not even
// have the right shape is a mistake of the test.
func completed(t testing.TB, s *schema.Schema, object map[string]any) map[string]any {
	t.Helper()
	object = runtime.DeepCopyJSON(object)
	if errs := s.UnknownFields(object); len(errs) > 0 {
		t.Fatalf("%v", errs)
	}
	s.Complete(object)
	if errs := s.Validate(object); len(errs) > 0 {
		t.Fatalf("%v\n%s", errs, yamlOf(object))
	}
	return object
}

// typed is the object as Go sees it.
func typed(t testing.TB, object map[string]any) *v1alpha1.QueueWorker {
	t.Helper()
	qw := &v1alpha1.QueueWorker{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, qw, true); err != nil {
		t.Fatal(err)
	}
	return qw
}

// celErrors judges a completed object by the CRD.
func celErrors(s *schema.Schema, object map[string]any) field.ErrorList {
	return s.ValidateRules(context.Background(), object)
}

// goErrors judges an object by the Go rules.
func goErrors(t testing.TB, object map[string]any) []timeoutchain.Finding {
	t.Helper()
	return timeoutchain.Blocking(admission.Validate(typed(t, object), admission.Options{}).Findings)
}

// celIDs are the rules that the CRD says are broken.
func celIDs(errs field.ErrorList) []string {
	var ids []string
	for _, err := range errs {
		ids = append(ids, ruleID(err.Detail))
	}
	return sorted(ids)
}

func ruleID(message string) string {
	id, _, _ := strings.Cut(message, ": ")
	return id
}

func goIDs(findings []timeoutchain.Finding) []string {
	var ids []string
	for _, f := range findings {
		ids = append(ids, f.Rule)
	}
	return sorted(ids)
}

func sorted(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
