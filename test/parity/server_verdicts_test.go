// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/internal/schema"
	"github.com/queueworker/operator/test/cases"
)

// serverSpecs is the number of random objects for the real API server;
// PARITY_SERVER_SPECS asks for more.
const serverSpecs = 300

func TestServerSaysWhatTheRulesSayInProcess(t *testing.T) {
	server, s := onServer(t), loadSchema(t)
	seed := fromEnv(t, "PARITY_SEED", 1)
	refused := 0
	for i := range fromEnv(t, "PARITY_SERVER_SPECS", serverSpecs) {
		raw := newGenerator(uint64(seed + i)).object()
		local := texts(celErrors(s, completed(t, s, raw)))
		if remote := said(causes(t, server.try(raw))); !slices.Equal(remote, local) {
			t.Fatalf("seed %d: the server says\n%s\nin process\n%s", seed+i, strings.Join(remote, "\n"), strings.Join(local, "\n"))
		}
		if len(local) > 0 {
			refused++
		}
	}
	t.Logf("%d refused", refused)
}

// texts are errors as the API server reports them.
func texts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		path := err.Field
		if path == "" {
			path = "<nil>"
		}
		all = append(all, path+": "+err.ErrorBody())
	}
	slices.Sort(all)
	return all
}

func TestServerOnCases(t *testing.T) {
	server := onServer(t)
	all, err := cases.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		object, err := schema.Decode(c.Input)
		if err != nil {
			t.Fatal(err)
		}
		object["metadata"].(map[string]any)["namespace"] = "default"
		var ids []string
		for _, cause := range causes(t, server.try(object)) {
			_, message, _ := strings.Cut(cause.Message, ": ")
			ids = append(ids, ruleID(message))
		}
		if (c.Verdict == cases.Reject) != (len(ids) > 0) {
			t.Errorf("%s: want %s, broken are %v", c.Name, c.Verdict, ids)
		}
		for _, id := range c.Rules {
			if c.Verdict == cases.Reject && !slices.Contains(ids, id) {
				t.Errorf("%s: %s is not among %v", c.Name, id, ids)
			}
		}
	}
}

// Shapes that are easily judged in another way: numbers, nulls, missing parts,
// doubled keys.
func TestServerSaysWhatTheSchemaSaysInProcess(t *testing.T) {
	server, s := onServer(t), loadSchema(t)
	for _, c := range []struct{ old, new string }{
		{"30", "30"},
		{"30", `"30"`},
		{"30", "30.5"},
		{"30", "-1"},
		{"30", "31536001"},
		{"30", "3000000000"},
		{"30", "null"},
		{"httpSeconds: 20", "httpSeconds: null"},
		{"30", "true"},
		{"connection: redis", "connection: null"},
		{"connection: redis", "connection: redis, names: []"},
		{"connection: redis", "connection: redis, names: null"},
		{"connection: redis", `connection: redis, names: ["a,b"]`},
		{"connection: redis", `connection: redis, driver: ""`},
		{"connection: redis", "connection: 5"},
		{"spec:\n", "spec:\n  drain:\n  locks: null\n"},
		{"spec:\n", "spec:\n  drain: {beforeStop: {command: []}}\n"},
		{"spec:\n", "spec:\n  runtime: Symfony\n"},
		{"spec:\n", "spec:\n  replicas: null\n"},
		{"spec:\n", "spec:\n  podDisruptionBudget: {}\n"},
		{"spec:\n", "spec:\n  podDisruptionBudget: {maxUnavailable: true}\n"},
		{"spec:\n", "spec:\n  podDisruptionBudget: {maxUnavailable: 25%}\n"},
		{"spec:\n", "spec:\n  strategy: {rollingUpdate: {maxSurge: true}}\n"},
		{"image:", "resources: {limits: {memory: lots}}, image:"},
		{"image:", "resources: {limits: {memory: 1}}, image:"},
		{"image:", "env: [{name: A}, {name: A}], image:"},
		{"image:", "env: [{value: A}], image:"},
		{"image:", "ports: [{containerPort: 80}, {containerPort: 80}], image:"},
		{"containers: [", "containers: [{name: worker}, "},
		{"{spec: {containers", "{spec: {imagePullSecrets: [{}], containers"},
		{"{spec: {containers", "{metadata: {labels: null, annotations: {a: null}}, spec: {containers"},
		{"template: {spec", "template: {spec: null, ignored"},
	} {
		document := bytes.Replace([]byte(sound), []byte(c.old), []byte(c.new), 1)
		raw, err := schema.Decode(document)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.new, "ignored") {
			delete(raw["spec"].(map[string]any)["template"].(map[string]any), "ignored")
		}
		object := runtime.DeepCopyJSON(raw)
		s.Complete(object)
		errs := s.Validate(object)
		if !blocksRules(errs) {
			errs = append(errs, s.ValidateRules(context.Background(), object)...)
		}
		remote := said(causes(t, server.try(raw)))
		remote = slices.DeleteFunc(remote, func(text string) bool { return strings.Contains(text, "some validation rules were not checked") })
		if local := texts(errs); !slices.Equal(remote, local) {
			t.Errorf("%s: the server says\n%s\nin process\n%s", c.new, strings.Join(remote, "\n"), strings.Join(local, "\n"))
		}
	}
}

// blocksRules says whether the API server would not run rules after these.
func blocksRules(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		default:
			return false
		}
	})
}
