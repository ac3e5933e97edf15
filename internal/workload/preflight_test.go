// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/workload"
)

// pod renders a file of testdata after a change.
func pod(t *testing.T, file string, change func(*v1alpha1.QueueWorker)) corev1.PodSpec {
	t.Helper()
	qw := load(t, "testdata/"+file+".yaml")
	change(qw)
	return workload.WithAgent(agentImage)(qw, chainsource.FromQueueWorker(qw, chainsource.Options{})).Spec
}

func named(t *testing.T, containers []corev1.Container, name string) *corev1.Container {
	t.Helper()
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("no container %s", name)
	}
	return &containers[at]
}

// What decides what the application reads is the same in both containers.
func TestThePreflightSeesWhatTheWorkerSees(t *testing.T) {
	spec := pod(t, "wrapped", func(qw *v1alpha1.QueueWorker) {
		worker := &qw.Spec.Template.Spec.Containers[0]
		worker.Env = []corev1.EnvVar{{Name: "APP_ENV", Value: "production"}}
		worker.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
		worker.WorkingDir, worker.ImagePullPolicy = "/srv/shop", corev1.PullAlways
		worker.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](33)}
		worker.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/x"}}
	})
	worker, c := named(t, spec.Containers, v1alpha1.WorkerContainer), named(t, spec.InitContainers, v1alpha1.PreflightContainer)
	for _, field := range []string{"Image", "ImagePullPolicy", "Args", "WorkingDir", "EnvFrom", "Resources", "VolumeMounts", "VolumeDevices", "SecurityContext"} {
		of := func(c *corev1.Container) any { return reflect.ValueOf(*c).FieldByName(field).Interface() }
		if !reflect.DeepEqual(of(worker), of(c)) || field != "Resources" && reflect.ValueOf(of(c)).IsZero() {
			t.Errorf("%s: worker %v, preflight %v", field, of(worker), of(c))
		}
	}
	if !reflect.DeepEqual(worker.Env, c.Env[:len(worker.Env)]) {
		t.Errorf("worker %v, preflight %v", worker.Env, c.Env)
	}
	if last := spec.InitContainers[len(spec.InitContainers)-1]; last.Name != v1alpha1.PreflightContainer {
		t.Errorf("%s comes after it", last.Name)
	}
}

func TestThePolicyDecidesWhatIsRendered(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		policy v1alpha1.PreflightPolicy
		flag   string
	}{
		"by default":    {"laravel", "", "--policy=Enforce"},
		"warn":          {"laravel", v1alpha1.PreflightWarn, "--policy=Warn"},
		"horizon":       {"horizon", v1alpha1.PreflightEnforce, "--policy=Enforce"},
		"disabled":      {"laravel", v1alpha1.PreflightDisabled, ""},
		"generic":       {"generic", "", ""},
		"generic, warn": {"generic", v1alpha1.PreflightWarn, ""},
	} {
		spec := pod(t, c.file, func(qw *v1alpha1.QueueWorker) { qw.Spec.Preflight.Policy = c.policy })
		if workload.HasPreflight(&spec) != (c.flag != "") {
			t.Errorf("%s: %+v", name, spec.InitContainers)
		} else if c.flag != "" && !slices.Contains(named(t, spec.InitContainers, v1alpha1.PreflightContainer).Command, c.flag) {
			t.Errorf("%s: no %s", name, c.flag)
		}
	}
}

// Without a limit the downward API would give the node's memory.
func TestTheMemoryLimitIsGivenWhereThereIsOne(t *testing.T) {
	for _, limited := range []bool{true, false} {
		spec := pod(t, "laravel", func(qw *v1alpha1.QueueWorker) {
			if !limited {
				qw.Spec.Template.Spec.Containers[0].Resources.Limits = nil
			}
		})
		env := named(t, spec.InitContainers, v1alpha1.PreflightContainer).Env
		given := slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
			return e.Name == preflight.MemoryLimitEnv && e.ValueFrom.ResourceFieldRef.Resource == "limits.memory"
		})
		if given != limited {
			t.Errorf("limited %v: %v", limited, env)
		}
	}
}

// A fence without its database would keep the preflight from starting.
func TestATrialHasOnlyWhatComesBeforeThePreflight(t *testing.T) {
	qw := load(t, "testdata/fence.yaml")
	template := render(t, qw)
	if !slices.ContainsFunc(template.Pod.Spec.InitContainers, func(c corev1ac.ContainerApplyConfiguration) bool { return *c.Name == v1alpha1.FenceContainer }) {
		t.Fatal("no fence to leave out")
	}
	trial, err := workload.Trial(qw, template)
	if err != nil || trial == nil {
		t.Fatal(trial, err)
	}
	named(t, trial.Spec.InitContainers, v1alpha1.AgentContainer)
	if slices.ContainsFunc(trial.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.FenceContainer }) {
		t.Errorf("the trial has a fence: %+v", trial.Spec.InitContainers)
	}
}

// Where the preflight is enforced, no older worker leaves before a new one came.
func TestStrategy(t *testing.T) {
	for name, c := range map[string]struct {
		policy             v1alpha1.PreflightPolicy
		surge, unavailable string
		want               string
	}{
		"nothing declared":      {"", "", "", "25% 0"},
		"one for one":           {"", "0", "1", "1 0"},
		"no surge in percent":   {"", "0%", "50%", "1 0"},
		"a surge of its own":    {"", "2", "", "2 0"},
		"warned, by default":    {v1alpha1.PreflightWarn, "", "", "25% 25%"},
		"warned, as declared":   {v1alpha1.PreflightWarn, "0", "1", "0 1"},
		"disabled, as declared": {v1alpha1.PreflightDisabled, "0", "1", "0 1"},
	} {
		qw := load(t, "testdata/laravel.yaml")
		qw.Spec.Preflight.Policy = c.policy
		rolling := &appsv1.RollingUpdateDeployment{}
		for text, into := range map[string]**intstr.IntOrString{c.surge: &rolling.MaxSurge, c.unavailable: &rolling.MaxUnavailable} {
			if text != "" {
				*into = ptr.To(intstr.Parse(text))
			}
		}
		qw.Spec.Strategy.RollingUpdate = rolling
		got := workload.EffectiveStrategy(qw).RollingUpdate
		if text := got.MaxSurge.String() + " " + got.MaxUnavailable.String(); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}
