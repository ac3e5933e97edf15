// SPDX-License-Identifier: Apache-2.0

// Package argocd_test runs the health check as Argo CD does.
package argocd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/internal/schema"
)

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type testCase struct {
	InputPath    string `json:"inputPath"`
	HealthStatus health `json:"healthStatus"`
}

func cases(t *testing.T) []testCase {
	t.Helper()
	var file struct {
		Tests []testCase `json:"tests"`
	}
	if err := yaml.UnmarshalStrict(read(t, "health_test.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	return file.Tests
}

func TestHealth(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range cases(t) {
		t.Run(c.InputPath, func(t *testing.T) {
			tested[c.InputPath] = true
			if got := run(t, object(t, c.InputPath)); got != c.HealthStatus {
				t.Errorf("got  %+v\nwant %+v", got, c.HealthStatus)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(files) != len(tested) {
		t.Errorf("%d files, %d of them tested: %v", len(files), len(tested), err)
	}
}

// Flux judges the same object by kstatus. Nobody should be told two stories.
func TestHealthAgreesWithFlux(t *testing.T) {
	same := map[string]kstatus.Status{"Healthy": kstatus.CurrentStatus, "Progressing": kstatus.InProgressStatus, "Degraded": kstatus.FailedStatus}
	for _, c := range cases(t) {
		if filepath.Base(c.InputPath) == "no-status.yaml" {
			continue // the API server never lets one through: the schema fills it in
		}
		verdict, err := kstatus.Compute(&unstructured.Unstructured{Object: object(t, c.InputPath)})
		if err != nil {
			t.Fatal(err)
		}
		if verdict.Status != same[c.HealthStatus.Status] {
			t.Errorf("%s: Argo CD says %s, Flux %s", c.InputPath, c.HealthStatus.Status, verdict.Status)
		}
	}
}

// The inputs are objects that the API server could hold.
func TestInputsAreQueueWorkers(t *testing.T) {
	judge, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases(t) {
		input := object(t, c.InputPath)
		for _, fault := range append(judge.UnknownFields(input), judge.Validate(input)...) {
			t.Errorf("%s: %v", c.InputPath, fault)
		}
	}
}

func TestTheConfigMapHoldsTheCheck(t *testing.T) {
	var patch corev1.ConfigMap
	if err := yaml.UnmarshalStrict(read(t, "argocd-cm.yaml"), &patch); err != nil {
		t.Fatal(err)
	}
	if got := patch.Data["resource.customizations.health.queueworker.dev_QueueWorker"]; got != string(read(t, "health.lua")) {
		t.Errorf("argocd-cm.yaml does not hold health.lua but\n%s", got)
	}
}

// run gives the script what Argo CD gives it: no library but base, table and
// package, and one second.
func run(t *testing.T, of map[string]any) health {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", value(state, of))
	if err := state.DoFile("health.lua"); err != nil {
		t.Fatal(err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the check returned %s", state.Get(-1))
	}
	return health{Status: answer.RawGetString("status").String(), Message: answer.RawGetString("message").String()}
}

func value(state *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, below := range of {
			table.RawSetString(key, value(state, below))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, below := range of {
			table.Append(value(state, below))
		}
		return table
	case string:
		return lua.LString(of)
	case int64:
		return lua.LNumber(of)
	case float64:
		return lua.LNumber(of)
	case bool:
		return lua.LBool(of)
	default:
		return lua.LNil
	}
}

func object(t *testing.T, path string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	of := &unstructured.Unstructured{}
	if err := of.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return of.Object
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
