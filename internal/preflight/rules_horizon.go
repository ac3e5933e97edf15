// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// longJob is from where on, in seconds, a job is worth not being disturbed by
// Horizon's scaling.
const longJob = 60

// running are the supervisors that have a process. Horizon does not start the
// others.
func (h *Horizon) running() []Supervisor {
	return slices.DeleteFunc(slices.Clone(h.Supervisors), func(s Supervisor) bool { return s.MaxProcesses < 1 })
}

// supervisors are those that work on the declared connection, where the worker
// is Horizon.
func (in *inspection) supervisors() []Supervisor {
	if !in.sees() || in.chain.Runtime != timeoutchain.Horizon || in.app.Horizon == nil {
		return nil
	}
	var kept []Supervisor
	for _, s := range in.app.Horizon.running() {
		if s.Connection == in.app.Queue.Connection {
			kept = append(kept, s)
		}
	}
	return kept
}

// place is the part of the configuration that Horizon takes.
func (h *Horizon) place() string {
	which := ""
	if h.Chosen != h.Environment {
		which = fmt.Sprintf(", the first key that fits %q,", h.Environment)
	}
	return fmt.Sprintf("environments.%s in config/horizon.php%s", h.Chosen, which)
}

// reorder is what to do with a pattern that hides a key behind it; empty where
// Horizon takes the environment's own name.
func (h *Horizon) reorder() string {
	if h.Chosen == h.Environment || len(h.Environments) < 2 {
		return ""
	}
	return fmt.Sprintf("move %q behind the keys that it hides", h.Chosen)
}

func (s Supervisor) place() string { return fmt.Sprintf("supervisor %s (config/horizon.php)", s.Name) }

// scales says whether this Horizon starts and ends workers of the supervisor as
// jobs come and go. An unknown version is a new one.
func (s Supervisor) scales(horizon version) bool {
	if s.MaxProcesses <= s.MinProcesses || s.Balance == "simple" {
		return false
	}
	return s.Balance == "auto" || !horizon.known() || !horizon.below(5, 26, 0)
}

var horizonMissing = Rule{
	ID: "horizon-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "`runtime: Horizon`, and the application has no configuration `horizon`, neither its own nor the one that the package brings along.",
		Why:    "Horizon is not installed: `php artisan horizon` does not exist.",
		Remedy: "install laravel/horizon (php artisan horizon:install), or use runtime: Laravel",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.chain.Runtime != timeoutchain.Horizon || in.app.Horizon != nil {
			return nil
		}
		return []Finding{{
			Problem:     "runtime Horizon is declared, but the application has no configuration horizon",
			Consequence: "php artisan horizon does not exist",
			Fix:         "run php artisan horizon:install when the image is built, or use runtime: Laravel",
		}}
	},
}

var horizonEnvironmentMissing = Rule{
	ID: "horizon-environment-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "No key of `environments` in `config/horizon.php` fits the environment (`--environment` in `extraArgs`, else `horizon.env`, else APP_ENV), or the one that Horizon takes has no supervisor with a process (`maxProcesses` above 0). Keys may be patterns, such as `prod*`. Horizon takes the first key that fits, in the order of the file: a `*` before `production` hides it.",
		Why:    "Horizon starts without a word and runs no supervisor: the pod is healthy and no job is ever taken.",
		Remedy: "add the environment to config/horizon.php, or set APP_ENV to one that is there; move patterns behind the names that they also fit",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.chain.Runtime != timeoutchain.Horizon || in.app.Horizon == nil || len(in.app.Horizon.running()) > 0 {
			return nil
		}
		h := in.app.Horizon
		finding := Finding{
			Problem:     fmt.Sprintf("the environment is %q, but environments in config/horizon.php has %s", h.Environment, orMissing(strings.Join(h.Environments, ", "))),
			Consequence: "Horizon runs no supervisor, and no job is taken",
			Fix:         "add the environment to config/horizon.php, or set APP_ENV to one that is there",
		}
		if h.Chosen != "" {
			finding.Problem = fmt.Sprintf("%s has no supervisor with a maxProcesses above 0", h.place())
			finding.Fix = or(fmt.Sprintf("give environments.%s a supervisor with processes", h.Chosen), h.reorder())
		}
		return []Finding{finding}
	},
}

var horizonQueueUnserved = Rule{
	ID: "horizon-queue-unserved", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "Under Horizon no supervisor with a process (`maxProcesses` above 0) works on `queue.connection`, or none of them on one of `queue.names`.",
		Why:    "Jobs of that queue wait for ever.",
		Remedy: "add the queue to a supervisor in config/horizon.php, or correct queue.names",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.app.Horizon == nil || in.chain.Runtime != timeoutchain.Horizon || len(in.app.Horizon.running()) == 0 {
			return nil
		}
		h, serving := in.app.Horizon, in.supervisors()
		if len(serving) == 0 {
			return []Finding{{
				Link:        timeoutchain.LinkConnection,
				Problem:     fmt.Sprintf("%s has no supervisor with connection %s and a process", h.place(), in.app.Queue.Connection),
				Consequence: "no job of this connection is taken", Fix: "correct the supervisors' connection, or queue.connection",
			}}
		}
		var served []string
		for _, s := range serving {
			served = append(served, s.Queues...)
		}
		var findings []Finding
		for _, queue := range in.declared.Queues {
			if !contains(served, queue) {
				findings = append(findings, Finding{
					Link: timeoutchain.LinkQueues, Subject: queue,
					Problem:     fmt.Sprintf("queue %q is declared, but the supervisors of %s have %s", queue, h.place(), strings.Join(served, ", ")),
					Consequence: "its jobs are never taken", Fix: or(fmt.Sprintf("add %q to a supervisor's queue, or remove it from queue.names", queue), h.reorder()),
				})
			}
		}
		return findings
	},
}

