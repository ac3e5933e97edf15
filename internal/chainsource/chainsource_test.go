// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func read(t *testing.T, spec string) *v1alpha1.QueueWorker {
	t.Helper()
	qw := &v1alpha1.QueueWorker{}
	qw.Name, qw.Namespace = "payments", "shop"
	if err := yaml.UnmarshalStrict([]byte(spec), &qw.Spec); err != nil {
		t.Fatal(err)
	}
	return qw
}

const minimal = `
queue: {connection: redis}
timeouts: {jobSeconds: 30, retryAfterSeconds: 90}
template: {spec: {containers: [{name: worker, image: shop}]}}
`

func TestDefaultsAreInPlace(t *testing.T) {
	t.Parallel()
	for runtime, want := range map[v1alpha1.Runtime]struct {
		driver               timeoutchain.Driver
		tries, sleep, memory timeoutchain.Value
		backoff              []int64
	}{
		"":                      {timeoutchain.Redis, timeoutchain.Of(3), timeoutchain.Of(3), timeoutchain.Of(128), []int64{10, 60}},
		v1alpha1.RuntimeLaravel: {timeoutchain.Redis, timeoutchain.Of(3), timeoutchain.Of(3), timeoutchain.Of(128), []int64{10, 60}},
		v1alpha1.RuntimeHorizon: {driver: timeoutchain.Redis},
		v1alpha1.RuntimeGeneric: {driver: timeoutchain.Redis},
	} {
		qw := read(t, minimal)
		qw.Spec.Runtime = runtime
		c := FromQueueWorker(qw, Options{})
		if c.Driver != want.driver || c.Tries != want.tries || c.Worker.Sleep != want.sleep ||
			c.Worker.MemoryMegabytes != want.memory || !reflect.DeepEqual(c.Backoff, want.backoff) || c.Queues != 1 {
			t.Errorf("%q: %+v", runtime, c)
		}
	}
}

func TestBackoffDefaultFollowsTries(t *testing.T) {
	t.Parallel()
	for tries, want := range map[int32]int{1: 0, 2: 1, 3: 2, 9: 2} {
		qw := read(t, minimal)
		qw.Spec.Retries.Tries = ptr.To(tries)
		if got := len(FromQueueWorker(qw, Options{}).Backoff); got != want {
			t.Errorf("tries %d: %d steps, want %d", tries, got, want)
		}
	}
}

func TestDriverFollowsTheConnection(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		runtime    v1alpha1.Runtime
		connection string
		driver     v1alpha1.Driver
		want       timeoutchain.Driver
	}{
		{v1alpha1.RuntimeLaravel, "database", "", timeoutchain.Database},
		{v1alpha1.RuntimeLaravel, "sqs", "", timeoutchain.SQS},
		{v1alpha1.RuntimeLaravel, "beanstalkd", "", timeoutchain.Beanstalkd},
		{v1alpha1.RuntimeLaravel, "rabbitmq", "", timeoutchain.RabbitMQ},
		{v1alpha1.RuntimeLaravel, "redis", v1alpha1.DriverDatabase, timeoutchain.Database},
		{v1alpha1.RuntimeLaravel, "payments-fast", "", ""},
		{v1alpha1.RuntimeHorizon, "payments-fast", "", timeoutchain.Redis},
		{v1alpha1.RuntimeHorizon, "database", "", timeoutchain.Database},
		{v1alpha1.RuntimeGeneric, "payments-fast", "", ""},
	} {
		qw := read(t, minimal)
		qw.Spec.Runtime, qw.Spec.Queue.Connection, qw.Spec.Queue.Driver = tc.runtime, tc.connection, tc.driver
		if got := FromQueueWorker(qw, Options{}).Driver; got != tc.want {
			t.Errorf("%s %s %s: %q, want %q", tc.runtime, tc.connection, tc.driver, got, tc.want)
		}
	}
}

