// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// broken has two errors of different sections (timeouts; worker) and a warning.
func broken(t *testing.T) *v1alpha1.QueueWorker {
	t.Helper()
	qw := &v1alpha1.QueueWorker{}
	qw.Name, qw.Namespace = "payments", "shop"
	err := yaml.UnmarshalStrict([]byte(`
replicas: 2
queue: {connection: redis}
timeouts: {jobSeconds: 60, retryAfterSeconds: 30}
worker: {extraArgs: [--once]}
template: {spec: {containers: [{name: worker, image: shop}]}}
`), &qw.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return qw
}

func blocking(r Result) []string {
	var ids []string
	for _, f := range timeoutchain.Blocking(r.Findings) {
		ids = append(ids, f.Rule)
	}
	return ids
}

func TestSeveralFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	result := Validate(broken(t), Options{})
	if got := blocking(result); !slices.Equal(got, []string{"job-not-below-retry-after", "args-owned"}) {
		t.Errorf("%v", got)
	}
	if len(result.Warnings()) != 1 || !strings.HasPrefix(result.Warnings()[0], "spec.timeouts.httpSeconds: http-timeout-missing: ") {
		t.Errorf("%v", result.Warnings())
	}
	const want = `spec.timeouts.jobSeconds: Invalid value: 60: job-not-below-retry-after: jobSeconds 60 must be below retryAfterSeconds 30: ` +
		`from second 30 on a second worker runs the same job while the first still does; set retryAfterSeconds to 65`
	if got := result.Errors()[0].Error(); got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
}

// A change is refused for what it touches, and only for that.
func TestRatchet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.QueueWorker)
		want   []string
	}{
		"nothing":            {func(*v1alpha1.QueueWorker) {}, nil},
		"scaled":             {func(qw *v1alpha1.QueueWorker) { qw.Spec.Replicas = ptr.To[int32](9) }, nil},
		"relabelled":         {func(qw *v1alpha1.QueueWorker) { qw.Labels = map[string]string{"a": "b"} }, nil},
		"another image":      {func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].Image = "shop:2" }, nil},
		"timeouts, broken":   {func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 61 }, []string{"job-not-below-retry-after"}},
		"timeouts, repaired": {func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 20 }, nil},
		"args, broken":       {func(qw *v1alpha1.QueueWorker) { qw.Spec.Worker.ExtraArgs = []string{"--queue=x"} }, []string{"args-owned"}},
		"a new fault elsewhere": {func(qw *v1alpha1.QueueWorker) { qw.Spec.Retries.Tries = ptr.To[int32](0) },
			[]string{"retries-unbounded"}},
		"template, own env": {func(qw *v1alpha1.QueueWorker) {
			qw.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QUEUEWORKER_X"}}
		}, []string{"env-owned"}},
	} {
		old, now := broken(t), broken(t)
		tc.change(now)
		result := ValidateUpdate(old, now, Options{})
		if got := blocking(result); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if before := Validate(now, Options{}); len(result.Findings) != len(before.Findings) {
			t.Errorf("%s: a finding was lost instead of becoming a warning", name)
		}
	}
}

func TestOnlyTheChangedWorkerIsRefusedForASharedQueue(t *testing.T) {
	t.Parallel()
	worker := func(name string, job, retryAfter int32) *v1alpha1.QueueWorker {
		qw := broken(t)
		qw.Name = name
		qw.Spec.Queue = v1alpha1.Queue{Connection: "database", Store: "shop-mysql"}
		qw.Spec.Worker = v1alpha1.Worker{}
		qw.Spec.Timeouts = v1alpha1.Timeouts{JobSeconds: job, RetryAfterSeconds: ptr.To(retryAfter), HTTPSeconds: ptr.To[int32](5)}
		return qw
	}
	long, short := worker("long", 600, 700), worker("short", 10, 60)
	others := Options{Others: []v1alpha1.QueueWorker{*long, *short}}
	want := []string{"shared-queue-shorter-reservation"}
	if got := blocking(Validate(short, others)); !slices.Equal(got, want) {
		t.Errorf("created beside the other: %v", got)
	}
	scaled := long.DeepCopy()
	scaled.Spec.Replicas = ptr.To[int32](5)
	if got := blocking(ValidateUpdate(long, scaled, others)); got != nil {
		t.Errorf("the other one, scaled: %v", got)
	}
	longer := long.DeepCopy()
	longer.Spec.Timeouts.JobSeconds = 650
	if got := blocking(ValidateUpdate(long, longer, others)); !slices.Equal(got, want) {
		t.Errorf("the other one, its job limit raised: %v", got)
	}
}

func TestValidationIsCheap(t *testing.T) {
	qw := broken(t)
	qw.Spec.Worker = v1alpha1.Worker{}
	qw.Spec.Timeouts = v1alpha1.Timeouts{JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](90), HTTPSeconds: ptr.To[int32](20)}
	if n := testing.AllocsPerRun(100, func() { Validate(qw, Options{}) }); n > 50 {
		t.Errorf("%v allocations for a spec that holds, at most 50 are wanted", n)
	}
}

func BenchmarkValidate(b *testing.B) {
	qw := &v1alpha1.QueueWorker{}
	qw.Spec.Queue.Connection = "redis"
	qw.Spec.Timeouts = v1alpha1.Timeouts{JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](90), HTTPSeconds: ptr.To[int32](20)}
	qw.Spec.Template.Spec.Containers = []corev1.Container{{Name: "worker", Image: "shop"}}
	b.ReportAllocs()
	for b.Loop() {
		Validate(qw, Options{})
	}
}
