// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"encoding/json"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// generator makes QueueWorkers that lie close to the edges of the rules: each
// number is chosen at a small distance from the one it is compared with. A
// careful one keeps most distances on the right side, so that a good share of
// all objects is clean.
type generator struct {
	*rand.Rand
	careful bool
}

func newGenerator(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
	g.careful = g.chance(60)
	return g
}

// object is a QueueWorker as a user could send it.
func (g *generator) object() map[string]any {
	object := g.plain()
	g.disguise(object["spec"].(map[string]any))
	return object
}

// plain is an object without what only says "nothing".
func (g *generator) plain() map[string]any {
	qw := &v1alpha1.QueueWorker{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: "random", Namespace: "default"},
		Spec:       g.spec(),
	}
	object := toMap(qw)
	delete(object, "status")
	return object
}

func toMap(qw *v1alpha1.QueueWorker) map[string]any {
	text, err := json.Marshal(qw)
	if err != nil {
		panic(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		panic(err)
	}
	return wholeNumbers(object).(map[string]any)
}

// wholeNumbers turns the decoder's floats into the integers they were.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = wholeNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = wholeNumbers(e)
		}
	case float64:
		return int64(v)
	}
	return v
}

// disguise writes "nothing" in the other ways that YAML has for it.
func (g *generator) disguise(spec map[string]any) {
	for path, nothing := range map[[2]string]any{
		{"queue", "names"}:            []any{},
		{"retries", "backoffSeconds"}: []any{},
		{"worker", "extraArgs"}:       []any{},
		{"worker", "wrapper"}:         []any{},
		{"timeouts", "httpSeconds"}:   nil,
		{"drain", "beforeStop"}:       nil,
	} {
		section, _ := spec[path[0]].(map[string]any)
		if _, set := section[path[1]]; section != nil && !set && g.chance(10) {
			section[path[1]] = nothing
		}
	}
	for _, name := range []string{"retries", "locks", "worker", "drain", "fence"} {
		if section, _ := spec[name].(map[string]any); len(section) == 0 && g.chance(30) {
			spec[name] = nil
		}
	}
}

func (g *generator) spec() v1alpha1.QueueWorkerSpec {
	s := v1alpha1.QueueWorkerSpec{Runtime: pick(g, "", v1alpha1.RuntimeLaravel, v1alpha1.RuntimeLaravel, v1alpha1.RuntimeHorizon, v1alpha1.RuntimeGeneric)}
	g.queue(&s)
	g.drain(&s)
	g.timeouts(&s)
	g.retries(&s)
	g.worker(&s)
	g.template(&s)
	g.afterwards(&s)
	return s
}

func (g *generator) queue(s *v1alpha1.QueueWorkerSpec) {
	s.Queue.Connection = pick(g, "redis", "redis", "redis", "database", "sqs", "sqs", "beanstalkd", "rabbitmq", "payments", "payments")
	if s.Queue.Connection == "payments" && !g.slip() || g.chance(15) {
		s.Queue.Driver = pick(g, v1alpha1.DriverRedis, v1alpha1.DriverDatabase, v1alpha1.DriverSQS, v1alpha1.DriverBeanstalkd, v1alpha1.DriverRabbitMQ, v1alpha1.DriverOther)
	}
	if s.Runtime == v1alpha1.RuntimeHorizon && !g.slip() {
		s.Queue.Connection, s.Queue.Driver = pick(g, "redis", "payments"), ""
	}
	for range g.IntN(4) {
		s.Queue.Names = append(s.Queue.Names, pick(g, "default", "payments", "mail"))
	}
	if g.chance(30) {
		s.Queue.BlockForSeconds = ptr.To(int32(g.IntN(8)))
	}
}

func (g *generator) drain(s *v1alpha1.QueueWorkerSpec) {
	s.Drain.GraceOutlasts = pick(g, "", "", v1alpha1.GraceOutlastsReservation, v1alpha1.GraceOutlastsJob)
	if g.chance(25) {
		s.Drain.BeforeStop = &v1alpha1.BeforeStop{Command: []string{"php", "artisan", "horizon:pause"}, TimeoutSeconds: int32(1 + g.IntN(20))}
	}
	s.Fence.Mode = pick(g, "", v1alpha1.FenceModeNone, v1alpha1.FenceModeTable, v1alpha1.FenceModeProxy)
}

func (g *generator) timeouts(s *v1alpha1.QueueWorkerSpec) {
	t := &s.Timeouts
	total := int64(1 + g.IntN(120))
	if g.chance(80) {
		call := int32(1 + g.IntN(60))
		t.HTTPSeconds = &call
		if g.chance(40) {
			t.HTTPAttempts = ptr.To(int32(1 + g.IntN(4)))
		}
		if g.chance(30) {
			t.HTTPRetryDelaySeconds = ptr.To(int32(g.IntN(5)))
		}
		if g.chance(30) {
			t.HTTPConnectSeconds = ptr.To(atLeast(1, int64(call)-g.gap()))
		}
		total = (&timeoutchain.Chain{
			HTTP:           timeoutchain.Of(int64(call)),
			HTTPAttempts:   timeoutchain.Of(int64(ptr.Deref(t.HTTPAttempts, 1))),
			HTTPRetryDelay: timeoutchain.Of(int64(ptr.Deref(t.HTTPRetryDelaySeconds, 0))),
		}).TotalHTTP()
	}
	t.JobSeconds = atLeast(1, total+g.gap())
	if g.chance(5) || s.Runtime == v1alpha1.RuntimeGeneric && g.chance(25) {
		t.JobSeconds = 0
	}
	if s.Runtime == v1alpha1.RuntimeGeneric && g.chance(40) || g.slip() && g.chance(30) {
		return // no reservation
	}
	t.RetryAfterSeconds = ptr.To(atLeast(0, int64(t.JobSeconds)+g.gap()))
	switch {
	case g.slip() && g.chance(20):
		t.RetryAfterSeconds = ptr.To(int32(0))
	case g.chance(8): // the longest that SQS accepts
		t.RetryAfterSeconds = ptr.To(int32(43200 + 3 - g.IntN(6)))
	}
}

