// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Options is what a QueueWorker does not say about itself.
type Options struct {
	// GraceCap is the longest grace, in seconds, that the platform grants; 0
	// means timeoutchain.DefaultGraceCap.
	GraceCap int64
	// Pollers are other workers of the same queues; see [Pollers].
	Pollers []timeoutchain.Poller
}

// FromQueueWorker builds the chain of a QueueWorker with every default in
// place. It accepts any object, also one that the schema would refuse.
func FromQueueWorker(qw *v1alpha1.QueueWorker, opts Options) timeoutchain.Chain {
	spec := &qw.Spec
	runtime := spec.EffectiveRuntime()
	c := timeoutchain.Chain{
		Runtime: timeoutchain.Runtime(runtime),
		Driver:  timeoutchain.Driver(spec.EffectiveDriver()),

		HTTPConnect:    value(spec.Timeouts.HTTPConnectSeconds),
		HTTP:           value(spec.Timeouts.HTTPSeconds),
		HTTPAttempts:   value(spec.Timeouts.HTTPAttempts),
		HTTPRetryDelay: value(spec.Timeouts.HTTPRetryDelaySeconds),
		Job:            timeoutchain.Of(int64(spec.Timeouts.JobSeconds)),
		RetryAfter:     value(spec.Timeouts.RetryAfterSeconds),
		Grace:          value(spec.Timeouts.TerminationGracePeriodSeconds),
		GraceOutlasts:  timeoutchain.Outlasts(spec.EffectiveGraceOutlasts()),

		BlockFor: value(spec.Queue.BlockForSeconds),
		Queues:   max(int64(len(spec.Queue.Names)), 1),

		RetryUntil:       value(spec.Retries.RetryUntilSeconds),
		MessageRetention: value(spec.Queue.MessageRetentionSeconds),

		UniqueFor:          value(spec.Locks.UniqueForSeconds),
		OverlapExpireAfter: value(spec.Locks.OverlapExpireAfterSeconds),

		Fence:          timeoutchain.FenceMode(spec.EffectiveFenceMode()),
		ProviderKeyTTL: value(spec.Fence.ProviderKeyTTLSeconds),

		Worker:   worker(spec),
		Pod:      pod(spec),
		Strategy: strategy(spec),
		Pollers:  opts.Pollers,
	}
	fence(&c, spec)
	if spec.Monitored() {
		c.StuckAfter = value(spec.Monitor.StuckAfterSeconds)
	}
	if opts.GraceCap > 0 {
		c.GraceCap = timeoutchain.Of(opts.GraceCap)
	}
	if spec.Drain.BeforeStop != nil {
		c.BeforeStop = timeoutchain.Of(int64(spec.Drain.BeforeStop.TimeoutSeconds))
	}
	if tries, declared := spec.EffectiveTries(); declared {
		c.Tries = timeoutchain.Of(int64(tries))
	}
	if backoff := spec.EffectiveBackoff(); len(backoff) > 0 {
		c.Backoff = make([]int64, len(backoff))
		for i, step := range backoff {
			c.Backoff[i] = int64(step)
		}
	}
	return c
}

// worker collects the process options. What is rendered where nothing is
// declared counts as declared here.
func worker(spec *v1alpha1.QueueWorkerSpec) timeoutchain.Worker {
	w := spec.EffectiveWorker()
	return timeoutchain.Worker{
		Sleep:           value(w.SleepSeconds),
		Rest:            value(w.RestSeconds),
		MemoryMegabytes: value(w.MemoryMegabytes),
		Processes:       value(w.Processes),
		ExtraArgs:       w.ExtraArgs,
		Declared:        declared(&spec.Worker),
	}
}

func strategy(spec *v1alpha1.QueueWorkerSpec) timeoutchain.Strategy {
	rolling := spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType
	s := timeoutchain.Strategy{PreflightFirst: rolling && spec.EffectivePreflightPolicy() == v1alpha1.PreflightEnforce}
	if numbers := spec.Strategy.RollingUpdate; numbers != nil {
		s.MaxUnavailable, s.MaxSurge = text(numbers.MaxUnavailable), text(numbers.MaxSurge)
	}
	return s
}

func text(number *intstr.IntOrString) string {
	if number == nil {
		return ""
	}
	return number.String()
}

func declared(w *v1alpha1.Worker) []timeoutchain.Link {
	var links []timeoutchain.Link
	for _, f := range []struct {
		set  bool
		link timeoutchain.Link
	}{
		{w.MemoryMegabytes != nil, timeoutchain.LinkMemory},
		{w.MaxTimeSeconds != nil, timeoutchain.LinkMaxTime},
		{w.MaxJobs != nil, timeoutchain.LinkMaxJobs},
		{w.SleepSeconds != nil, timeoutchain.LinkSleep},
		{w.RestSeconds != nil, timeoutchain.LinkRest},
		{w.Processes != nil, timeoutchain.LinkProcesses},
		{w.PHP != "", timeoutchain.LinkPHP},
		{w.Artisan != "", timeoutchain.LinkArtisan},
		{len(w.ExtraArgs) > 0, timeoutchain.LinkExtraArgs},
		{len(w.Wrapper) > 0, timeoutchain.LinkWrapper},
		{w.Supervision != "", timeoutchain.LinkSupervision},
	} {
		if f.set {
			links = append(links, f.link)
		}
	}
	return links
}

func value[N int32 | int64](n *N) timeoutchain.Value {
	if n == nil {
		return timeoutchain.Value{}
	}
	return timeoutchain.Of(int64(*n))
}
