// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

const (
	// manyClasses is how many job classes of its own the measured application has.
	manyClasses = 200
	// mostBoots and mostBeyond bound the preflight by the application's own boot.
	mostBoots, mostBeyond = 2.5, 100 * time.Millisecond
)

// boot is an application's start up to its first look at the queue.
const boot = `require "vendor/autoload.php"; $app = require "bootstrap/app.php"; ` +
	`$app->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap(); $app["queue"]->connection()->size();`

// eachInTurn times the boot and then its arguments, in nanoseconds.
const eachInTurn = `for i in $(seq "$ROUNDS"); do
a=$(date +%s%N); php -r "$BOOT" >/dev/null || exit; b=$(date +%s%N); "$@" >/dev/null 2>&1 || exit; c=$(date +%s%N)
echo $((b - a)) $((c - b))
done`

// The preflight, in a worker's own container, takes little more than the boot that it adds to. Only the long profile holds it to
// that: it has the machine to itself.
func TestOverheadOfThePreflight(t *testing.T) {
	operator(t)
	s := newShop(t, onRedis)
	qw := defect{files: map[string]string{"/app/vendor/composer/autoload_psr4.php": classMap}}.in(t, s, s.queueWorker("overhead", 1, ordinary))
	classes := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-classes", Namespace: namespace},
		Data:       map[string]string{},
	}
	for i := range manyClasses {
		name := fmt.Sprintf("Made%d", i)
		classes.Data[name+".php"] = `<?php namespace App\Jobs\Many; class ` + name + ` extends \App\Jobs\Job { public $timeout = 25; public $tries = 3; protected function run(): void {} }`
	}
	deployed(t, classes)
	spec := &qw.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "classes", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: classes.Name}},
	}})
	worker := &spec.Containers[0]
	worker.VolumeMounts = append(worker.VolumeMounts, corev1.VolumeMount{Name: "classes", MountPath: "/app/app/Jobs/Many"})
	deployed(t, qw)
	mustKubectl(t, "wait", "qw/"+qw.Name, "--for=condition=Ready", "--timeout=120s")

	boots, preflights := timed(t, qw)
	most := time.Duration(mostBoots*float64(boots)) + mostBeyond
	t.Logf("in a pod: boot %s, preflight with %d classes more %s, allowed %s (%.1f boots and %s)",
		boots.Round(time.Millisecond), manyClasses, preflights.Round(time.Millisecond), most.Round(time.Millisecond), mostBoots, mostBeyond)
	if full() && preflights > most {
		t.Errorf("the preflight takes %s, at most %s are allowed", preflights, most)
	}
}

// timed are the medians of boots and preflights in the worker's container.
func timed(t *testing.T, qw *v1alpha1.QueueWorker) (boots, preflights time.Duration) {
	t.Helper()
	pod, _ := suite.pods.get(workersOf(qw)[0])
	inits := pod.Spec.InitContainers
	init := inits[slices.IndexFunc(inits, func(c corev1.Container) bool { return c.Name == v1alpha1.PreflightContainer })]
	words := []string{"exec", pod.Name, "-c", v1alpha1.WorkerContainer, "--", "env", "ROUNDS=12", "BOOT=" + boot}
	for _, variable := range init.Env {
		if variable.ValueFrom == nil {
			words = append(words, variable.Name+"="+variable.Value)
		}
	}
	words = append(words, "sh", "-c", eachInTurn, "sh")
	out := mustKubectl(t, append(append(words, init.Command...), init.Args...)...)
	var ofBoot, ofPreflight []time.Duration
	for line := range strings.Lines(out) {
		var a, b time.Duration
		if _, err := fmt.Sscan(line, &a, &b); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		ofBoot, ofPreflight = append(ofBoot, a), append(ofPreflight, b)
	}
	slices.Sort(ofBoot)
	slices.Sort(ofPreflight)
	return ofBoot[len(ofBoot)/2], ofPreflight[len(ofPreflight)/2]
}
