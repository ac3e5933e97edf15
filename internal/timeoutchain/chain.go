// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "slices"

// Runtime is the kind of worker process.
type Runtime string

// The runtimes.
const (
	Laravel Runtime = "Laravel" // php artisan queue:work
	Horizon Runtime = "Horizon" // php artisan horizon, which starts its own workers
	Generic Runtime = "Generic" // any command of the user's
)

// Driver is the kind of queue behind the connection.
type Driver string

// The drivers. The empty Driver means that neither the connection's name nor a
// declaration says which one it is.
const (
	Redis      Driver = "Redis"
	Database   Driver = "Database"
	SQS        Driver = "SQS"
	Beanstalkd Driver = "Beanstalkd"
	RabbitMQ   Driver = "RabbitMQ"
	Other      Driver = "Other"
)

// Outlasts is what the termination grace period has to outlast.
type Outlasts string

// What the grace outlasts.
const (
	OutlastsReservation Outlasts = "Reservation" // G > R, the default
	OutlastsJob         Outlasts = "Job"         // G > D + P + J is enough; recorded on purpose
)

// FenceMode says what makes a second run of a job harmless.
type FenceMode string

// The fence modes.
const (
	FenceNone  FenceMode = "None"  // nothing but the provider's own idempotency key
	FenceTable FenceMode = "Table" // the application keeps a fence table of its own
	FenceProxy FenceMode = "Proxy" // a sidecar stands between the worker and its provider
)

// DefaultGraceCap is the longest grace, in seconds, that a platform is assumed
// to grant: the cluster autoscaler's default.
const DefaultGraceCap = 600

// Chain is everything the rules judge: the declared timeouts and what else
// decides whether they hold. Whoever builds one resolves defaults first, so
// that an omitted number is judged as what will really apply.
type Chain struct {
	Runtime Runtime
	Driver  Driver

	HTTPConnect    Value // part of HTTP: how long one call may take to connect
	HTTP           Value // C: the longest single blocking call
	HTTPAttempts   Value // calls of one job to one provider, 1 when not declared
	HTTPRetryDelay Value // pause between two of those calls
	Job            Value // J: 0 = no limit
	RetryAfter     Value // R: 0 = hand out again at once
	Grace          Value // G as declared; not declared = derived
	GraceOutlasts  Outlasts
	GraceCap       Value // what the platform grants, DefaultGraceCap when not declared

	BeforeStop Value // D: a command that runs before the worker is asked to stop
	BlockFor   Value // how long one pop blocks
	Queues     int64 // number of queues polled, at least 1

	Tries            Value   // runs of one job; 0 = unlimited
	RetryUntil       Value   // runs are allowed this long after the dispatch; replaces Tries
	Backoff          []int64 // pauses between runs, the last one repeats
	MessageRetention Value   // how long the queue keeps a message

	UniqueFor          Value // lock taken at dispatch; 0 = never expires
	OverlapExpireAfter Value // lock held while a job runs; 0 = never expires

	StuckAfter Value // as declared: a queue in which nothing moves for so long is called stuck

	Fence          FenceMode
	ProviderKeyTTL Value // how long the provider remembers an idempotency key; not read with FenceProxy
	// What the sidecar is told, read with FenceProxy only.
	FenceStore     bool   // a database is named
	WrongTable     string // the name of its table, where the sidecar takes none of that form
	Providers      []Provider
	Claims         bool   // keys are claimed for effects that are no call
	KeepDone       Value  // how long it remembers what is done
	FailedJobsKept Value  // how old a failed job may be when somebody retries it
	FenceDeclared  []Link // the fields of the fence that were written down at all

	Worker   Worker
	Pod      Pod
	Strategy Strategy
	Pollers  []Poller
}

// Strategy is how a rollout replaces workers, in the words of the declaration; an
// empty number was not declared.
type Strategy struct {
	// PreflightFirst says that a rolling update must not stop an older worker
	// before a new one has passed its preflight.
	PreflightFirst           bool
	MaxUnavailable, MaxSurge string
}

