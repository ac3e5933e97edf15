// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
)

const head = "apiVersion: queueworker.dev/v1alpha1\nkind: QueueWorker\n"

const minimal = head + `
metadata: {name: payments}
spec:
  queue: {connection: redis}
  timeouts: {jobSeconds: 30, retryAfterSeconds: 90}
  template: {spec: {containers: [{name: worker, image: registry.example/shop:1.4.2}]}}
`

func loaded(t *testing.T, document string) (*Schema, map[string]any) {
	t.Helper()
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	object, err := Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return s, object
}

func paths(errs field.ErrorList) []string {
	var found []string
	for _, err := range errs {
		found = append(found, err.Field)
	}
	slices.Sort(found)
	return found
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	s, object := loaded(t, strings.NewReplacer(
		"name: payments", "name: payments, lables: {a: b}",
		"jobSeconds", "jobTimeout: 5, jobSeconds",
		"image:", "imagePolicy: Always, image:",
	).Replace(minimal))
	before := runtime.DeepCopyJSON(object)
	want := []string{"metadata.lables", "spec.template.spec.containers[0].imagePolicy", "spec.timeouts.jobTimeout"}
	if got := paths(s.UnknownFields(object)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !reflect.DeepEqual(before, object) {
		t.Error("the object was changed")
	}
	s.Complete(object)
	if got := paths(s.UnknownFields(object)); !slices.Equal(got, want[:1]) {
		t.Errorf("not dropped: %v", got)
	}
}

func TestNothingIsWrittenInManyWays(t *testing.T) {
	t.Parallel()
	s, want := loaded(t, minimal)
	s.Complete(want)
	_, object := loaded(t, strings.NewReplacer(
		"spec:\n", "status: {chain: made up}\nspec:\n  drain:\n  retries: null\n  fence: {}\n  runtime: null\n",
		"jobSeconds", "httpSeconds: null, jobSeconds",
	).Replace(minimal))
	s.Complete(object)
	if !reflect.DeepEqual(object, want) {
		t.Errorf("\n%v, want\n%v", object, want)
	}
}

// Each object has one fault of shape, and its path is reported.
func TestShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, path string }{
		"number as text":            {"jobSeconds: 30", `jobSeconds: "30"`, "spec.timeouts.jobSeconds"},
		"half a second":             {"jobSeconds: 30", "jobSeconds: 30.5", "spec.timeouts.jobSeconds"},
		"below the minimum":         {"jobSeconds: 30", "jobSeconds: -1", "spec.timeouts.jobSeconds"},
		"above the maximum":         {"jobSeconds: 30", "jobSeconds: 31536001", "spec.timeouts.jobSeconds"},
		"past int32":                {"jobSeconds: 30", "jobSeconds: 3000000000", "spec.timeouts.jobSeconds"},
		"missing":                   {"jobSeconds: 30,", "", "spec.timeouts.jobSeconds"},
		"null where it is required": {"jobSeconds: 30", "jobSeconds: null", "spec.timeouts.jobSeconds"},
		"no queue":                  {"  queue: {connection: redis}\n", "", "spec.queue"},
		"unknown runtime":           {"spec:\n", "spec:\n  runtime: Symfony\n", "spec.runtime"},
		"fence of a later release":  {"spec:\n", "spec:\n  fence: {mode: Ledger}\n", "spec.fence.mode"},
		"connection with a blank":   {"connection: redis", `connection: "a b"`, "spec.queue.connection"},
		"empty connection":          {"connection: redis", `connection: ""`, "spec.queue.connection"},
		"queue with a comma":        {"connection: redis", `connection: redis, names: ["a,b"]`, "spec.queue.names[0]"},
		"too many queues":           {"connection: redis", "connection: redis, names: [" + strings.Repeat("a, ", 33) + "]", "spec.queue.names"},
		"container twice":           {"containers: [", "containers: [{name: worker}, ", "spec.template.spec.containers[1]"},
		"variable twice":            {"image:", "env: [{name: A}, {name: A}], image:", "spec.template.spec.containers[0].env[1]"},
		"pull secret without name":  {"{spec: {containers", "{spec: {imagePullSecrets: [{}], containers", "spec.template.spec.imagePullSecrets[0].name"},
		"memory is no quantity":     {"image:", "resources: {limits: {memory: lots}}, image:", "spec.template.spec.containers[0].resources.limits.memory"},
		"neither number nor text":   {"spec:\n", "spec:\n  podDisruptionBudget: {maxUnavailable: true}\n", "spec.podDisruptionBudget.maxUnavailable"},
		"surge of true":             {"spec:\n", "spec:\n  strategy: {rollingUpdate: {maxSurge: true}}\n", "spec.strategy.rollingUpdate.maxSurge"},
		"name in capitals":          {"name: payments", "name: Payments", "metadata.name"},
		"other version":             {"v1alpha1", "v1", "apiVersion"},
		"other kind":                {"kind: QueueWorker", "kind: Queueworker", "kind"},
		"label with a blank":        {"name: payments", `name: payments, labels: {a: "b c"}`, "metadata.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(minimal, c.old) {
				t.Fatalf("%q is not in the object", c.old)
			}
			s, object := loaded(t, strings.Replace(minimal, c.old, c.new, 1))
			s.Complete(object)
			errs := s.Validate(object)
			if !slices.Contains(paths(errs), c.path) {
				t.Errorf("%v, want a fault at %s", errs, c.path)
			}
		})
	}
}