func TestTemplateFacts(t *testing.T) {
	t.Parallel()
	qw := read(t, `
runtime: Generic
queue: {connection: redis}
timeouts: {jobSeconds: 30, retryAfterSeconds: 90}
template:
  spec:
    terminationGracePeriodSeconds: 7
    restartPolicy: OnFailure
    activeDeadlineSeconds: 8
    volumes: [{name: queueworker}, {name: queueworkers}]
    initContainers: [{name: queueworker-agent, image: x}]
    containers:
    - {name: proxy, image: x, volumeMounts: [{name: v, mountPath: /queueworker/run}, {name: v, mountPath: /queueworkers}, {name: queueworker, mountPath: /a}]}
    - name: worker
      image: shop
      args: ["-c", "php artisan queue:work"]
      lifecycle: {preStop: {sleep: {seconds: 1}}}
      livenessProbe: {exec: {command: [x]}, terminationGracePeriodSeconds: 9}
      startupProbe: {exec: {command: [x]}, terminationGracePeriodSeconds: 10}
      resources: {limits: {memory: 64Mi}}
      env: [{name: QUEUEWORKER_CHAIN, value: x}, {name: REDIS_QUEUE_RETRY_AFTER, value: "1"}]
`)
	want := timeoutchain.Pod{
		Command: true, CommandMissing: true, RunsArtisan: true, PreStop: true, Sidecars: []string{"proxy"},
		Grace: timeoutchain.Of(7), RestartPolicy: "OnFailure", ActiveDeadline: timeoutchain.Of(8),
		LivenessGrace: timeoutchain.Of(9), StartupGrace: timeoutchain.Of(10), MemoryLimitBytes: timeoutchain.Of(64 << 20),
		OwnedNames: []string{"container queueworker-agent", "mount /queueworker/run", "mount queueworker", "volume queueworker"},
		OwnedEnv:   []string{"QUEUEWORKER_CHAIN"}, // Generic: nobody but the user reads the other one
	}
	if got := FromQueueWorker(qw, Options{}).Pod; !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
}

