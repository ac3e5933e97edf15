// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/monitor"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// monitorPod is the rendered template of a QueueWorker of testdata.
func monitorPod(t *testing.T, file string, edit func(*v1alpha1.QueueWorker)) corev1.PodTemplateSpec {
	t.Helper()
	qw := load(t, "testdata/"+file+".yaml")
	edit(qw)
	return workload.WithMonitor(agentImage)(qw, timeoutchain.Chain{})
}

func TestTheMonitorSeesWhatTheWorkerSees(t *testing.T) {
	template := monitorPod(t, "wrapped", func(qw *v1alpha1.QueueWorker) {
		worker := &qw.Spec.Template.Spec.Containers[0]
		worker.Env = []corev1.EnvVar{{Name: "APP_ENV", Value: "production"}}
		worker.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
		worker.WorkingDir, worker.ImagePullPolicy = "/srv/shop", corev1.PullAlways
		worker.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](33)}
	})
	qw := load(t, "testdata/wrapped.yaml")
	preflight := named(t, pod(t, "wrapped", func(*v1alpha1.QueueWorker) {}).InitContainers, v1alpha1.PreflightContainer)
	c := named(t, template.Spec.Containers, v1alpha1.MonitorContainer)
	if !reflect.DeepEqual(c.Args, preflight.Args) || c.Image != qw.Spec.Template.Spec.Containers[0].Image {
		t.Errorf("args %q, the preflight has %q; image %s", c.Args, preflight.Args, c.Image)
	}
	if c.WorkingDir != "/srv/shop" || c.ImagePullPolicy != corev1.PullAlways || len(c.EnvFrom) != 1 || *c.SecurityContext.RunAsUser != 33 {
		t.Errorf("%+v", c)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	if env["APP_ENV"] != "production" || env["REDIS_QUEUE_RETRY_AFTER"] != "50" {
		t.Errorf("env %v", env)
	}
	if env[timeoutchain.WireEnv]+env[v1alpha1.MetricsEnv] != "" {
		t.Errorf("it is told what is for workers: %v", env)
	}
	config, err := monitor.DecodeConfig(env[monitor.ConfigEnv])
	if err != nil {
		t.Fatal(err)
	}
	want := monitor.Config{
		Version: 1, Namespace: qw.Namespace, Name: qw.Name, Runtime: "Laravel", Connection: "redis", Driver: "Redis", Queues: []string{"mail"},
		IntervalSeconds: 30, StuckAfterSeconds: 150, RetryAfterSeconds: 50, MetricsAddress: ":9464",
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("config %+v, want %+v", config, want)
	}
}

// A Service, a budget, an affinity or an autoscaler that selects the workers
// must not find their monitor.
func TestNothingTakesAMonitorForAWorker(t *testing.T) {
	qw := load(t, "testdata/laravel.yaml")
	template := monitorPod(t, "laravel", func(q *v1alpha1.QueueWorker) {
		q.Spec.Template.Labels = map[string]string{"app": "shop"}
		q.Spec.Monitor.Labels = map[string]string{"egress": "redis", v1alpha1.LabelName: q.Name, v1alpha1.LabelMonitor: "another"}
		q.Spec.Template.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{},
		}
		q.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{}}
		q.Spec.Template.Spec.HostNetwork = true
		q.Spec.Template.Spec.Containers = append(q.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy"})
	})
	if want := map[string]string{"egress": "redis", v1alpha1.LabelMonitor: qw.Name}; !reflect.DeepEqual(template.Labels, want) {
		t.Errorf("labels %v, want %v", template.Labels, want)
	}
	for key, value := range workload.Selector(qw) {
		if template.Labels[key] == value {
			t.Errorf("the workers' selector %s=%s selects it", key, value)
		}
	}
	affinity := template.Spec.Affinity
	if affinity.NodeAffinity == nil || affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil || template.Spec.TopologySpreadConstraints != nil {
		t.Errorf("%+v", template.Spec)
	}
	if template.Spec.HostNetwork || len(template.Spec.Containers) != 1 {
		t.Errorf("host network %t, %d containers", template.Spec.HostNetwork, len(template.Spec.Containers))
	}
}

