// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/workload"
)

func metaWith(annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Annotations: annotations}
}

// TestInputHash shows which edits may change a pod and which never do.
func TestInputHash(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		edit    func(*v1alpha1.QueueWorker)
		changes bool
	}{
		"replicas":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Replicas = ptr.To[int32](9) }, false},
		"labels":             {"laravel", func(q *v1alpha1.QueueWorker) { q.Labels = map[string]string{"a": "b"} }, false},
		"generation":         {"laravel", func(q *v1alpha1.QueueWorker) { q.Generation = 7 }, false},
		"locks":              {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Locks.UniqueForSeconds = ptr.To[int32](900) }, false},
		"fence":              {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.ProviderKeyTTLSeconds = ptr.To[int32](9) }, false},
		"fence of no proxy":  {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Mode = v1alpha1.FenceModeTable }, false},
		"failed jobs":        {"fence", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Retention.FailedJobsSeconds = ptr.To[int32](9) }, false},
		"store":              {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.Store = "shop-mysql" }, false},
		"retention":          {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.MessageRetentionSeconds = ptr.To[int32](900) }, false},
		"retry window":       {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Retries.RetryUntilSeconds = ptr.To[int32](900) }, false},
		"attempts":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Timeouts.HTTPAttempts = ptr.To[int32](2) }, false},
		"processes":          {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.Processes = ptr.To[int32](2) }, false},
		"strategy":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }, false},
		"budget":             {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.PodDisruptionBudget = nil }, false},
		"runtime as default": {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Runtime = v1alpha1.RuntimeLaravel }, false},
		"empty list":         {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.Names = []string{} }, false},
		"empty resources": {"horizon", func(q *v1alpha1.QueueWorker) {
			q.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}, false},
		"tries under Horizon": {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Retries.Tries = ptr.To[int32](9) }, false},
		"sleep under Generic": {"generic", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.SleepSeconds = ptr.To[int32](9) }, false},
		"no wrapper":          {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.Wrapper = []string{} }, false},
		"wrapper under Generic": {"generic", func(q *v1alpha1.QueueWorker) {
			q.Spec.Worker.Wrapper, q.Spec.Worker.Supervision = []string{"/x"}, v1alpha1.SupervisionSignalsOnly
		}, false},
		"outlasts, G given": {"generic", func(q *v1alpha1.QueueWorker) { q.Spec.Drain.GraceOutlasts = v1alpha1.GraceOutlastsJob }, false},

		"preflight as by default": {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Preflight.Policy = v1alpha1.PreflightEnforce }, false},
		"preflight under Generic": {"generic", func(q *v1alpha1.QueueWorker) { q.Spec.Preflight.Policy = v1alpha1.PreflightWarn }, false},

		"monitor as by default": {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Enabled = ptr.To(true) }, false},
		"monitor's numbers":     {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.IntervalSeconds = ptr.To[int32](9) }, false},

		"monitor off":     {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Enabled = ptr.To(false) }, true},
		"fence proxy":     {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Mode = v1alpha1.FenceModeProxy }, true},
		"fence secret":    {"fence", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Store.SecretRef.Key = "url" }, true},
		"fence provider":  {"fence", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Providers[0].URL = "http://b" }, true},
		"fence retention": {"fence", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Retention.DoneSeconds = ptr.To[int32](900_000) }, true},
		"fence mode":      {"fence", func(q *v1alpha1.QueueWorker) { q.Spec.Fence.Mode = v1alpha1.FenceModeNone }, true},
		"runtime":         {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Runtime = v1alpha1.RuntimeLaravel }, true},
		"connection":      {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.Connection = "redis-2" }, true},
		"driver":          {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.Driver = v1alpha1.DriverOther }, true},
		"queues":          {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.Names = []string{"default", "payments"} }, true},
		"block for":       {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Queue.BlockForSeconds = ptr.To[int32](6) }, true},
		"http":            {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Timeouts.HTTPSeconds = ptr.To[int32](21) }, true},
		"job":             {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Timeouts.JobSeconds = 31 }, true},
		"reservation":     {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Timeouts.RetryAfterSeconds = ptr.To[int32](91) }, true},
		"grace":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Timeouts.TerminationGracePeriodSeconds = ptr.To[int64](101) }, true},
		"outlasts":        {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Drain.GraceOutlasts = v1alpha1.GraceOutlastsJob }, true},
		"before stop":     {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Drain.BeforeStop = nil }, true},
		"tries":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Retries.Tries = ptr.To[int32](2) }, true},
		"backoff":         {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Retries.BackoffSeconds = []int32{1} }, true},
		"memory":          {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.MemoryMegabytes = ptr.To[int32](64) }, true},
		"max time":        {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.MaxTimeSeconds = nil }, true},
		"max jobs":        {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.MaxJobs = nil }, true},
		"sleep":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.SleepSeconds = ptr.To[int32](1) }, true},
		"rest":            {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.RestSeconds = ptr.To[int32](1) }, true},
		"php":             {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.PHP = "php8" }, true},
		"artisan":         {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.Artisan = "/artisan" }, true},
		"extra args":      {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.ExtraArgs = []string{"-v"} }, true},
		"image":           {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Template.Spec.Containers[0].Image = "x" }, true},
		"wrapper":         {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.Wrapper = []string{"/entrypoint.sh"} }, true},
		"supervision":     {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Worker.Supervision = v1alpha1.SupervisionSignalsOnly }, true},
		"preflight warns": {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Preflight.Policy = v1alpha1.PreflightWarn }, true},
		"preflight off":   {"horizon", func(q *v1alpha1.QueueWorker) { q.Spec.Preflight.Policy = v1alpha1.PreflightDisabled }, true},
		"template labels": {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Template.Labels["team"] = "x" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			qw := load(t, "testdata/"+c.file+".yaml")
			before := hash(t, qw)
			c.edit(qw)
			if changed := hash(t, qw) != before; changed != c.changes {
				t.Errorf("the hash changed: %v, want %v", changed, c.changes)
			}
		})
	}
}