// Worker is what the worker process was told besides its timeouts.
type Worker struct {
	Sleep           Value    // pause of an idle worker
	Rest            Value    // pause after each job
	MemoryMegabytes Value    // the worker stops itself above this
	Processes       Value    // Horizon: worker processes in one pod
	ExtraArgs       []string // words appended to the command
	Declared        []Link   // the worker fields that were written down at all
}

// Pod is what the pod template says that could break or bypass the chain.
type Pod struct {
	WorkerMissing    bool     // no container is named "worker"
	Command          bool     // the worker has a command or args of its own
	CommandMissing   bool     // the worker has no command
	PreStop          bool     // the worker has a preStop hook of its own
	Grace            Value    // terminationGracePeriodSeconds in the template
	RestartPolicy    string   // empty when not declared
	ActiveDeadline   Value    // activeDeadlineSeconds
	RunsArtisan      bool     // the worker's own command starts a worker of Laravel's
	LivenessGrace    Value    // the livenessProbe's own terminationGracePeriodSeconds
	StartupGrace     Value    // the startupProbe's own terminationGracePeriodSeconds
	MemoryLimitBytes Value    // the worker container's memory limit, in bytes
	OwnedNames       []string // containers, volumes and mounts that use a reserved name
	OwnedEnv         []string // reserved environment names with another value than ours
	Sidecars         []string // ordinary containers beside the worker
}

// Poller is another worker that polls one of the same queues of the same
// database.
type Poller struct {
	Name       string
	Job        Value
	RetryAfter Value
	SameStore  bool // both say so themselves; else it is concluded from the connection's name
}

// Link names a number of the chain, or another declaration that a rule reads.
// The names are those of the QueueWorker's own fields, without their path.
type Link string

// The links.
const (
	LinkHTTPConnect     Link = "httpConnectSeconds"
	LinkHTTP            Link = "httpSeconds"
	LinkHTTPAttempts    Link = "httpAttempts"
	LinkHTTPRetryDelay  Link = "httpRetryDelaySeconds"
	LinkJob             Link = "jobSeconds"
	LinkRetryAfter      Link = "retryAfterSeconds"
	LinkGrace           Link = "terminationGracePeriodSeconds"
	LinkGraceOutlasts   Link = "graceOutlasts"
	LinkBeforeStop      Link = "beforeStop.timeoutSeconds"
	LinkBlockFor        Link = "blockForSeconds"
	LinkConnection      Link = "connection"
	LinkDriver          Link = "driver"
	LinkQueues          Link = "names"
	LinkTries           Link = "tries"
	LinkBackoff         Link = "backoffSeconds"
	LinkRetention       Link = "messageRetentionSeconds"
	LinkUniqueFor       Link = "uniqueForSeconds"
	LinkOverlap         Link = "overlapExpireAfterSeconds"
	LinkStuckAfter      Link = "stuckAfterSeconds"
	LinkProviderKeyTTL  Link = "providerKeyTTLSeconds"
	LinkSleep           Link = "sleepSeconds"
	LinkRest            Link = "restSeconds"
	LinkMemory          Link = "memoryMegabytes"
	LinkMaxTime         Link = "maxTimeSeconds"
	LinkMaxJobs         Link = "maxJobs"
	LinkProcesses       Link = "processes"
	LinkPHP             Link = "php"
	LinkArtisan         Link = "artisan"
	LinkExtraArgs       Link = "extraArgs"
	LinkWrapper         Link = "wrapper"
	LinkSupervision     Link = "supervision"
	LinkTemplate        Link = "template"
	LinkContainers      Link = "containers"
	LinkWorkerCommand   Link = "command"
	LinkWorkerPreStop   Link = "lifecycle.preStop"
	LinkTemplateGrace   Link = "template terminationGracePeriodSeconds"
	LinkRestartPolicy   Link = "restartPolicy"
	LinkActiveDeadline  Link = "activeDeadlineSeconds"
	LinkLivenessGrace   Link = "livenessProbe.terminationGracePeriodSeconds"
	LinkStartupGrace    Link = "startupProbe.terminationGracePeriodSeconds"
	LinkMemoryLimit     Link = "resources.limits.memory"
	LinkEnv             Link = "env"
	LinkMaxUnavailable  Link = "maxUnavailable"
	LinkMaxSurge        Link = "maxSurge"
	LinkGraceCap        Link = "platform cap"
	LinkOtherWorker     Link = "another QueueWorker"
	LinkDrain           Link = "drain time"
	LinkRetryWindow     Link = "retry window"
	LinkTotalHTTP       Link = "total HTTP time"
	LinkBlockedCall     Link = "job plus one call"
	LinkMemoryOfAll     Link = "memory of all processes"
	LinkLongestBackoff  Link = "longest backoff"
	LinkFenceStore      Link = "store"
	LinkFenceTable      Link = "table.name"
	LinkFenceRetention  Link = "retention"
	LinkProviders       Link = "providers"
	LinkClaims          Link = "claims"
	LinkProviderKey     Link = "key"
	LinkProviderID      Link = "providerID"
	LinkLookup          Link = "lookup"
	LinkLookupLag       Link = "lookupLagSeconds"
	LinkProviderTimeout Link = "timeoutSeconds"
	LinkInFlight        Link = "maxInFlightSeconds"
	LinkKeyTTL          Link = "keyTTLSeconds"
	LinkKeepDone        Link = "doneSeconds"
	LinkLastStart       Link = "start of the last run"
)