func TestNumbersAndTextsThatFit(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		minimal,
		strings.Replace(minimal, "jobSeconds: 30", "jobSeconds: 30.0", 1),
		strings.Replace(minimal, "spec:\n", "spec:\n  podDisruptionBudget: {maxUnavailable: 25%}\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n", 1),
		strings.Replace(minimal, "image:", "ports: [{containerPort: 80}, {containerPort: 80}], image:", 1), // atomic: no keys
		strings.Replace(minimal, "image:", "resources: {limits: {memory: 0.5Gi, cpu: 1}}, image:", 1),
	} {
		s, object := loaded(t, document)
		s.Complete(object)
		if errs := append(s.Validate(object), s.ValidateRules(context.Background(), object)...); len(errs) > 0 {
			t.Errorf("%v\n%s", errs, document)
		}
	}
}

func TestNameMustFitALabel(t *testing.T) {
	t.Parallel()
	for length, fits := range map[int]bool{63: true, 64: false} {
		s, object := loaded(t, strings.Replace(minimal, "payments", strings.Repeat("a", length), 1))
		s.Complete(object)
		errs := s.ValidateRules(context.Background(), object)
		if fits != (len(errs) == 0) {
			t.Errorf("%d characters: %v", length, errs)
		}
		if !fits && len(s.ValidateRulesUpdate(context.Background(), object, object)) > 0 {
			t.Errorf("an old name of %d characters stands in the way of a change", length)
		}
	}
}

// A shape that an older schema let pass does not stand in the way of a change
// elsewhere.
func TestAnUnchangedShapePasses(t *testing.T) {
	t.Parallel()
	s, old := loaded(t, strings.Replace(minimal, "connection: redis", `connection: "a b", driver: Redis`, 1))
	s.Complete(old)
	now := runtime.DeepCopyJSON(old)
	now["spec"].(map[string]any)["replicas"] = int64(2)
	if len(s.Validate(now)) == 0 {
		t.Error("a new object passes")
	}
	if errs := s.ValidateUpdate(now, old); len(errs) > 0 {
		t.Error(errs)
	}
	now["spec"].(map[string]any)["queue"] = map[string]any{"connection": "a  b"}
	if len(s.ValidateUpdate(now, old)) == 0 {
		t.Error("a changed one passes")
	}
}

// What the schema writes into an object is what the accessors say without it,
// since the command line and the controller may see an object without defaults.
func TestDefaultsAreThoseOfTheAccessors(t *testing.T) {
	t.Parallel()
	s, object := loaded(t, minimal)
	found := map[string]any{}
	visit(s.structural, "", func(path string, node *structuralschema.Structural) {
		if node.Default.Object != nil {
			found[path] = node.Default.Object
		}
	})
	bare := &v1alpha1.QueueWorkerSpec{}
	want := map[string]any{
		".spec.runtime":             string(bare.EffectiveRuntime()),
		".spec.replicas":            int64(bare.EffectiveReplicas()),
		".spec.drain.graceOutlasts": string(bare.EffectiveGraceOutlasts()),
		".spec.fence.mode":          string(bare.EffectiveFenceMode()),
		".spec.retries":             map[string]any{},
		".spec.locks":               map[string]any{},
		".spec.worker":              map[string]any{},
		".spec.drain":               map[string]any{},
		".spec.fence":               map[string]any{},
		".spec.preflight":           map[string]any{},
		".status":                   map[string]any{"observedGeneration": int64(-1)},
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("the schema has the defaults\n%v, want\n%v", found, want)
	}

	s.Complete(object)
	spec := object["spec"].(map[string]any)
	if got := slices.Sorted(maps.Keys(spec)); !slices.Equal(got,
		[]string{"drain", "fence", "locks", "preflight", "queue", "replicas", "retries", "runtime", "template", "timeouts", "worker"}) {
		t.Errorf("%v", got)
	}
	if status := object["status"]; !reflect.DeepEqual(status, map[string]any{"observedGeneration": int64(-1)}) {
		t.Errorf("status %v", status)
	}
}
