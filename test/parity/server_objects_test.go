// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/internal/schema"
)

func TestCRDIsAppliedClientSide(t *testing.T) {
	server := onServer(t)
	for range 2 {
		out, err := server.kubectl("apply", "-f", crdFile())
		if err != nil || !strings.Contains(out, "unchanged") {
			t.Errorf("%s %v", out, err)
		}
	}
}

// What is in Git and what is in the cluster do not differ.
func TestApplyTwiceChangesNothing(t *testing.T) {
	server := onServer(t)
	samples, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(samples) < 10 {
		t.Fatalf("%v %v", samples, err)
	}
	for _, file := range samples {
		for _, mode := range []string{"--server-side=false", "--server-side"} {
			mustKubectl(t, server, "apply", mode, "-f", file)
			// The default of status is stored by the first write of any kind after
			// the creation; in a cluster that is our own.
			mustKubectl(t, server, "label", "-f", file, "seen=yes")
			before := mustKubectl(t, server, "get", "-f", file, "-o", "custom-columns=V:.metadata.resourceVersion")
			if out := mustKubectl(t, server, "apply", mode, "-f", file); strings.Contains(out, "configured") {
				t.Errorf("%s: %s", file, out)
			}
			if after := mustKubectl(t, server, "get", "-f", file, "-o", "custom-columns=V:.metadata.resourceVersion"); after != before {
				t.Errorf("%s: version %s became %s by a second apply %s", file, before, after, mode)
			}
			if out, err := server.kubectl("diff", mode, "-f", file); err != nil || out != "" {
				t.Errorf("%s: kubectl diff %s: %v", file, mode, err)
			}
			mustKubectl(t, server, "delete", "-f", file)
		}
	}
}