// assign writes a number to the link, so that a fix can be tried. It says
// whether the link is one that a fix may change.
func (c *Chain) assign(a Assignment) bool {
	if a.Subject != "" {
		c.Providers = slices.Clone(c.Providers) // copies of a chain share them
	}
	target, ok := c.target(a)
	if ok {
		*target = a.Value
	}
	return ok
}

// raises says whether an assignment makes a declared number larger.
func (c *Chain) raises(a Assignment) bool {
	target, ok := c.target(a)
	return ok && target.Declared() && a.Value.N() > target.N()
}

// target is the number that an assignment is about.
func (c *Chain) target(a Assignment) (*Value, bool) {
	if i, ok := c.provider(a.Subject); ok && a.Subject != "" {
		return c.Providers[i].field(a.Link)
	}
	return c.field(a.Link)
}

func (p *Provider) field(l Link) (*Value, bool) {
	switch l {
	case LinkProviderTimeout:
		return &p.Timeout, true
	case LinkInFlight:
		return &p.InFlight, true
	case LinkKeyTTL:
		return &p.KeyTTL, true
	default:
		return nil, false
	}
}

// field returns the number behind a link that a user can set.
func (c *Chain) field(l Link) (*Value, bool) {
	fields := map[Link]*Value{
		LinkHTTPConnect:    &c.HTTPConnect,
		LinkHTTP:           &c.HTTP,
		LinkHTTPAttempts:   &c.HTTPAttempts,
		LinkJob:            &c.Job,
		LinkRetryAfter:     &c.RetryAfter,
		LinkGrace:          &c.Grace,
		LinkBeforeStop:     &c.BeforeStop,
		LinkBlockFor:       &c.BlockFor,
		LinkTries:          &c.Tries,
		LinkRetention:      &c.MessageRetention,
		LinkUniqueFor:      &c.UniqueFor,
		LinkOverlap:        &c.OverlapExpireAfter,
		LinkStuckAfter:     &c.StuckAfter,
		LinkProviderKeyTTL: &c.ProviderKeyTTL,
		LinkKeepDone:       &c.KeepDone,
		LinkSleep:          &c.Worker.Sleep,
		LinkRest:           &c.Worker.Rest,
		LinkMemory:         &c.Worker.MemoryMegabytes,
		LinkTemplateGrace:  &c.Pod.Grace,
		LinkActiveDeadline: &c.Pod.ActiveDeadline,
		LinkLivenessGrace:  &c.Pod.LivenessGrace,
		LinkStartupGrace:   &c.Pod.StartupGrace,
	}
	target, ok := fields[l]
	return target, ok
}