// Only the monitor's own container has the token, and no worker has it.
func TestOnlyTheMonitorHasItsToken(t *testing.T) {
	const folder = "/var/run/secrets/kubernetes.io/serviceaccount"
	edit := func(qw *v1alpha1.QueueWorker) {
		qw.Spec.Template.Spec.ServiceAccountName, qw.Spec.Template.Spec.DeprecatedServiceAccount = "shop", "shop"
		qw.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "proxy"}}
		worker := &qw.Spec.Template.Spec.Containers[0]
		worker.VolumeMounts = append(worker.VolumeMounts, corev1.VolumeMount{Name: "own", MountPath: folder})
	}
	spec := monitorPod(t, "laravel", edit).Spec
	if spec.ServiceAccountName != "payments-monitor" || spec.DeprecatedServiceAccount != "" || *spec.AutomountServiceAccountToken {
		t.Errorf("account %q %q, mounted by itself: %t", spec.ServiceAccountName, spec.DeprecatedServiceAccount, *spec.AutomountServiceAccountToken)
	}
	mounts := func(c *corev1.Container) (names []string) {
		for _, m := range c.VolumeMounts {
			if m.MountPath == folder {
				names = append(names, m.Name)
			}
		}
		return names
	}
	if got := mounts(named(t, spec.Containers, v1alpha1.MonitorContainer)); !slices.Equal(got, []string{v1alpha1.MonitorTokenVolume}) {
		t.Errorf("mounted there: %v", got)
	}
	for i := range spec.InitContainers {
		if got := mounts(&spec.InitContainers[i]); len(got) != 0 {
			t.Errorf("%s has %v", spec.InitContainers[i].Name, got)
		}
	}
	worker := pod(t, "laravel", edit)
	text, err := json.Marshal(worker)
	if err != nil {
		t.Fatal(err)
	}
	if worker.ServiceAccountName != "shop" || strings.Contains(string(text), v1alpha1.MonitorTokenVolume) || strings.Contains(string(text), "-monitor") {
		t.Errorf("a worker is given something of the monitor's: %s", text)
	}
}

func TestMonitorNames(t *testing.T) {
	for worker, want := range map[string]string{
		"payments":              "payments-monitor",
		strings.Repeat("a", 55): strings.Repeat("a", 55) + "-monitor",
	} {
		if got := workload.MonitorName(worker); got != want {
			t.Errorf("%s: %s", worker, got)
		}
	}
	long, other := workload.MonitorName(strings.Repeat("a", 62)+"b"), workload.MonitorName(strings.Repeat("a", 62)+"c")
	if len(long) != 63 || long == other || !strings.HasSuffix(long, "-monitor") {
		t.Errorf("%s and %s", long, other)
	}
}

func TestTheMonitorsHash(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*v1alpha1.QueueWorker)
		changes bool
	}{
		"replicas":           {func(q *v1alpha1.QueueWorker) { q.Spec.Replicas = ptr.To[int32](9) }, false},
		"enabled as default": {func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Enabled = ptr.To(true) }, false},
		"interval":           {func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.IntervalSeconds = ptr.To[int32](60) }, true},
		"stuck after":        {func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.StuckAfterSeconds = ptr.To[int32](600) }, true},
		"job":                {func(q *v1alpha1.QueueWorker) { q.Spec.Timeouts.JobSeconds = 31 }, true},
		"account":            {func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.ServiceAccountName = "sqs" }, true},
		"labels":             {func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Labels = map[string]string{"a": "b"} }, true},
		"resources":          {func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Resources = &corev1.ResourceRequirements{} }, true},
		"image":              {func(q *v1alpha1.QueueWorker) { q.Spec.Template.Spec.Containers[0].Image = "x" }, true},
	} {
		qw := load(t, "testdata/laravel.yaml")
		before, err := workload.MonitorHash(qw)
		if err != nil {
			t.Fatal(err)
		}
		c.edit(qw)
		after, err := workload.MonitorHash(qw)
		if err != nil {
			t.Fatal(err)
		}
		if (after != before) != c.changes {
			t.Errorf("%s: the hash changed: %t", name, after != before)
		}
	}
}

func TestMonitorResourcesAndSecrets(t *testing.T) {
	own := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}}
	spec := monitorPod(t, "laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Resources = &own }).Spec
	if got := spec.Containers[0].Resources; !reflect.DeepEqual(got, own) {
		t.Errorf("%+v", got)
	}
	qw := load(t, "testdata/laravel.yaml")
	secrets := func(qw *v1alpha1.QueueWorker) []string {
		template, err := workload.RenderMonitor(qw, workload.WithMonitor(agentImage), []corev1.LocalObjectReference{{Name: "of-the-account"}})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range template.Pod.Spec.ImagePullSecrets {
			names = append(names, *s.Name)
		}
		return names
	}
	if got := secrets(qw); !slices.Equal(got, []string{"of-the-account"}) {
		t.Errorf("pulled with %v", got)
	}
	qw.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "of-the-template"}}
	if got := secrets(qw); !slices.Equal(got, []string{"of-the-template"}) {
		t.Errorf("pulled with %v", got)
	}
}

