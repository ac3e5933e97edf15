// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"strings"
)

// Defaults that the schema does not write into the object. They apply to what
// the user left out and are shown in status, so that the object in Git and the
// one in the cluster never differ.
const (
	defaultReplicas        int32 = 1
	defaultTries           int32 = 3
	defaultMemoryMegabytes int32 = 128
	defaultSleepSeconds    int32 = 3
	defaultPHP                   = "php"
	defaultArtisan               = "artisan"
	defaultSecretKey             = "dsn"
	defaultFenceTable            = "queueworker_fence"
	defaultKeyColumn             = "idempotency_key"
	defaultKeyHeader             = "Idempotency-Key"
	defaultKeepDone        int32 = 2_592_000
	defaultKeepFailed      int32 = 604_800
	defaultInterval        int32 = 30
	// stuckFactor times the longer of jobSeconds and retryAfterSeconds is when a
	// queue is stuck: one lost reservation is no reason yet.
	stuckFactor = 3
	maxSeconds  = 31_536_000
)

// defaultBackoff is used for Laravel, as many steps as there are retries.
var defaultBackoff = []int32{10, 60}

// DriversByConnection are the connection names that say their driver, as in the
// configuration that Laravel starts with. Not to be changed.
var DriversByConnection = map[string]Driver{
	"redis":      DriverRedis,
	"database":   DriverDatabase,
	"sqs":        DriverSQS,
	"beanstalkd": DriverBeanstalkd,
	"rabbitmq":   DriverRabbitMQ,
}

// EffectiveRuntime is the declared runtime, Laravel when not declared.
func (s *QueueWorkerSpec) EffectiveRuntime() Runtime {
	if s.Runtime == "" {
		return RuntimeLaravel
	}
	return s.Runtime
}

// EffectiveReplicas is the declared number of workers, 1 when not declared.
func (s *QueueWorkerSpec) EffectiveReplicas() int32 {
	if s.Replicas == nil {
		return defaultReplicas
	}
	return *s.Replicas
}

// EffectiveDriver is the declared driver, else what the connection's name says.
// It is empty where neither says anything; Horizon is then Redis.
func (s *QueueWorkerSpec) EffectiveDriver() Driver {
	if s.Queue.Driver != "" {
		return s.Queue.Driver
	}
	if d, ok := DriversByConnection[s.Queue.Connection]; ok {
		return d
	}
	if s.EffectiveRuntime() == RuntimeHorizon {
		return DriverRedis
	}
	return ""
}

// EffectiveTries is the number of runs a job may have; declared is false where
// nobody said it here.
func (s *QueueWorkerSpec) EffectiveTries() (tries int32, declared bool) {
	switch {
	case s.Retries.Tries != nil:
		return *s.Retries.Tries, true
	case s.EffectiveRuntime() == RuntimeLaravel:
		return defaultTries, true
	default:
		return 0, false
	}
}

// EffectiveBackoff are the pauses between runs: as declared, else for Laravel
// the first tries - 1 of [10, 60].
func (s *QueueWorkerSpec) EffectiveBackoff() []int32 {
	if len(s.Retries.BackoffSeconds) > 0 || s.EffectiveRuntime() != RuntimeLaravel {
		return s.Retries.BackoffSeconds
	}
	tries, _ := s.EffectiveTries()
	if tries <= 0 { // unlimited, or until a point in time: every step applies
		return defaultBackoff
	}
	return defaultBackoff[:min(int(tries)-1, len(defaultBackoff))]
}

// EffectiveWorker are the declared options of the worker process with what is
// rendered where none are declared: php and artisan, and for Laravel how long
// an idle worker sleeps and at how much memory it stops.
func (s *QueueWorkerSpec) EffectiveWorker() Worker {
	w := s.Worker
	w.PHP, w.Artisan = cmp.Or(w.PHP, defaultPHP), cmp.Or(w.Artisan, defaultArtisan)
	if s.EffectiveRuntime() != RuntimeLaravel {
		return w
	}
	sleep, memory := defaultSleepSeconds, defaultMemoryMegabytes
	w.SleepSeconds, w.MemoryMegabytes = cmp.Or(w.SleepSeconds, &sleep), cmp.Or(w.MemoryMegabytes, &memory)
	return w
}

// EffectiveSupervision is Full when not declared.
func (s *QueueWorkerSpec) EffectiveSupervision() Supervision {
	if s.Worker.Supervision == "" {
		return SupervisionFull
	}
	return s.Worker.Supervision
}