// TestInputHashIsStable pins the hash itself: should a newer library or a change
// here give another one, every worker of every user would be rendered anew by
// the next operator upgrade.
func TestInputHashIsStable(t *testing.T) {
	for file, want := range map[string]string{
		"laravel":     "75e71912845f5b979d73914c28ce653b",
		"laravel-all": "dbf54297b2bdf54e9b1b9f1065479cf5",
		"horizon":     "1785091e794b8eef625944e87538208e",
		"wrapped":     "7ddc557e7d6bc8647b5c9289b61dc2ac",
		"generic":     "c33f29cecd92cafbccac480e5e72eaf5",
	} {
		if got := hash(t, load(t, "testdata/"+file+".yaml")); got != want {
			t.Errorf("%s: %s, was %s", file, got, want)
		}
	}
}

func hash(t *testing.T, qw *v1alpha1.QueueWorker) string {
	t.Helper()
	h, err := workload.InputHash(qw)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRecallRefusesDamage(t *testing.T) {
	for name, text := range map[string]string{
		"absent": "", "no base64": "!", "no gzip": "aGVsbG8=",
		"no template": "H4sIAAAAAAAC/6uuBQBDv6ajAgAAAA==",
	} {
		d := &appsv1.Deployment{ObjectMeta: metaWith(map[string]string{v1alpha1.AnnotationAppliedTemplate: text})}
		if got, err := workload.Recall(d); err == nil {
			t.Errorf("%s: recalled %+v", name, got)
		}
	}
}

func TestOwnership(t *testing.T) {
	qw := load(t, "testdata/laravel.yaml")
	controlledBy := func(kind string, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: qw.Name,
			UID: types.UID("8a7d6f9e-0000-4000-8000-00000000000" + uid), Controller: ptr.To(true),
		}}
	}
	ours := workload.Labels(qw)
	for name, c := range map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		want   workload.Ownership
	}{
		"ours":                          {ours, controlledBy("QueueWorker", "1"), workload.Ours},
		"ours, a label was taken away":  {nil, controlledBy("QueueWorker", "1"), workload.Ours},
		"orphan":                        {ours, nil, workload.Orphaned},
		"of an earlier worker":          {ours, controlledBy("QueueWorker", "9"), workload.Leftover},
		"of another kind":               {ours, controlledBy("Rollout", "9"), workload.Foreign},
		"nobody's":                      {nil, nil, workload.Foreign},
		"only the name label, no owner": {map[string]string{v1alpha1.LabelName: qw.Name}, nil, workload.Foreign},
	} {
		object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: qw.Name, Labels: c.labels, OwnerReferences: c.owners}}
		if got := workload.OwnershipOf(qw, object); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
