// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/workload"
)

const agentImage = "registry.example/operator:1.0.0"

var update = flag.Bool("update", false, "write what is built now as the expected files")

// TestGolden builds every QueueWorker of testdata and compares the objects with
// NAME.golden. The stored template is compared by what it holds.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got := build(t, load(t, file))
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs (go test -update writes it anew):\n%s", golden, got)
			}
		})
	}
}

func build(t *testing.T, qw *v1alpha1.QueueWorker) []byte {
	t.Helper()
	template := render(t, qw)
	replicas := qw.Spec.EffectiveReplicas()
	deployment := workload.Deployment(qw, template, &replicas)
	annotations := deployment.Annotations

	recalled, err := workload.Recall(&appsv1.Deployment{ObjectMeta: metaWith(annotations)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := toYAML(t, recalled.Pod), toYAML(t, template.Pod); !bytes.Equal(got, want) {
		t.Errorf("the stored template is another one:\n%s", got)
	}
	annotations[v1alpha1.AnnotationAppliedTemplate] = "(spec.template)"

	out := toYAML(t, deployment)
	if budget := workload.DisruptionBudget(qw); budget != nil {
		out = append(append(out, "---\n"...), toYAML(t, budget)...)
	}
	if qw.Spec.Monitored() {
		out = append(out, buildMonitor(t, qw)...)
	}
	return out
}

func buildMonitor(t *testing.T, qw *v1alpha1.QueueWorker) []byte {
	t.Helper()
	template, err := workload.RenderMonitor(qw, workload.WithMonitor(agentImage), nil)
	if err != nil {
		t.Fatal(err)
	}
	deployment := workload.MonitorDeployment(qw, template)
	deployment.Annotations[v1alpha1.AnnotationAppliedTemplate] = "(spec.template)"
	objects := []any{workload.MonitorRole(qw), workload.MonitorRoleBinding(qw), deployment}
	if account := workload.MonitorServiceAccount(qw); account != nil {
		objects = append([]any{account}, objects...)
	}
	var out []byte
	for _, object := range objects {
		out = append(append(out, "---\n"...), toYAML(t, object)...)
	}
	return out
}

func render(t *testing.T, qw *v1alpha1.QueueWorker) workload.Template {
	t.Helper()
	chain := chainsource.FromQueueWorker(qw, chainsource.Options{})
	template, err := workload.Render(qw, chain, workload.WithAgent(agentImage))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func load(t *testing.T, file string) *v1alpha1.QueueWorker {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	qw := &v1alpha1.QueueWorker{}
	if err := yaml.UnmarshalStrict(text, qw); err != nil {
		t.Fatal(err)
	}
	return qw
}

func toYAML(t *testing.T, object any) []byte {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