// EffectiveGraceOutlasts is Reservation when not declared.
func (s *QueueWorkerSpec) EffectiveGraceOutlasts() GraceOutlasts {
	if s.Drain.GraceOutlasts == "" {
		return GraceOutlastsReservation
	}
	return s.Drain.GraceOutlasts
}

// EffectivePreflightPolicy is Enforce when not declared. Nothing is known about
// what Generic runs, so there it is Disabled.
func (s *QueueWorkerSpec) EffectivePreflightPolicy() PreflightPolicy {
	switch {
	case s.EffectiveRuntime() == RuntimeGeneric:
		return PreflightDisabled
	case s.Preflight.Policy == "":
		return PreflightEnforce
	default:
		return s.Preflight.Policy
	}
}

// EffectiveFenceMode is None when not declared.
func (s *QueueWorkerSpec) EffectiveFenceMode() FenceMode {
	if s.Fence.Mode == "" {
		return FenceModeNone
	}
	return s.Fence.Mode
}

// EffectiveFenceTable is the declared table and column; for the sidecar
// queueworker_fence when not declared. An application's own table has no default
// name.
func (s *QueueWorkerSpec) EffectiveFenceTable() FenceTable {
	var t FenceTable
	if s.Fence.Table != nil {
		t = *s.Fence.Table
	}
	if s.EffectiveFenceMode() == FenceModeProxy {
		t.Name = cmp.Or(t.Name, defaultFenceTable)
	}
	if t.Name != "" {
		t.KeyColumn = cmp.Or(t.KeyColumn, defaultKeyColumn)
	}
	return t
}

// EffectiveFenceRetention is the declared retention, 30 days for settled keys
// and 7 for failed jobs when not declared.
func (s *QueueWorkerSpec) EffectiveFenceRetention() FenceRetention {
	r, done, failed := s.Fence.Retention, defaultKeepDone, defaultKeepFailed
	r.DoneSeconds, r.FailedJobsSeconds = cmp.Or(r.DoneSeconds, &done), cmp.Or(r.FailedJobsSeconds, &failed)
	return r
}

// EffectiveKeyHeader is the header that the key is sent in; empty where the
// provider is not said to remember keys.
func (p *FenceProvider) EffectiveKeyHeader() string {
	if p.KeyHeader == "" && p.KeyTTLSeconds != nil {
		return defaultKeyHeader
	}
	return p.KeyHeader
}

// KeysProtect says whether the same key sent again can have no second effect.
func (p *FenceProvider) KeysProtect() bool {
	acts := p.ActsOn5xx == nil || *p.ActsOn5xx
	return p.KeyTTLSeconds != nil && (p.StoresErrors || !acts)
}

// EffectiveKey is the entry of the Secret, dsn when not declared.
func (r *FenceSecretRef) EffectiveKey() string { return cmp.Or(r.Key, defaultSecretKey) }

// EffectiveSchema is Managed when not declared.
func (s *FenceStore) EffectiveSchema() FenceSchema { return cmp.Or(s.Schema, FenceSchemaManaged) }

// QueuesText is the queues as one word, for people.
func (s *QueueWorkerSpec) QueuesText() string {
	if len(s.Queue.Names) == 0 {
		return "(default)"
	}
	return strings.Join(s.Queue.Names, ",")
}

// MonitorEnabled says whether the queue is to be watched and the workers tell
// metrics of their own.
func (s *QueueWorkerSpec) MonitorEnabled() bool {
	return s.Monitor.Enabled == nil || *s.Monitor.Enabled
}

// Monitored says whether a monitor is made. Generic has no application to ask.
func (s *QueueWorkerSpec) Monitored() bool {
	return s.MonitorEnabled() && s.EffectiveRuntime() != RuntimeGeneric
}

// EffectiveInterval is the monitor's interval in seconds, 30 when not declared.
func (s *QueueWorkerSpec) EffectiveInterval() int32 {
	if s.Monitor.IntervalSeconds == nil {
		return defaultInterval
	}
	return *s.Monitor.IntervalSeconds
}

// EffectiveStuckAfter is after how many seconds without progress the queue is
// stuck: as declared, else 3 x the longer of jobSeconds and retryAfterSeconds, a
// year at most.
func (s *QueueWorkerSpec) EffectiveStuckAfter() int64 {
	if s.Monitor.StuckAfterSeconds != nil {
		return int64(*s.Monitor.StuckAfterSeconds)
	}
	longest := int64(s.Timeouts.JobSeconds)
	if s.Timeouts.RetryAfterSeconds != nil {
		longest = max(longest, int64(*s.Timeouts.RetryAfterSeconds))
	}
	return min(stuckFactor*longest, maxSeconds)
}