func TestRunsArtisan(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"php artisan queue:work redis":      true,
		"sh -c exec|php|artisan|queue:work": true,
		"php artisan queue:listen":          true,
		"php /app/artisan horizon":          true,
		"php artisan schedule:work":         false,
		"/importer --queue work":            false,
		"horizon --artisan":                 false,
	} {
		worker := &corev1.Container{Command: strings.Fields(line)[:1]}
		for _, word := range strings.Fields(line)[1:] {
			worker.Args = append(worker.Args, strings.ReplaceAll(word, "|", " "))
		}
		if got := runsArtisan(worker); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestOwnedEnvironment(t *testing.T) {
	t.Parallel()
	field := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	for name, tc := range map[string]struct {
		connection string
		env        corev1.EnvVar
		owned      bool
	}{
		"same value":            {"redis", corev1.EnvVar{Name: "REDIS_QUEUE_RETRY_AFTER", Value: "90"}, false},
		"another value":         {"redis", corev1.EnvVar{Name: "REDIS_QUEUE_RETRY_AFTER", Value: "91"}, true},
		"same value, elsewhere": {"redis", corev1.EnvVar{Name: "REDIS_QUEUE_RETRY_AFTER", ValueFrom: field}, true},
		"another driver's":      {"redis", corev1.EnvVar{Name: "DB_QUEUE_RETRY_AFTER", Value: "91"}, false},
		"database":              {"database", corev1.EnvVar{Name: "DB_QUEUE_RETRY_AFTER", Value: "91"}, true},
		"beanstalkd":            {"beanstalkd", corev1.EnvVar{Name: "BEANSTALKD_QUEUE_RETRY_AFTER", Value: "91"}, true},
		"reserved prefix":       {"redis", corev1.EnvVar{Name: "QUEUEWORKER_ANYTHING", Value: "1"}, true},
		"the user's own":        {"redis", corev1.EnvVar{Name: "QUEUEWORKERS", Value: "1"}, false},
	} {
		qw := read(t, minimal)
		qw.Spec.Queue.Connection = tc.connection
		qw.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{tc.env}
		if got := len(FromQueueWorker(qw, Options{}).Pod.OwnedEnv) > 0; got != tc.owned {
			t.Errorf("%s: owned %v, want %v", name, got, tc.owned)
		}
	}
}

func TestPollers(t *testing.T) {
	t.Parallel()
	database := func(name, store string, queues ...string) v1alpha1.QueueWorker {
		qw := read(t, minimal)
		qw.Name = name
		qw.Spec.Queue = v1alpha1.Queue{Connection: "database", Store: store, Names: queues}
		return *qw
	}
	elsewhere := database("elsewhere", "", "mail")
	elsewhere.Namespace = "other"
	redis := database("redis", "", "mail")
	redis.Spec.Queue.Connection = "redis"
	renamed := database("renamed", "shop-mysql", "mail")
	renamed.Spec.Queue.Connection, renamed.Spec.Queue.Driver = "mysql-jobs", v1alpha1.DriverDatabase
	others := []v1alpha1.QueueWorker{
		database("z-same-connection", "", "mail", "default"), database("a-same-store", "shop-mysql", "mail"), renamed,
		database("other-store", "crm-mysql", "mail"), database("other-queue", "", "reports"), elsewhere, redis,
		database("payments", "", "mail"), // itself
	}

	qw := database("payments", "shop-mysql", "mail")
	got := Pollers(&qw, others)
	want := map[string]bool{"a-same-store": true, "renamed": true, "z-same-connection": false}
	if len(got) != len(want) || got[0].Name != "a-same-store" {
		t.Fatalf("%+v", got)
	}
	for _, p := range got {
		if declared, ok := want[p.Name]; !ok || declared != p.SameStore {
			t.Errorf("%+v", p)
		}
	}

	unnamed := database("unnamed", "")
	if got := Pollers(&unnamed, others); len(got) != 1 || got[0].Name != "z-same-connection" {
		t.Errorf("no queue names means default: %+v", got)
	}
	onRedis := read(t, minimal)
	if got := Pollers(onRedis, others); got != nil {
		t.Errorf("on Redis the one who reserves decides: %+v", got)
	}
}

func TestPathsLeadToTheField(t *testing.T) {
	t.Parallel()
	qw := read(t, `
queue: {connection: redis}
timeouts: {jobSeconds: 30}
worker: {extraArgs: [--force, --once]}
template: {spec: {volumes: [{name: queueworker-x}], containers: [
  {name: proxy, image: x}, {name: worker, image: shop, args: [x], env: [{name: A}, {name: QUEUEWORKER_B}]}]}}
`)
	for want, f := range map[string]timeoutchain.Finding{
		"spec.timeouts.jobSeconds":                                                     {Link: timeoutchain.LinkJob},
		"spec.timeouts.httpSeconds":                                                    {Link: timeoutchain.LinkTotalHTTP},
		"spec.queue.driver":                                                            {Link: timeoutchain.LinkDriver},
		"spec.drain.beforeStop.timeoutSeconds":                                         {Link: timeoutchain.LinkBeforeStop},
		"spec.worker.extraArgs[1]":                                                     {Link: timeoutchain.LinkExtraArgs, Subject: "--once"},
		"spec.template.spec.volumes[0].name":                                           {Link: timeoutchain.LinkTemplate, Subject: "volume queueworker-x"},
		"spec.template.spec.containers[1].env[1]":                                      {Link: timeoutchain.LinkEnv, Subject: "QUEUEWORKER_B"},
		"spec.template.spec.containers[1].args":                                        {Link: timeoutchain.LinkWorkerCommand},
		"spec.template.spec.containers[1].lifecycle.preStop":                           {Link: timeoutchain.LinkWorkerPreStop},
		"spec.template.spec.containers[1].livenessProbe.terminationGracePeriodSeconds": {Link: timeoutchain.LinkLivenessGrace},
		"spec.template.spec.containers[1].startupProbe.terminationGracePeriodSeconds":  {Link: timeoutchain.LinkStartupGrace},
		"spec.template.spec.containers":                                                {Link: timeoutchain.LinkContainers},
		"spec.template.spec.containers[0]":                                             {Link: timeoutchain.LinkContainers, Subject: "proxy"},
		"spec.worker.wrapper":                                                          {Link: timeoutchain.LinkWrapper},
		"spec.worker.supervision":                                                      {Link: timeoutchain.LinkSupervision},
		"spec.template.spec.containers[1].resources.limits[memory]":                    {Link: timeoutchain.LinkMemoryLimit},
		"spec.template.spec.terminationGracePeriodSeconds":                             {Link: timeoutchain.LinkTemplateGrace},
	} {
		if got := PathOf(qw, f).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAnEmptyObjectIsJudgedToo(t *testing.T) {
	t.Parallel()
	qw := &v1alpha1.QueueWorker{}
	for _, f := range timeoutchain.Check(FromQueueWorker(qw, Options{})) {
		if PathOf(qw, f) == nil {
			t.Errorf("%s has no path", f.Rule)
		}
	}
}
