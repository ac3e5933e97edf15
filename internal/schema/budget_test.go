// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
)

const (
	// maxSize is how large the CRD may be as JSON, the form in which a
	// client-side apply keeps it in an annotation, of which 256 KiB fit. Half of
	// that leaves room for what a cluster's own tools annotate, and for more
	// fields; descriptions of Kubernetes' own types are left out already.
	maxSize = 128 << 10
	// maxRuleCost and maxTotalCost are far below what the API server accepts
	// (10 and 100 million), so that a bound which got lost is noticed.
	maxRuleCost  = 1_000_000
	maxTotalCost = 3_000_000
	// oldest is the oldest API server that must compile the rules.
	oldest = "1.33"
)

func TestSize(t *testing.T) {
	t.Parallel()
	var object any
	if err := yaml.Unmarshal(crd.QueueWorkers, &object); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of JSON", len(body))
	if len(body) > maxSize {
		t.Errorf("the CRD has %d bytes as JSON, at most %d are wanted", len(body), maxSize)
	}
}

// The API server's own check of a CRD: structural, legal defaults, rules that
// compile and cost little enough.
func TestTheAPIServerAcceptsTheCRD(t *testing.T) {
	t.Parallel()
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.QueueWorkers, &external); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, &internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{external.Spec.Versions[0].Name}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
		t.Error(err)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	env := environment.MustBaseEnvSet(version.MustParseGeneric(oldest))
	total, rules := uint64(0), 0
	visit(s.structural, "", func(path string, node *structuralschema.Structural) {
		results, err := cel.Compile(node, model.SchemaDeclType(node, path == ""), celconfig.PerCallLimit, env, cel.NewExpressionsEnvLoader())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, r := range results {
			rule := node.XValidations[i].Rule
			if r.Error != nil || r.MessageExpressionError != nil {
				t.Errorf("%s: does not compile on %s: %v %v", path, oldest, r.Error, r.MessageExpressionError)
			}
			if cost := max(r.MaxCost, r.MessageExpressionMaxCost); cost > maxRuleCost {
				t.Errorf("%s: the rule can cost %d, at most %d is wanted: %s", path, cost, maxRuleCost, rule)
			}
			total += r.MaxCost + r.MessageExpressionMaxCost
			rules++
		}
	})
	t.Logf("%d rules, %d in total", rules, total)
	if total > maxTotalCost {
		t.Errorf("all rules can cost %d, at most %d is wanted", total, maxTotalCost)
	}
	if rules < 30 {
		t.Errorf("only %d rules found", rules)
	}
}

// writes are what the API server judges: a new object, a change of its chain,
// and what our own controller writes most often.
func writes(t testing.TB) map[string]func() {
	t.Helper()
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	object, err := Decode([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	s.Complete(object)
	changed, reported := runtime.DeepCopyJSON(object), runtime.DeepCopyJSON(object)
	changed["spec"].(map[string]any)["timeouts"].(map[string]any)["jobSeconds"] = int64(31)
	reported["status"] = map[string]any{"ready": "1/1"}
	return map[string]func(){
		"create": func() { s.ValidateRules(context.Background(), object) },
		"change": func() { s.ValidateRulesUpdate(context.Background(), changed, object) },
		"status": func() { s.ValidateRulesUpdate(context.Background(), reported, object) },
	}
}

func BenchmarkRules(b *testing.B) {
	byName := writes(b)
	for _, name := range []string{"create", "change", "status"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				byName[name]()
			}
		})
	}
}

// A rule that holds is not compared with what it was before: that would cost a
// write of the status twice what a create costs.
func TestAStatusCostsNoMoreThanACreate(t *testing.T) {
	byName := writes(t)
	create := testing.AllocsPerRun(5, byName["create"])
	for _, name := range []string{"change", "status"} {
		if n := testing.AllocsPerRun(5, byName[name]); n > create*1.2 {
			t.Errorf("the rules take %.0f allocations for a %s, %.0f for a create", n, name, create)
		}
	}
}

func visit(s *structuralschema.Structural, path string, f func(string, *structuralschema.Structural)) {
	f(path, s)
	for name, child := range s.Properties {
		visit(&child, path+"."+name, f)
	}
	if s.Items != nil {
		visit(s.Items, path+"[]", f)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		visit(s.AdditionalProperties.Structural, path+"{}", f)
	}
}