var horizonLimits = Rule{
	ID: "", // the chain's own rules
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, s := range in.supervisors() {
			findings = append(findings, in.supervisorFindings(s)...)
		}
		return findings
	},
}

func (in *inspection) supervisorFindings(s Supervisor) []Finding {
	timeout := &Limit{Numbers: []int64{s.Timeout}, By: "timeout", File: "config/horizon.php"}
	findings := in.timeoutFindings(Class{Name: "supervisor " + s.Name, Timeout: timeout}, s.Timeout)
	real := in.chain
	real.Tries = timeoutchain.Of(s.Tries)
	for _, f := range in.broken(real, []string{"retries-unbounded", "key-ttl-below-retry-window"}, timeoutchain.LinkTries) {
		f.Subject = s.Name
		f.Problem = fmt.Sprintf("%s: %s", s.place(), f.Problem)
		findings = append(findings, f)
	}
	return findings
}

var horizonTimeoutBelowClass = Rule{
	ID: "horizon-timeout-below-class", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "A supervisor's `timeout` is below the `$timeout` of a job class that it may run.",
		Why:    "When Horizon stops, it waits as long as the longest supervisor timeout and then leaves; as the first process of a container it takes its workers along. When it scales down it kills a worker that is older than the supervisor's timeout. Both cut jobs that are inside their own limit.",
		Remedy: "raise the supervisor's timeout to the longest $timeout of its jobs",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, s := range in.supervisors() {
			for _, c := range in.classes() {
				timeout := c.number("timeout", c.Timeout)
				if timeout == nil || *timeout <= s.Timeout || s.Timeout <= 0 || c.Queue != nil && c.Queue.Text != "" && !contains(s.Queues, c.Queue.Text) {
					continue
				}
				findings = append(findings, Finding{
					Subject: c.Name, Link: timeoutchain.LinkJob,
					Problem:     fmt.Sprintf("%s: timeout %d is below %s %d of %s (%s)", s.place(), s.Timeout, c.Timeout.By, *timeout, c.Name, c.Timeout.File),
					Consequence: "Horizon kills such a job when it stops or scales down, inside the job's own limit",
					Fix:         fmt.Sprintf("set timeout of supervisor %s to at least %d, or %s of %s to at most %d", s.Name, *timeout, c.Timeout.By, c.Name, s.Timeout),
				})
			}
		}
		return findings
	},
}

var horizonFastTermination = Rule{
	ID: "horizon-fast-termination", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "`fast_termination` is true in `config/horizon.php`.",
		Why:    "Horizon then leaves without waiting for its workers. In a container they are killed with it, in the middle of their jobs.",
		Remedy: "set fast_termination to false",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.chain.Runtime != timeoutchain.Horizon || in.app.Horizon == nil || !in.app.Horizon.FastTermination {
			return nil
		}
		return []Finding{{
			Problem:     fmt.Sprintf("fast_termination is true in config/horizon.php, while jobSeconds is %d", in.chain.Job.N()),
			Consequence: "Horizon leaves without waiting, and the container's end kills its workers in the middle of their jobs",
			Fix:         "set fast_termination to false",
		}}
	},
}

var horizonBalanceLongJobs = Rule{
	ID: "horizon-balance-long-jobs", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "A supervisor scales (`balance` is not `simple`, and `maxProcesses` is above `minProcesses`, which is 1 when not set), and its jobs may run for 60 s or longer. Before Horizon 5.26 only `auto` scales.",
		Why:    "When Horizon scales down it sends SIGTERM to a busy worker. The job goes on, but PHP's sleep() in it ends at once: a job that waits goes on as if the time had passed. Horizon starts with `maxProcesses` and scales down right away while the queue is empty.",
		Remedy: "set minProcesses to maxProcesses for supervisors with long jobs, or balance to simple, which keeps maxProcesses",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, s := range in.supervisors() {
			if !s.scales(parseVersion(in.app.Laravel.Horizon)) || s.Timeout < longJob {
				continue
			}
			findings = append(findings, Finding{
				Subject:     s.Name,
				Problem:     fmt.Sprintf("%s: balance %s with %d to %d processes, and jobs of up to %d s", s.place(), s.Balance, s.MinProcesses, s.MaxProcesses, s.Timeout),
				Consequence: "scaling down signals busy workers, which cuts a sleep() in their job short",
				Fix:         fmt.Sprintf("set minProcesses of supervisor %s to %d, or its balance to simple", s.Name, s.MaxProcesses),
			})
		}
		return findings
	},
}

var horizonOnCluster = Rule{
	ID: "horizon-on-cluster", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "Horizon's queue connection uses a Redis Cluster.",
		Why:    "Horizon does not support Redis Cluster: its scripts touch keys of several slots.",
		Remedy: "use a Redis without cluster mode for the queue, or runtime: Laravel",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.chain.Runtime != timeoutchain.Horizon || !in.clustered() {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkConnection,
			Problem:     fmt.Sprintf("runtime Horizon is declared, but Redis connection %s is a cluster", in.app.Redis.Connection),
			Consequence: "Horizon does not support Redis Cluster", Fix: "use a Redis without cluster mode, or runtime: Laravel",
		}}
	},
}
