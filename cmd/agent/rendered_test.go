// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/inspect"
	"github.com/queueworker/operator/internal/agent/supervise"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// What the operator renders is what this program reads: the command line, the
// chain, and the words of each runtime.
func TestTheAgentReadsWhatIsRendered(t *testing.T) {
	files, err := filepath.Glob("../../internal/workload/testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			qw := readWorker(t, file)
			worker := rendered(t, qw)
			config, given := started(t, worker)
			tracked := qw.Spec.EffectiveRuntime() != v1alpha1.RuntimeGeneric && qw.Spec.EffectiveSupervision() == v1alpha1.SupervisionFull
			if config.Tracked != tracked {
				t.Errorf("the worker is tracked: %v, want %v", config.Tracked, tracked)
			}
			if stop := qw.Spec.Drain.BeforeStop; stop != nil && !slices.Equal(config.BeforeStop, stop.Command) {
				t.Errorf("before the stop %q, want %q", config.BeforeStop, stop.Command)
			}
			if path := worker.TerminationMessagePath; path != "" && given.log != path {
				t.Errorf("the message goes to %s, the kubelet looks at %s", given.log, path)
			}
			chain := chainOf(qw)
			if grace := chain.GracePeriod(); config.Wire.GraceSeconds != grace {
				t.Errorf("a grace of %d, want %d", config.Wire.GraceSeconds, grace)
			}
			checkPreflight(t, qw, worker)
			for _, words := range [][]string{worker.Lifecycle.PreStop.Exec.Command, workload.WithAgent("x")(qw, chain).Spec.InitContainers[0].Command} {
				if !strings.Contains(usage, "\n  "+words[1]+" ") {
					t.Errorf("there is no command %q", words[1])
				}
			}
		})
	}
}

// checkPreflight reads the preflight's command line and environment as it does
// itself.
func checkPreflight(t *testing.T, qw *v1alpha1.QueueWorker, worker *corev1.Container) {
	t.Helper()
	chain := chainOf(qw)
	if qw.Spec.EffectivePreflightPolicy() == v1alpha1.PreflightDisabled {
		return
	}
	inits := workload.WithAgent("registry.example/operator:1")(qw, chain).Spec.InitContainers
	own := inits[slices.IndexFunc(inits, func(c corev1.Container) bool { return c.Name == v1alpha1.PreflightContainer })]
	given, err := parsePreflight(asStarted(slices.Concat(own.Command, own.Args))[2:])
	if own.Command[1] != "preflight" || err != nil || given.policy != string(qw.Spec.EffectivePreflightPolicy()) {
		t.Errorf("%q: %+v, %v", own.Command, given, err)
	}
	env := map[string]string{}
	for _, variable := range own.Env {
		env[variable.Name] = asStarted([]string{variable.Value})[0]
	}
	declared, err := preflight.DecodeDeclared(env[preflight.DeclaredEnv])
	if err != nil || !slices.Equal(declared.Queues, qw.Spec.Queue.Names) {
		t.Errorf("%+v, %v", declared, err)
	}
	if _, err := timeoutchain.DecodeWire(env[timeoutchain.WireEnv]); err != nil {
		t.Error(err)
	}
	plan, err := inspect.For(chain.Runtime, declared, given.command)
	if err != nil || plan.Artisan != qw.Spec.EffectiveWorker().Artisan || !slices.Equal(given.command, asStarted(worker.Args)) {
		t.Errorf("%+v, %v", plan, err)
	}
}

// asStarted are words as the kubelet hands them over.
func asStarted(words []string) []string {
	started := slices.Clone(words)
	for i := range started {
		started[i] = strings.ReplaceAll(started[i], "$$(", "$(")
	}
	return started
}

func readWorker(t *testing.T, file string) *v1alpha1.QueueWorker {
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

func chainOf(qw *v1alpha1.QueueWorker) timeoutchain.Chain {
	return chainsource.FromQueueWorker(qw, chainsource.Options{})
}

func rendered(t *testing.T, qw *v1alpha1.QueueWorker) *corev1.Container {
	t.Helper()
	pod := workload.WithAgent("registry.example/operator:1")(qw, chainOf(qw))
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == v1alpha1.WorkerContainer {
			return &pod.Spec.Containers[i]
		}
	}
	t.Fatal("no worker")
	return nil
}

// started takes the container's command line as the kubelet hands it over.
func started(t *testing.T, worker *corev1.Container) (supervise.Config, runFlags) {
	t.Helper()
	line := asStarted(slices.Concat(worker.Command, worker.Args))
	if want := []string{workdir.Dir(workdir.Default).Agent(), "run"}; !slices.Equal(line[:2], want) {
		t.Fatalf("it starts with %q, want %q", line[:2], want)
	}
	given, err := parseRun(line[2:])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(given.command, asStarted(worker.Args)) {
		t.Errorf("the worker's words are %q, want %q", given.command, worker.Args)
	}
	for _, env := range worker.Env {
		t.Setenv(env.Name, env.Value)
	}
	config := supervise.Config{Dir: workdir.Dir(t.TempDir()), Command: given.command}
	if err := complete(&config, given.supervision, given.beforeStop); err != nil {
		t.Fatal(err)
	}
	return config, given
}