// A native sidecar is beside the monitor, and may have declared its port.
func TestTheMonitorTakesAFreePort(t *testing.T) {
	for name, c := range map[string]struct {
		declared []int32 // by an init container
		want     int32
	}{"by default": {nil, 9464}, "another": {[]int32{80}, 9464}, "its own": {[]int32{9464}, 9465}, "several": {[]int32{9465, 9464}, 9466}} {
		template := monitorPod(t, "laravel", func(qw *v1alpha1.QueueWorker) {
			ports(qw, 9464, "own") // of the worker, which is not in this pod
			proxy := corev1.Container{Name: "proxy", Image: "proxy:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
			for _, port := range c.declared {
				proxy.Ports = append(proxy.Ports, corev1.ContainerPort{ContainerPort: port})
			}
			qw.Spec.Template.Spec.InitContainers = []corev1.Container{proxy}
		})
		container := named(t, template.Spec.Containers, v1alpha1.MonitorContainer)
		env := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == monitor.ConfigEnv })
		config, err := monitor.DecodeConfig(container.Env[env].Value)
		if err != nil {
			t.Fatal(err)
		}
		port, probed := container.Ports[0], container.ReadinessProbe.HTTPGet.Port.IntValue()
		if port.ContainerPort != c.want || port.Name != v1alpha1.MonitorPort || probed != int(c.want) || config.MetricsAddress != fmt.Sprintf(":%d", c.want) {
			t.Errorf("%s: listens at %s, port %+v, probed at %d, want %d", name, config.MetricsAddress, port, probed, c.want)
		}
	}
}

// Two pods on one host, or two containers of a pod, cannot have the same port.
func TestWorkersTellMetricsWhereThePortIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		edit func(*v1alpha1.QueueWorker)
		told bool
	}{
		"by default":          {"laravel", func(*v1alpha1.QueueWorker) {}, true},
		"Generic":             {"generic", func(*v1alpha1.QueueWorker) {}, true},
		"off":                 {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Monitor.Enabled = ptr.To(false) }, false},
		"on the host":         {"laravel", func(q *v1alpha1.QueueWorker) { q.Spec.Template.Spec.HostNetwork = true }, false},
		"taken by the worker": {"laravel", func(q *v1alpha1.QueueWorker) { ports(q, 9465, "own") }, false},
		"taken by name":       {"laravel", func(q *v1alpha1.QueueWorker) { ports(q, 80, v1alpha1.WorkerMetricsPort) }, false},
		"another port":        {"laravel", func(q *v1alpha1.QueueWorker) { ports(q, 80, "own") }, true},
	} {
		worker := named(t, pod(t, c.file, c.edit).Containers, v1alpha1.WorkerContainer)
		env := slices.ContainsFunc(worker.Env, func(e corev1.EnvVar) bool { return e.Name == v1alpha1.MetricsEnv && e.Value == ":9465" })
		port := slices.ContainsFunc(worker.Ports, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == 9465 && p.Name == v1alpha1.WorkerMetricsPort
		})
		if env != c.told || port != c.told && name != "taken by the worker" {
			t.Errorf("%s: env %t, port %t, want %t", name, env, port, c.told)
		}
	}
}

func ports(q *v1alpha1.QueueWorker, number int32, name string) {
	worker := &q.Spec.Template.Spec.Containers[0]
	worker.Ports = []corev1.ContainerPort{{ContainerPort: number, Name: name, Protocol: corev1.ProtocolTCP}}
}

// What the monitor writes is what the API has.
func TestTheMonitorSpeaksTheAPIsWords(t *testing.T) {
	one := int64(1)
	text, err := json.Marshal(monitor.Status{
		State: monitor.Stuck, Depth: &one, Ready: &one, Delayed: &one, Reserved: &one, Due: &one, Expired: &one, OldestSeconds: &one, Failed: &one,
		Failing: []monitor.Failing{{Kind: monitor.Kind{Class: `App\Jobs\Charge`, Error: "PDOException"}, Count: 5, FirstTime: time.Unix(1, 0), LastTime: time.Unix(2, 0)}}, Message: "why",
	})
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	var state v1alpha1.QueueState
	if err := decoder.Decode(&state); err != nil {
		t.Fatal(err)
	}
	for i, field := range reflect.ValueOf(state).Fields() {
		if field.IsZero() && i.Name != "Since" && i.Name != "ObservedTime" {
			t.Errorf("%s does not arrive", i.Name)
		}
	}
	for i, field := range reflect.ValueOf(state.Failing[0]).Fields() {
		if field.IsZero() {
			t.Errorf("%s of what fails does not arrive", i.Name)
		}
	}
	for _, state := range []monitor.State{monitor.Empty, monitor.Busy, monitor.Stuck, monitor.Stopped, monitor.Paused, monitor.Unknown} {
		if !slices.Contains(v1alpha1.States(), v1alpha1.State(state)) {
			t.Errorf("the API has no state %s", state)
		}
	}
	if monitor.Consuming != v1alpha1.ConditionConsuming {
		t.Errorf("the condition is %s there", monitor.Consuming)
	}
}
