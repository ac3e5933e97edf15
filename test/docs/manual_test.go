// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
)

const manual = "docs/queueworker.md"

// TestManualHasEveryField looks for a row of a table for each field of ours.
func TestManualHasEveryField(t *testing.T) {
	text := read(t, manual)
	spec, status, found := strings.Cut(text, "## Fields of the status")
	if !found {
		t.Fatal("no section about the status")
	}
	expectRows(t, spec, fieldsOf("", reflect.TypeFor[v1alpha1.QueueWorkerSpec]()))
	expectRows(t, status, fieldsOf("", reflect.TypeFor[v1alpha1.QueueWorkerStatus]()))
}

// TestManualHasNoOtherField finds rows about fields that no longer exist.
func TestManualHasNoOtherField(t *testing.T) {
	text := read(t, manual)
	_, tables, _ := strings.Cut(text, "## Fields of the spec")
	tables, _, _ = strings.Cut(tables, "## What is made from it")
	known := fieldsOf("", reflect.TypeFor[v1alpha1.QueueWorkerSpec]())
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		if !slices.Contains(known, name) {
			t.Errorf("the manual describes spec.%s, which does not exist", name)
		}
	}
}

// fieldsOf lists the fields of our own types, by their path. Types of
// Kubernetes, such as the pod template, are documented by Kubernetes.
func fieldsOf(prefix string, of reflect.Type) []string {
	var paths []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		paths = append(paths, prefix+name)
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath() {
			paths = append(paths, fieldsOf(prefix+name+".", inner)...)
		}
	}
	return paths
}

// TestManualHasEveryConditionAndReason reads the constants where they are
// declared, so that a new one cannot be forgotten.
func TestManualHasEveryConditionAndReason(t *testing.T) {
	text := read(t, manual)
	_, conditions, found := strings.Cut(text, "## Conditions")
	if !found {
		t.Fatal("no section about conditions")
	}
	conditions, events, found := strings.Cut(conditions, "## Events")
	if !found {
		t.Fatal("no section about events")
	}
	api := constantsOf(t, "api/v1alpha1")
	for name, value := range api {
		switch {
		case strings.HasPrefix(name, "Condition") && !strings.Contains(conditions, "\n### "+value+"\n"):
			t.Errorf("the manual has no section about the condition %s", value)
		case strings.HasPrefix(name, "Reason"):
			expectRows(t, conditions, []string{value})
		}
	}
	for _, state := range v1alpha1.States() {
		expectRows(t, conditions, []string{string(state)})
	}
	expectRows(t, events, reasonsOfConditionsTold)
	for _, reason := range v1alpha1.KillReasons() {
		expectRows(t, events, []string{string(reason)})
	}
	ofEvents := constantsOf(t, "internal/status", "controllers")
	for _, name := range slices.Sorted(maps.Keys(ofEvents)) {
		if strings.HasPrefix(name, "Reason") || strings.HasPrefix(name, "Event") {
			expectRows(t, events, []string{ofEvents[name]})
		}
	}
}

// reasonsOfConditionsTold are the reasons of conditions that become events too.
var reasonsOfConditionsTold = []string{
	v1alpha1.ReasonRollingOut, v1alpha1.ReasonChainBroken, v1alpha1.ReasonDeploymentRefused, v1alpha1.ReasonForeignObject,
	v1alpha1.ReasonProgressDeadlineExceeded, v1alpha1.ReasonImageUnavailable, v1alpha1.ReasonAdmittedWithLess, v1alpha1.ReasonDrainOverdue,
	v1alpha1.ReasonPreflightRefused, v1alpha1.ReasonPreflightWarned,
	v1alpha1.ReasonFenceUnready, v1alpha1.ReasonFenceFailed, v1alpha1.ReasonFenceServing,
	string(v1alpha1.StateStuck), string(v1alpha1.StateStopped), string(v1alpha1.StateUnknown), v1alpha1.ReasonMonitorSilent,
}

// constantsOf are the exported string constants of packages, by name.
func constantsOf(t *testing.T, packages ...string) map[string]string {
	t.Helper()
	constants := map[string]string{}
	for _, directory := range packages {
		files, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s", directory)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			collect(t, file, constants)
		}
	}
	if len(constants) == 0 {
		t.Fatalf("no constants in %v", packages)
	}
	return constants
}

func collect(t *testing.T, file string, constants map[string]string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !spec.Names[i].IsExported() {
				continue
			}
			if text, err := strconv.Unquote(literal.Value); err == nil {
				constants[spec.Names[i].Name] = text
			}
		}
		return true
	})
}

func expectRows(t *testing.T, text string, names []string) {
	t.Helper()
	for _, name := range names {
		if !strings.Contains(text, "\n| `"+name+"` |") {
			t.Errorf("the manual has no row about %s", name)
		}
	}
}
