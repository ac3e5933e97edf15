// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/internal/lint"
)

// malformedSpecs is the number of damaged documents. PARITY_MALFORMED asks for
// more: 700 hold more than 500 that the server refuses for their shape.
// PARITY_SEED asks for other ones.
const malformedSpecs = 200

// Documents that are sound but for one damage: the command line fails where the
// API server refuses, and only there.
func TestCommandLineRefusesTheShapesThatTheServerRefuses(t *testing.T) {
	client := discovery.NewDiscoveryClientForConfigOrDie(onServer(t).cluster.RESTConfig()).RESTClient()
	root := rootSchema(t)
	seed := fromEnv(t, "PARITY_SEED", 1)
	tally := map[string]*outcome{}
	for i := range fromEnv(t, "PARITY_MALFORMED", malformedSpecs) {
		g := newGenerator(uint64(seed + i))
		kind, text := malformed(g, i, root)
		remote := refusal(t, client, text)
		faults, local := lintVerdict(text)
		if tally[kind] == nil {
			tally[kind] = &outcome{}
		}
		tally[kind].count(remote, local)
		if (remote != nil) != local {
			t.Errorf("seed %d, %s: the server says %v, the command line %v\n%s", seed+i, kind, remote, faults, text)
		}
	}
	report(t, tally)
}

// outcome is how documents with one kind of damage were judged.
type outcome struct{ tried, refused, differs int }

func (o *outcome) count(remote error, local bool) {
	o.tried++
	if remote != nil {
		o.refused++
	}
	if (remote != nil) != local {
		o.differs++
	}
}

const (
	undamaged = "none"
	// mostlyLeftOut is no damage where null counts as left out, which is nearly everywhere.
	mostlyLeftOut = "null for what is optional"
)

// report prints the counts and fails where a kind of damage shows nothing.
func report(t *testing.T, tally map[string]*outcome) {
	t.Helper()
	var total outcome
	var table strings.Builder
	fmt.Fprintf(&table, "%-28s %6s %8s %8s\n", "damage", "tried", "refused", "differs")
	for _, kind := range sortedKeys(tally) {
		o := tally[kind]
		fmt.Fprintf(&table, "%-28s %6d %8d %8d\n", kind, o.tried, o.refused, o.differs)
		total.tried, total.refused, total.differs = total.tried+o.tried, total.refused+o.refused, total.differs+o.differs
		if kind != mostlyLeftOut && (o.refused == 0) != (kind == undamaged) {
			t.Errorf("%s: %d of %d are refused", kind, o.refused, o.tried)
		}
	}
	t.Logf("%s%-28s %6d %8d %8d", &table, "all", total.tried, total.refused, total.differs)
	if total.refused*2 < total.tried || total.refused == total.tried {
		t.Errorf("%d of %d are refused: both verdicts are wanted", total.refused, total.tried)
	}
}

func rootSchema(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.QueueWorkers, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// malformed makes a sound object and damages it. The kinds take turns.
func malformed(g *generator, turn int, root *apiextensionsv1.JSONSchemaProps) (kind, text string) {
	object := soundObject(g)
	switch i := turn % (len(damages) + 3); i {
	case len(damages):
		kind, text = "key twice", keyTwice(g, yamlOf(object))
	case len(damages) + 1:
		kind = "metadata"
		pick(g, metadataDamages...)(object, object["metadata"].(map[string]any))
		text = yamlOf(object)
	case len(damages) + 2:
		kind, text = undamaged, yamlOf(object)
	default:
		kind = damages[i].name
		spec := root.Properties["spec"]
		all := append(places(object["spec"].(map[string]any), &spec), place{object, "spec", &spec, true})
		all = slices.DeleteFunc(all, func(p place) bool { return !damages[i].fits(p) }) // never all of them
		damages[i].do(g, pick(g, all...))
		text = yamlOf(object)
	}
	return kind, text
}

// soundObject is a random object that breaks no rule, so that only its shape is
// judged.
func soundObject(g *generator) map[string]any {
	for {
		object := g.plain()
		report := lint.Judge([]lint.Input{lint.Read("sound.yaml", strings.NewReader(yamlOf(object)))}, lint.Options{})
		if report.Inputs[0].Objects[0].Verdict() == lint.Accept {
			return object
		}
	}
}

// refusal sends a document as it is, as a strict client does, and returns the
// API server's refusal. Nothing is stored.
func refusal(t *testing.T, client rest.Interface, text string) error {
	t.Helper()
	err := client.Post().AbsPath("/apis/queueworker.dev/v1alpha1/namespaces/default/queueworkers").
		Param("dryRun", "All").Param("fieldValidation", "Strict").
		SetHeader("Content-Type", "application/yaml").Body([]byte(text)).Do(context.Background()).Error()
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("%v\n%s", err, text)
	}
	return err
}

// lintVerdict says whether the command line fails, and why.
func lintVerdict(text string) (why []string, fails bool) {
	report := lint.Judge([]lint.Input{lint.Read("malformed.yaml", strings.NewReader(text))}, lint.Options{})
	for _, fault := range report.Faults() {
		why = append(why, fault.String())
	}
	counts := report.Counts()
	return why, len(why) > 0 || counts.Accepted != 1
}
