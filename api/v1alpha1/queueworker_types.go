// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// QueueWorker runs queue workers whose timeouts lie inside each other, so that
// no job is run a second time while the first run is still going: HTTP call <
// job < reservation < termination grace period.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=qw,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Available workers of those wanted."
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Consuming")].reason`,description="What the queue does: Empty, Busy, Stuck, Stopped, Paused or Unknown, or why nobody can tell."
// +kubebuilder:printcolumn:name="Depth",type=integer,JSONPath=`.status.queueState.depth`,description="Jobs that wait or are being worked on; no number where nobody can tell."
// +kubebuilder:printcolumn:name="Oldest",type=integer,JSONPath=`.status.queueState.oldestSeconds`,description="Seconds for which the oldest waiting job could have been taken."
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.queueState.failed`,description="Jobs that failed within the last hour."
// +kubebuilder:printcolumn:name="Chain",type=string,JSONPath=`.status.chain`,description="HTTP < job < reservation < grace, in seconds; >= where a link is broken."
// +kubebuilder:printcolumn:name="Queues",type=string,JSONPath=`.status.queues`,description="Queues in priority order."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Grace",type=integer,JSONPath=`.status.terminationGracePeriodSeconds`,description="Seconds a worker gets to finish its job.",priority=1
// +kubebuilder:printcolumn:name="Observed",type=date,JSONPath=`.status.queueState.observedTime`,description="How long ago the monitor wrote the numbers.",priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtime`,priority=1
// +kubebuilder:printcolumn:name="Connection",type=string,JSONPath=`.spec.queue.connection`,priority=1
// +kubebuilder:printcolumn:name="Draining",type=integer,JSONPath=`.status.terminatingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Fence",type=string,JSONPath=`.status.fence`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type QueueWorker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the worker as you want it: where the jobs come from (queue), how
	// long each step may take (timeouts), and the pod that runs it (template).
	// +required
	Spec QueueWorkerSpec `json:"spec"`

	// Status is what was last observed. It starts with observedGeneration -1,
	// so that tools see a new object as in progress rather than as done.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status QueueWorkerStatus `json:"status,omitempty"`
}

// QueueWorkerList is a list of QueueWorkers.
//
// +kubebuilder:object:root=true
type QueueWorkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QueueWorker `json:"items"`
}

// Runtime is the kind of worker process.
// +kubebuilder:validation:Enum=Laravel;Horizon;Generic
type Runtime string

// The runtimes.
const (
	RuntimeLaravel Runtime = "Laravel"
	RuntimeHorizon Runtime = "Horizon"
	RuntimeGeneric Runtime = "Generic"
)

// Driver is the kind of queue behind a connection.
// +kubebuilder:validation:Enum=Redis;Database;SQS;Beanstalkd;RabbitMQ;Other
type Driver string

// The drivers.
const (
	DriverRedis      Driver = "Redis"
	DriverDatabase   Driver = "Database"
	DriverSQS        Driver = "SQS"
	DriverBeanstalkd Driver = "Beanstalkd"
	DriverRabbitMQ   Driver = "RabbitMQ"
	DriverOther      Driver = "Other"
)

