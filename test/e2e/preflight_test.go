// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// defect is what is wrong with an image. Files are put over the application's by
// a ConfigMap: for the worker and its preflight the image holds them.
type defect struct {
	files map[string]string // by path
	env   map[string]string
	edit  func(*v1alpha1.QueueWorker)
	told  []string // what PreflightPassed and Stalled must say
}

// classMap lets the preflight find the application's classes, as Composer's does.
const classMap = `<?php return ['App\\' => [dirname(__DIR__, 2).'/app']];`

// longClass is a job class with a limit of its own above the declared 30 and 90.
var longClass = defect{
	files: map[string]string{
		"/app/vendor/composer/autoload_psr4.php": classMap,
		"/app/app/Jobs/Export.php":               `<?php namespace App\Jobs; class Export extends Job { public $timeout = 600; protected function run(): void {} }`,
	},
	told: []string{"job-not-below-retry-after", `App\Jobs\Export`, "600", "90", "to at most 30 (82 with jobSeconds 82)"},
}

var refusedImages = map[string]defect{
	"a job class of 600 s under 30 and 90": longClass,
	"no pcntl_alarm": {
		files: map[string]string{"/php/ini/disabled.ini": "disable_functions = pcntl_alarm\n"},
		env:   map[string]string{"PHP_INI_SCAN_DIR": ":/php/ini"},
		told:  []string{"pcntl-missing", "pcntl_alarm"},
	},
	"retry_after 30 under SignalsOnly": {
		files: map[string]string{"/app/config/queue.php": `<?php return [
			'default' => 'redis',
			'connections' => ['redis' => ['driver' => 'redis', 'connection' => 'default', 'queue' => 'default', 'retry_after' => 30]],
			'failed' => ['driver' => 'database-uuids', 'database' => env('DB_CONNECTION'), 'table' => 'failed_jobs'],
		];`},
		edit: func(qw *v1alpha1.QueueWorker) { qw.Spec.Worker.Supervision = v1alpha1.SupervisionSignalsOnly },
		told: []string{"retry-after-differs", "30", "90"},
	},
	"no PHP": {
		edit: func(qw *v1alpha1.QueueWorker) { qw.Spec.Worker.PHP = "php9" },
		told: []string{"php-missing", "php9"},
	},
	"a wrong working directory": {
		edit: func(qw *v1alpha1.QueueWorker) { qw.Spec.Template.Spec.Containers[0].WorkingDir = "/tmp" },
		told: []string{"application-missing", "artisan", "/tmp"},
	},
}

// An image that breaks what is declared never becomes a worker; the older workers
// go on until a repaired one comes.
func TestARefusedImageLeavesTheOlderWorkers(t *testing.T) {
	operator(t)
	for name, d := range refusedImages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, qw := begun(t)
			before := workersOf(qw)

			bad := d.in(t, s, qw)
			if err := apply(t.Context(), bad); err != nil {
				t.Fatal(err)
			}
			stalled := reached(t, qw, v1alpha1.ConditionStalled, v1alpha1.ReasonPreflightRefused)
			for _, word := range d.told {
				if !strings.Contains(stalled.Message, word) {
					t.Errorf("Stalled does not say %q: %s", word, stalled.Message)
				}
			}
			t.Logf("%s: %s", name, stalled.Message)
			if ready := conditionOf(t, qw, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
				t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
			}
			s.dispatch(t, "Short", "while-refused", nil)
			if run := s.finished(t, "while-refused"); !slices.Contains(before, run.pod) {
				t.Errorf("the job ran in pod %s, not in one of %v", run.pod, before)
			}
			if now := workersOf(qw); !containsAll(now, before) {
				t.Errorf("of the workers %v only %v are left", before, now)
			}

			if err := apply(t.Context(), annotated(qw, "repaired")); err != nil {
				t.Fatal(err)
			}
			for _, pod := range before {
				wellEnded(t, awaitGone(t, pod))
			}
			reached(t, qw, v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightPassed)
			s.dispatch(t, "Short", "repaired", nil)
			s.finished(t, "repaired")
			s.nothingLeft(t)
		})
	}
}

// Under Warn the same image is rolled out, and told.
func TestARefusedImageRollsUnderWarn(t *testing.T) {
	operator(t)
	t.Parallel()
	s, qw := begun(t)
	before := workersOf(qw)
	bad := longClass.in(t, s, qw)
	bad.Spec.Preflight.Policy = v1alpha1.PreflightWarn
	if err := apply(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	for _, pod := range before {
		wellEnded(t, awaitGone(t, pod))
	}
	passed := reached(t, qw, v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightWarned)
	for _, word := range longClass.told {
		if !strings.Contains(passed.Message, word) {
			t.Errorf("PreflightPassed does not say %q: %s", word, passed.Message)
		}
	}
	if stalled := conditionOf(t, qw, v1alpha1.ConditionStalled); stalled.Status != metav1.ConditionFalse {
		t.Errorf("Stalled: %s", stalled.Message)
	}
}

// unfinished are applications whose preflight cannot come to its end.
var unfinished = map[string]defect{
	"out of memory": {
		files: map[string]string{"/app/config/greedy.php": `<?php ini_set('memory_limit', '-1'); $all = str_repeat('x', 1 << 28); return [];`},
		edit: func(qw *v1alpha1.QueueWorker) {
			qw.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("160Mi")}
		},
		told: []string{"memory"},
	},
	"hung": {
		files: map[string]string{"/app/config/hung.php": `<?php sleep(86400); return [];`},
		told:  []string{"time limit"},
	},
	"killed": {
		files: map[string]string{"/app/config/killed.php": `<?php posix_kill(getmypid(), SIGKILL); return [];`},
		told:  []string{"killed"},
	},
}