func mustKubectl(t *testing.T, s *server, arguments ...string) string {
	t.Helper()
	out, err := s.kubectl(arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func create(t *testing.T, s *server, name, patch string) *unstructured.Unstructured {
	t.Helper()
	object := named(patched(t, patch), name)
	if err := s.Create(context.Background(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Delete(context.Background(), object) })
	return object
}

func TestANewObjectIsNotYetObserved(t *testing.T) {
	object := create(t, onServer(t), "unobserved", "")
	if status := object.Object["status"]; !reflect.DeepEqual(status, map[string]any{"observedGeneration": int64(-1)}) {
		t.Errorf("%v", status)
	}
}

func TestTheStoredObjectIsTheCompletedOne(t *testing.T) {
	server, s := onServer(t), loadSchema(t)
	for seed := range uint64(60) {
		raw := newGenerator(seed).object()
		want := runtime.DeepCopyJSON(raw)
		s.Complete(want)
		if len(celErrors(s, want)) > 0 {
			continue
		}
		got := named(raw, "stored")
		if err := server.Create(context.Background(), got, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Object["spec"], want["spec"]) {
			t.Fatalf("seed %d: stored\n%s\nin process\n%s", seed, yamlOf(got.Object["spec"]), yamlOf(want["spec"]))
		}
	}
}

// A text that looks like a number is none. kubectl sends 40.0 as 40; who sends
// it as it is gets no further than CEL, which knows no whole number with a point.
func TestNumbers(t *testing.T) {
	server, s := onServer(t), loadSchema(t)
	rest := discovery.NewDiscoveryClientForConfigOrDie(server.cluster.RESTConfig()).RESTClient()
	object := jsonOf(named(patched(t, ""), "number").Object)
	for number, accepted := range map[string]struct{ raw, kubectl bool }{
		"40": {true, true}, "40.0": {false, true}, "4e1": {false, true}, `"40"`: {}, "40.5": {},
	} {
		body := []byte(strings.Replace(object, `"jobSeconds":30`, `"jobSeconds":`+number, 1))
		err := rest.Post().AbsPath("/apis/queueworker.dev/v1alpha1/namespaces/default/queueworkers").
			Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body(body).Do(context.Background()).Error()
		if (err == nil) != accepted.raw {
			t.Errorf("%s: %v", number, err)
		}
		file := filepath.Join(t.TempDir(), "object.json")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := server.kubectl("create", "--dry-run=server", "-f", file); (err == nil) != accepted.kubectl {
			t.Errorf("%s with kubectl: %s %v", number, out, err)
		}
		local, err := schema.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		s.Complete(local)
		if errs := append(s.Validate(local), s.ValidateRules(context.Background(), local)...); (len(errs) == 0) != accepted.kubectl {
			t.Errorf("%s in process: %v", number, errs)
		}
	}
}

// An object that newer rules refuse can still be run: scaled, labelled, changed
// elsewhere, and reported on without a warning at each step.
func TestAnOldBrokenObjectStaysUsable(t *testing.T) {
	server := onServer(t)
	if server.cluster.Foreign() {
		t.Skip("changes the CRD, which is not done on your own cluster")
	}
	ctx := context.Background()
	server.setRules(t, false)
	object := create(t, server, "old", "timeouts: {jobSeconds: 60, retryAfterSeconds: 30}, "+
		"template: {spec: {containers: [{name: worker, command: [run]}], restartPolicy: Never}}")
	server.setRules(t, true)
	server.warnings.take()

	patch := func(body string) error {
		return server.Patch(ctx, object.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(body)))
	}
	for _, harmless := range []string{
		`{"metadata": {"labels": {"team": "shop"}}}`,
		`{"spec": {"replicas": 3}}`,
		`{"spec": {"locks": {"uniqueForSeconds": 300}, "podDisruptionBudget": {"maxUnavailable": 1}}}`,
	} {
		if err := patch(harmless); err != nil {
			t.Errorf("%s: %v", harmless, err)
		}
	}
	if out, err := server.kubectl("scale", "queueworker/old", "--replicas=5"); err != nil {
		t.Error(out, err)
	}
	server.warnings.take()
	if err := server.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); replicas != 5 {
		t.Errorf("%d replicas", replicas)
	}
	status := object.DeepCopy()
	_ = unstructured.SetNestedField(status.Object, "30>=60", "status", "chain")
	if err := server.Status().Update(ctx, status); err != nil {
		t.Errorf("status: %v", err)
	}
	t.Logf("warnings at a status write: %q", server.warnings.take())

	for body, want := range map[string]string{
		`{"spec": {"timeouts": {"terminationGracePeriodSeconds": 1000}}}`: "job-not-below-retry-after",
		`{"spec": {"template": {"spec": {"hostNetwork": true}}}}`:         "template-command template-restart-policy",
		`{"spec": {"runtime": "Horizon"}}`:                                "template-command",
	} {
		var ids []string
		for _, c := range causes(t, patch(body)) {
			_, message, _ := strings.Cut(c.Message, ": ")
			ids = append(ids, ruleID(message))
		}
		if got := strings.Join(sorted(ids), " "); got != want {
			t.Errorf("%s: refused by %q, want %q", body, got, want)
		}
	}
	if err := patch(`{"spec": {"timeouts": {"retryAfterSeconds": 65}, "template": {"spec": {"restartPolicy": null, "containers": [{"name": "worker"}]}}}}`); err != nil {
		t.Errorf("the repair: %v", err)
	}
}

// setRules switches the rules of the CRD off or on, and waits until the API
// server judges by it.
func (s *server) setRules(t *testing.T, on bool) {
	t.Helper()
	text := crd.QueueWorkers
	if !on {
		text = []byte(yamlOf(withoutRules(t)))
	}
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	mustKubectl(t, s, "apply", "-f", file)
	broken := patched(t, "timeouts: {jobSeconds: 60, retryAfterSeconds: 30}")
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return (s.try(broken) != nil) == on, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A part that another manager applies is judged together with the rest.
func TestServerSideApplyOfAPart(t *testing.T) {
	server := onServer(t)
	create(t, server, "part", "")
	part := func(retryAfter int64) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind,
			"metadata": map[string]any{"name": "part", "namespace": metav1.NamespaceDefault},
			"spec":     map[string]any{"timeouts": map[string]any{"retryAfterSeconds": retryAfter}},
		}}
		return server.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("tuner"), client.ForceOwnership)
	}
	if err := part(31); err != nil {
		t.Error(err)
	}
	ids := causes(t, part(30))
	if len(ids) != 1 || !strings.Contains(ids[0].Message, "job-not-below-retry-after: ") {
		t.Errorf("%v", ids)
	}
	if slices.Contains(said(ids), "") {
		t.Error("a cause without text")
	}
}