// QueueWorkerSpec is the worker as you want it.
type QueueWorkerSpec struct {
	// Runtime is what runs in the worker container. Laravel: `php artisan
	// queue:work` with options rendered from this spec. Horizon: `php artisan
	// horizon`, which starts its own workers from config/horizon.php. Generic:
	// the command in the template. Default Laravel. It decides which fields of
	// worker apply.
	// +optional
	// +kubebuilder:default=Laravel
	Runtime Runtime `json:"runtime,omitempty"`

	// Replicas is the number of worker pods. Default 1; 0 stops the worker on
	// purpose. An autoscaler targets the QueueWorker through its scale
	// subresource, never the Deployment behind it; then leave this field out of
	// Git.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Queue says where the jobs come from: a connection and the names of its
	// queues. Required.
	// +required
	Queue Queue `json:"queue"`

	// Timeouts is the chain: httpSeconds < jobSeconds < retryAfterSeconds <
	// terminationGracePeriodSeconds, all in seconds. Required; a spec that breaks
	// it is refused.
	// +required
	Timeouts Timeouts `json:"timeouts"`

	// Retries says how often and how soon a failed job is run again. Together
	// with retryAfterSeconds it decides how late a job's last run can be, the
	// retry window. Default: 3 tries for Laravel.
	// +optional
	// +kubebuilder:default={}
	Retries Retries `json:"retries,omitempty"`

	// Locks declares the locks that the job classes use, so that they can be
	// compared with jobSeconds and the retry window. Nothing is rendered from
	// them. Default: none are judged.
	// +optional
	// +kubebuilder:default={}
	Locks Locks `json:"locks,omitempty"`

	// Worker holds options of the worker process. Laravel uses all of them but
	// processes; Horizon only php, artisan, extraArgs, wrapper, supervision, and
	// memoryMegabytes and processes for the memory rule; Generic none. Each field
	// has a default of its own.
	// +optional
	// +kubebuilder:default={}
	Worker Worker `json:"worker,omitempty"`

	// Drain says how a worker is stopped. Its time is part of the chain:
	// beforeStop + a pop under way + jobSeconds < grace. Default: no command, and
	// the grace outlasts the reservation.
	// +optional
	// +kubebuilder:default={}
	Drain Drain `json:"drain,omitempty"`

	// Preflight compares the application in the image with this spec before a
	// worker starts, in an init container. Default: it is enforced.
	// +optional
	// +kubebuilder:default={}
	Preflight Preflight `json:"preflight,omitempty"`

	// Monitor watches the queue from a pod of its own, in the application's image:
	// how much waits and for how long, whether anything moves, what fails. Default:
	// it is on; Generic has no application to ask, so none is made there.
	// +optional
	Monitor Monitor `json:"monitor,omitempty"`

	// Fence says what makes a second run of a job harmless: nothing, a table of
	// the application's own, or a sidecar that calls each operation's provider at
	// most once. Default: nothing does, beyond a provider's own key.
	// +optional
	// +kubebuilder:default={}
	Fence Fence `json:"fence,omitempty"`

	// PodDisruptionBudget, when set, limits how many workers a node drain may
	// stop at once. Unset: no budget is made. Exactly one of maxUnavailable and
	// minAvailable.
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`

	// Strategy is the Deployment's strategy. Default RollingUpdate with
	// maxSurge 25% and maxUnavailable 25%; while the preflight is enforced,
	// maxUnavailable is 0 and maxSurge at least 1. Workers that are still
	// draining are not counted by either number.
	// +optional
	Strategy appsv1.DeploymentStrategy `json:"strategy,omitempty"`

	// Template is the pod. Its container named `worker` is the worker. The
	// worker's command (Laravel, Horizon), its preStop hook and the pod's
	// terminationGracePeriodSeconds are rendered from this spec and refused
	// here. An agent is added that starts and drains the worker. Required.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`
}

// Queue says where the jobs come from.
type Queue struct {
	// Connection is the connection's name in config/queue.php, the argument of
	// queue:work. It also decides the driver where its name is redis, database,
	// sqs, beanstalkd or rabbitmq. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	Connection string `json:"connection"`

	// Driver is the kind of queue behind the connection. Default: what the
	// connection's name says; Laravel needs it where the name says nothing,
	// Horizon is always Redis.
	// +optional
	Driver Driver `json:"driver,omitempty"`

	// Names are the queues in priority order, the --queue option. Unset: the
	// connection's own queue. Each name adds one blockForSeconds to the time a
	// drain may take.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[^,\s]+$`
	Names []string `json:"names,omitempty"`

	// BlockForSeconds is the connection's block_for, in seconds: how long one
	// pop waits for a job (Redis and beanstalkd). Unset: pops do not wait. 0 on
	// Redis waits until a job arrives. (blockForSeconds + 1) x queues is added
	// to jobSeconds in the drain and must fit below the grace.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	BlockForSeconds *int32 `json:"blockForSeconds,omitempty"`

	// MessageRetentionSeconds is how long the queue keeps a message, in
	// seconds; every step of backoffSeconds must be below it. Unset: for ever.
	// SQS: 60 to 1209600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	MessageRetentionSeconds *int32 `json:"messageRetentionSeconds,omitempty"`

	// Store names the backend that this queue shares with the queues of other
	// QueueWorkers in the namespace, such as shop-mysql. Unset: workers with the
	// same connection are taken to share it, but only warned. Two workers of one
	// Database store must keep each jobSeconds below the other's
	// retryAfterSeconds.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Store string `json:"store,omitempty"`
}