// A preflight that could not end is no verdict, and no worker either.
func TestAnUnfinishedPreflightIsNoVerdict(t *testing.T) {
	operator(t)
	for name, d := range unfinished {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, qw := begun(t)
			before := workersOf(qw)
			if err := apply(t.Context(), d.in(t, s, qw)); err != nil {
				t.Fatal(err)
			}
			passed := reached(t, qw, v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightUnfinished)
			t.Logf("%s: %s", name, passed.Message)
			for _, word := range d.told {
				if passed.Status != metav1.ConditionUnknown || !strings.Contains(passed.Message, word) {
					t.Errorf("wanted Unknown and %q, got %s: %s", word, passed.Status, passed.Message)
				}
			}
			if stalled := conditionOf(t, qw, v1alpha1.ConditionStalled); stalled.Status != metav1.ConditionFalse {
				t.Errorf("Stalled: %s", stalled.Message)
			}
			if now := workersOf(qw); !containsAll(now, before) {
				t.Errorf("of the workers %v only %v are left", before, now)
			}
		})
	}
}

// begun is a shop with two workers at work.
func begun(t *testing.T) (*shop, *v1alpha1.QueueWorker) {
	t.Helper()
	s := newShop(t, onRedis)
	qw := s.queueWorker("preflight", 2, limits{job: 30, retryAfter: 90})
	qw.Spec.Preflight = v1alpha1.Preflight{} // the default enforces
	deployed(t, qw)
	mustKubectl(t, "wait", "qw/"+qw.Name, "--for=condition=Ready", "--timeout=120s")
	passed := reached(t, qw, v1alpha1.ConditionPreflightPassed, v1alpha1.ReasonPreflightPassed)
	t.Logf("before: %s", passed.Message)
	return s, qw
}

// in is the QueueWorker with an image that has the defect.
func (d defect) in(t *testing.T, s *shop, qw *v1alpha1.QueueWorker) *v1alpha1.QueueWorker {
	t.Helper()
	bad := annotated(qw, "bad")
	spec := &bad.Spec.Template.Spec
	worker := &spec.Containers[0]
	files := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-files", Namespace: namespace},
		Data:       map[string]string{},
	}
	for path, text := range d.files {
		key := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
		files.Data[key] = text
		worker.VolumeMounts = append(worker.VolumeMounts, corev1.VolumeMount{Name: "files", MountPath: path, SubPath: key})
	}
	if len(d.files) > 0 {
		deployed(t, files)
		source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: files.Name}}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &source}})
	}
	for name, value := range d.env {
		worker.Env = append(worker.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if d.edit != nil {
		d.edit(bad)
	}
	return bad
}

// annotated is the QueueWorker with another template.
func annotated(qw *v1alpha1.QueueWorker, version string) *v1alpha1.QueueWorker {
	other := qw.DeepCopy()
	other.Spec.Template.Annotations = map[string]string{"version": version}
	return other
}

// workersOf are the names of the workers that work.
func workersOf(qw *v1alpha1.QueueWorker) []string {
	var names []string
	for _, pod := range workers(qw) {
		if pod.ready() {
			names = append(names, pod.Name)
		}
	}
	return names
}

func containsAll(all, some []string) bool {
	return len(some) > 0 && !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// conditionOf reads a condition; it is empty where there is none.
func conditionOf(t *testing.T, qw *v1alpha1.QueueWorker, kind string) metav1.Condition {
	t.Helper()
	var now v1alpha1.QueueWorker
	if err := json.Unmarshal([]byte(mustKubectl(t, "get", "qw", qw.Name, "-o", "json")), &now); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(now.Status.Conditions, kind); c != nil && now.Status.ObservedGeneration == now.Generation {
		return *c
	}
	return metav1.Condition{}
}

// reached waits for a condition to have the reason.
func reached(t *testing.T, qw *v1alpha1.QueueWorker, kind, reason string) metav1.Condition {
	t.Helper()
	var c metav1.Condition
	err := await(t.Context(), patience, qw.Name+" has "+kind+" with reason "+reason, func() error {
		if c = conditionOf(t, qw, kind); c.Reason != reason {
			time.Sleep(time.Second)
			return fmt.Errorf("it is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