func (g *generator) retries(s *v1alpha1.QueueWorkerSpec) {
	r := &s.Retries
	if g.chance(60) {
		r.Tries = ptr.To(int32(1 + g.IntN(6)))
		if g.slip() && g.chance(30) || g.chance(3) {
			r.Tries = ptr.To(int32(0))
		}
	}
	if g.chance(15) {
		r.RetryUntilSeconds = ptr.To(int32(1 + g.IntN(4000)))
	}
	for range g.IntN(4) {
		r.BackoffSeconds = append(r.BackoffSeconds, int32(g.IntN(300)))
	}
	if g.chance(8) {
		r.BackoffSeconds = append(r.BackoffSeconds, int32(43200+3-g.IntN(6)))
	}
}

func (g *generator) worker(s *v1alpha1.QueueWorkerSpec) {
	job := int64(s.Timeouts.JobSeconds)
	if g.chance(30) {
		s.Worker.SleepSeconds = ptr.To(atLeast(0, job-g.gap()))
	}
	if g.chance(20) {
		s.Worker.RestSeconds = ptr.To(atLeast(0, job-g.gap()))
	}
	if g.chance(30) {
		s.Worker.ExtraArgs = []string{pick(g, "--force", "-v", "--name=mail", "--timeouts", "timeout=5")}
	}
	if g.chance(20) {
		s.Worker.Wrapper = []string{"/entrypoint.sh"}
	}
	s.Worker.Supervision = pick(g, "", "", v1alpha1.SupervisionFull, v1alpha1.SupervisionSignalsOnly)
	if g.slip() && g.chance(40) {
		s.Worker.ExtraArgs = append(s.Worker.ExtraArgs, pick(g, "--timeout=90", "--once", "--tries", "--queue=a,b", "--backoff=1\n", "--sleep="))
	}
}

// afterwards adds the numbers that are compared with what is derived from
// others.
func (g *generator) afterwards(s *v1alpha1.QueueWorkerSpec) {
	chain := chainsource.FromQueueWorker(&v1alpha1.QueueWorker{Spec: *s}, chainsource.Options{})
	if g.chance(60) || s.Timeouts.JobSeconds == 0 && g.careful && !g.chance(10) {
		outlast := chain.DrainTime()
		if chain.GraceOutlasts != timeoutchain.OutlastsJob || g.chance(50) {
			outlast = max(outlast, chain.RetryAfter.Or(0))
		}
		if !g.careful && g.chance(30) {
			outlast = pick(g, chain.DrainTime(), chain.RetryAfter.Or(0))
		}
		s.Timeouts.TerminationGracePeriodSeconds = ptr.To(int64(atLeast(0, outlast+g.gap())))
	}
	if longest := longestOf(chain.Backoff); longest > 0 && g.chance(25) {
		s.Queue.MessageRetentionSeconds = ptr.To(atLeast(1, longest+g.gap()))
	} else if g.chance(8) {
		s.Queue.MessageRetentionSeconds = ptr.To(pick(g, int32(59), 60, 61, 1_209_599, 1_209_600, 1_209_601))
	}
	if window, bounded := chain.RetryWindow(); g.chance(35) {
		if !bounded {
			window = int64(g.IntN(500))
		}
		s.Fence.ProviderKeyTTLSeconds = ptr.To(atLeast(1, window+g.gap()))
	}
	g.fence(s, &chain)
	if worker := workerOf(s); worker != nil && g.chance(25) {
		bound := int64(atLeast(1, int64(s.Timeouts.JobSeconds)+chain.BeforeStop.Or(0)+g.gap()-1))
		probe := &corev1.Probe{TerminationGracePeriodSeconds: &bound}
		probe.Exec = &corev1.ExecAction{Command: []string{"true"}}
		if g.chance(50) {
			worker.LivenessProbe = probe
		} else {
			worker.StartupProbe = probe
		}
	}
}

func longestOf(backoff []int64) (longest int64) {
	for _, b := range backoff {
		longest = max(longest, b)
	}
	return longest
}

func workerOf(s *v1alpha1.QueueWorkerSpec) *corev1.Container {
	for i := range s.Template.Spec.Containers {
		if s.Template.Spec.Containers[i].Name == v1alpha1.WorkerContainer {
			return &s.Template.Spec.Containers[i]
		}
	}
	return nil
}

// gap is the distance of an outer link from the inner one: near zero, on the
// right side for a careful generator, now and then far away.
func (g *generator) gap() int64 {
	switch {
	case g.chance(10):
		return int64(g.IntN(1000))
	case g.careful && !g.chance(6):
		return pick[int64](g, 1, 1, 2, 4, 5, 6, 30)
	default:
		return pick[int64](g, -30, -2, -1, 0, 0, 1, 2, 5)
	}
}

// slip says whether a mistake is made here.
func (g *generator) slip() bool {
	if g.careful {
		return g.chance(3)
	}
	return g.chance(30)
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

func atLeast(least, n int64) int32 { return int32(max(least, n)) }