// Timeouts is the chain, in seconds.
type Timeouts struct {
	// HTTPConnectSeconds is how long a call may take to connect, in seconds; it
	// is part of httpSeconds and at most that. Unset: not judged. Laravel:
	// Http::connectTimeout().
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	HTTPConnectSeconds *int32 `json:"httpConnectSeconds,omitempty"`

	// HTTPSeconds is the longest single blocking call of a job, in seconds,
	// usually an HTTP request; SQL and sockets count too. All attempts together
	// must be below jobSeconds. Unset: admitted with a warning, since such a
	// call can hold a job past every other limit. Laravel: Http::timeout().
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	HTTPSeconds *int32 `json:"httpSeconds,omitempty"`

	// HTTPAttempts is how many calls one job makes to one provider at most;
	// httpSeconds x httpAttempts must be below jobSeconds. Default 1. Laravel:
	// Http::retry().
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	HTTPAttempts *int32 `json:"httpAttempts,omitempty"`

	// HTTPRetryDelaySeconds is the pause between two of those calls, in
	// seconds; the pauses count towards the total that must be below jobSeconds.
	// Default 0. Laravel: the second argument of Http::retry(), there in
	// milliseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	HTTPRetryDelaySeconds *int32 `json:"httpRetryDelaySeconds,omitempty"`

	// JobSeconds is when the worker kills a job, in seconds; above all HTTP
	// attempts together and below retryAfterSeconds. 0 means no limit and is
	// accepted only for Generic without a reservation. Required. Laravel:
	// --timeout, $timeout.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	JobSeconds int32 `json:"jobSeconds"`

	// RetryAfterSeconds is the reservation, in seconds: after it the queue hands
	// the job to another worker, whatever the first one is doing. Above
	// jobSeconds and below the grace. Unset: accepted only for Generic, where it
	// means that the queue never does so. Laravel: retry_after; SQS: the
	// visibility timeout; RabbitMQ: consumer_timeout.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	RetryAfterSeconds *int32 `json:"retryAfterSeconds,omitempty"`

	// TerminationGracePeriodSeconds is the time between the request to stop and
	// SIGKILL, in seconds; above retryAfterSeconds and above beforeStop + pop +
	// jobSeconds. Default: derived, max(retryAfterSeconds, beforeStop + pop +
	// jobSeconds + httpSeconds) + 10. A long grace costs nothing while workers
	// are healthy: a drained pod leaves at once. Supervisor: stopwaitsecs.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

// Retries says how often and how soon a failed job is run again.
type Retries struct {
	// Tries is how many runs a job may have. 0 means unlimited and is refused
	// for Laravel and Horizon unless retryUntilSeconds is set. Default 3 for
	// Laravel; not judged for the other runtimes when unset. Laravel: --tries,
	// $tries.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Tries *int32 `json:"tries,omitempty"`

	// BackoffSeconds are the pauses before the second run, the third and so on,
	// in seconds; the last one repeats. Each must be below
	// messageRetentionSeconds. Default for Laravel: the first tries - 1 of [10,
	// 60]. Laravel: --backoff, $backoff.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=31536000
	BackoffSeconds []int32 `json:"backoffSeconds,omitempty"`

	// RetryUntilSeconds is how long after its dispatch a job may be run, in
	// seconds; it replaces tries. Unset: tries decides. Laravel: retryUntil(),
	// there a point in time.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	RetryUntilSeconds *int32 `json:"retryUntilSeconds,omitempty"`
}

// Locks declares the locks that the job classes use.
type Locks struct {
	// UniqueForSeconds is how long ShouldBeUnique keeps its lock, in seconds;
	// at least the retry window of retries and retryAfterSeconds, or 0 for no
	// expiry. Unset: not judged. Laravel: $uniqueFor.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	UniqueForSeconds *int32 `json:"uniqueForSeconds,omitempty"`

	// OverlapExpireAfterSeconds is how long WithoutOverlapping keeps its lock,
	// in seconds; above jobSeconds + httpSeconds, or 0 for no expiry. Unset: not
	// judged. Laravel: expireAfter().
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	OverlapExpireAfterSeconds *int32 `json:"overlapExpireAfterSeconds,omitempty"`
}

// Supervision is how much the agent knows of the worker that it runs.
// +kubebuilder:validation:Enum=Full;SignalsOnly
type Supervision string

// How much the agent knows.
const (
	SupervisionFull        Supervision = "Full"
	SupervisionSignalsOnly Supervision = "SignalsOnly"
)

// Worker holds options of the worker process.
type Worker struct {
	// MemoryMegabytes is when a worker stops itself between two jobs, in MiB;
	// below the container's memory limit (Horizon: times processes). Default
	// 128 for Laravel. Laravel: --memory.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	MemoryMegabytes *int32 `json:"memoryMegabytes,omitempty"`

	// MaxTimeSeconds is the age at which a worker stops itself between two
	// jobs, in seconds; it never cuts a job, whatever jobSeconds is. Default 0:
	// no limit. Laravel: --max-time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	MaxTimeSeconds *int32 `json:"maxTimeSeconds,omitempty"`

	// MaxJobs is the number of jobs after which a worker stops itself. Default
	// 0: no limit; like maxTimeSeconds it never cuts a job. Laravel: --max-jobs.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	MaxJobs *int32 `json:"maxJobs,omitempty"`

	// SleepSeconds is how long an idle worker waits before it looks again, in
	// seconds; below jobSeconds, since the job's alarm stays armed meanwhile.
	// Default 3 for Laravel. Laravel: --sleep.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	SleepSeconds *int32 `json:"sleepSeconds,omitempty"`

	// RestSeconds is the pause after each job, in seconds; below jobSeconds.
	// Default 0. Laravel 8.32 and later: --rest.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	RestSeconds *int32 `json:"restSeconds,omitempty"`

	// Processes is how many workers Horizon runs in one pod, for the memory
	// rule only: memoryMegabytes x processes is compared with the container's
	// memory limit. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Processes *int32 `json:"processes,omitempty"`

	// PHP is the php binary, a name in PATH or a path, put before artisan.
	// Default php.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PHP string `json:"php,omitempty"`

	// Artisan is the path of the artisan file, relative to the container's
	// working directory; put after php. Default artisan.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Artisan string `json:"artisan,omitempty"`

	// ExtraArgs are appended to the rendered command, such as --force. Options
	// rendered from other fields of this spec are refused here, and $(NAME) is
	// passed on as it is, not replaced. Default none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// Wrapper is the image's entrypoint script, such as [/entrypoint.sh]: words
	// put before php, without a shell. The rendered command replaces the image's
	// ENTRYPOINT, so a script that prepares the application must be named here;
	// it must run the words that it is given, at best with exec "$@". $(NAME) is
	// passed on as it is. Default none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Wrapper []string `json:"wrapper,omitempty"`

	// Supervision is how much the agent knows of the worker. Full: PHP files of
	// the operator run in it, so that a drain waits for the running job, a job
	// that outlives every limit is killed before retryAfterSeconds, and
	// retryAfterSeconds is set over the application's own number. SignalsOnly:
	// plain artisan, which gets SIGTERM when the drain begins. Default Full.
	// +optional
	Supervision Supervision `json:"supervision,omitempty"`
}

// GraceOutlasts says what the termination grace period has to outlast.
// +kubebuilder:validation:Enum=Reservation;Job
type GraceOutlasts string

// What the grace outlasts.
const (
	GraceOutlastsReservation GraceOutlasts = "Reservation"
	GraceOutlastsJob         GraceOutlasts = "Job"
)

// Drain says how a worker is stopped.
type Drain struct {
	// GraceOutlasts is what the termination grace period has to outlast.
	// Reservation: retryAfterSeconds, the whole chain. Job: only beforeStop +
	// pop + jobSeconds, for platforms that cap the grace below the reservation;
	// the choice stays visible as a warning. Default Reservation.
	// +optional
	// +kubebuilder:default=Reservation
	GraceOutlasts GraceOutlasts `json:"graceOutlasts,omitempty"`

	// BeforeStop is a command run in the worker container before the worker is
	// asked to stop. Not horizon:pause, whose signal ends a sleep() in a running
	// job. Default none. Its timeout is part of the grace.
	// +optional
	BeforeStop *BeforeStop `json:"beforeStop,omitempty"`
}

// BeforeStop is a command run before the worker is asked to stop.
type BeforeStop struct {
	// Command is run without a shell. Required. The worker's own time to drain
	// starts when it has ended, at the latest after timeoutSeconds. $(NAME) is
	// passed on as it is.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command"`

	// TimeoutSeconds is how long the command may take, in seconds; then it is
	// killed. beforeStop + pop + jobSeconds must be below the grace. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	TimeoutSeconds int32 `json:"timeoutSeconds"`
}

// PreflightPolicy is what follows from a preflight that finds an error.
// +kubebuilder:validation:Enum=Enforce;Warn;Disabled
type PreflightPolicy string

// What follows from an error.
const (
	PreflightEnforce  PreflightPolicy = "Enforce"
	PreflightWarn     PreflightPolicy = "Warn"
	PreflightDisabled PreflightPolicy = "Disabled"
)

// Preflight compares the application in the image with the spec.
type Preflight struct {
	// Policy is what an error leads to. Enforce: the pod does not become a
	// worker, so a rollout stops before an older worker leaves. Warn: it is
	// told. Disabled: nothing is compared. Default Enforce; Generic has none.
	// +optional
	Policy PreflightPolicy `json:"policy,omitempty"`
}

// PodDisruptionBudget limits how many workers a node drain may stop at once.
// +kubebuilder:validation:ExactlyOneOf=maxUnavailable;minAvailable
type PodDisruptionBudget struct {
	// MaxUnavailable is how many workers may be missing, a number or a
	// percentage; excludes minAvailable. A worker that drains counts as missing
	// until its replacement is ready. No default.
	// +optional
	// +kubebuilder:validation:XIntOrString
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MinAvailable is how many workers must stay, a number or a percentage;
	// excludes maxUnavailable. No default.
	// +optional
	// +kubebuilder:validation:XIntOrString
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// QueueWorkerStatus is what was last observed.
type QueueWorkerStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks
	// of; -1 until the first look. Compare it with metadata.generation.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Chain is the chain in one word, in seconds: all HTTP attempts < job <
	// reservation < grace. >= marks a broken link, ~ one that graceOutlasts: Job
	// gives up, ? a number nobody declared, - one that does not exist. No
	// default.
	// +optional
	Chain string `json:"chain,omitempty"`

	// TerminationGracePeriodSeconds is the grace that the workers get, in
	// seconds: as declared in timeouts, or derived from the chain.
	// +optional
	TerminationGracePeriodSeconds int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Fence is what the FENCE column prints: Table, or each provider behind the
	// sidecar with what it offers. A stores results and errors, B only
	// successes, B' has keys that do not protect, C can be asked, C-strict can
	// be asked but not believed when it shows nothing, D offers nothing, as do
	// claims.
	// +optional
	Fence string `json:"fence,omitempty"`

	// Ready is what the READY column prints: available workers / wanted ones.
	// +optional
	Ready string `json:"ready,omitempty"`

	// Queues is what the QUEUES column prints: the names of spec.queue, or
	// (default) for the connection's own queue.
	// +optional
	Queues string `json:"queues,omitempty"`

	// Replicas is the number of worker pods that are not being stopped; the
	// scale subresource reads it beside selector.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is how many of replicas are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// UpdatedReplicas is how many of replicas run the newest template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// TerminatingReplicas is how many workers are being stopped and may still
	// finish a job; they are not part of replicas.
	// +optional
	TerminatingReplicas int32 `json:"terminatingReplicas,omitempty"`

	// QueueState is what the monitor saw of the queue last. It is written by the
	// monitor, and removed when the monitor has been silent for so long that its
	// numbers say nothing about now.
	// +optional
	QueueState *QueueState `json:"queueState,omitempty"`

	// Selector selects the worker pods, as text, for autoscalers that read the
	// scale subresource beside replicas.
	// +optional
	Selector string `json:"selector,omitempty"`

	// LastDrain is the last worker seen to stop with no job disturbed.
	// +optional
	LastDrain *LastDrain `json:"lastDrain,omitempty"`

	// LastKill is the last worker seen to end in any other way.
	// +optional
	LastKill *LastKill `json:"lastKill,omitempty"`

	// Conditions: Ready, Reconciling and Stalled as GitOps tools expect them,
	// ChainIntact, Draining, GraceHonored, PreflightPassed and Consuming, and with
	// a sidecar FenceReady. The manual lists every reason.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LastDrain is a worker that stopped with no job disturbed.
type LastDrain struct {
	// Pod is the name of the pod in which it worked.
	Pod string `json:"pod"`

	// FinishTime is the moment at which the worker had ended.
	FinishTime metav1.Time `json:"finishTime"`

	// DurationSeconds is the time from the request to stop to the end, in seconds.
	DurationSeconds int64 `json:"durationSeconds"`

	// Job is the class and uuid of the job that it waited for, where known.
	// +optional
	Job string `json:"job,omitempty"`
}

// KillReason says why a worker was killed.
type KillReason string

// The reasons. They are stable API, and reasons of events too.
const (
	// KillGraceEnded: the job outlasted the whole promised grace.
	KillGraceEnded KillReason = "GraceEnded"
	// KillGraceCut: the worker had less time than it was promised.
	KillGraceCut KillReason = "GraceCut"
	// KillOverran: the watchdog ended a job that outlived its own limit.
	KillOverran KillReason = "Overran"
	// KillOOMKilled: the kernel killed it for its memory.
	KillOOMKilled KillReason = "OOMKilled"
	// KillEvicted: the pod was evicted with less time than it was promised.
	KillEvicted KillReason = "Evicted"
	// KillCrashed: it ended by itself without being asked, or somebody else
	// killed it.
	KillCrashed KillReason = "Crashed"
)

// KillReasons are all reasons.
func KillReasons() []KillReason {
	return []KillReason{KillGraceEnded, KillGraceCut, KillOverran, KillOOMKilled, KillEvicted, KillCrashed}
}

// LastKill is a worker that was killed, or that crashed.
type LastKill struct {
	// Pod is the name of the pod in which it worked.
	Pod string `json:"pod"`

	// Time is the moment at which the worker had ended.
	Time metav1.Time `json:"time"`

	// Reason is GraceEnded, GraceCut, Overran, OOMKilled, Evicted or Crashed.
	Reason KillReason `json:"reason"`

	// Job is the class and uuid of the job that was cut short, where known.
	// +optional
	Job string `json:"job,omitempty"`

	// Message says how long it had, what it was promised and what to change.
	// +optional
	Message string `json:"message,omitempty"`
}
