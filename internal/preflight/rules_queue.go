// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

var connectionMissing = Rule{
	ID: "connection-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "`queue.connection` is not a key of `connections` in `config/queue.php`.",
		Why:    "The worker ends at its start: no connection of that name.",
		Remedy: "correct queue.connection, or add the connection to config/queue.php",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.app.Queue.Exists {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkConnection,
			Problem:     fmt.Sprintf("connection %q is not in config/queue.php, which has %s", in.app.Queue.Connection, strings.Join(in.app.Queue.Connections, ", ")),
			Consequence: "no worker can start", Fix: "set queue.connection to one of them, or add it to " + in.fileToChange(),
		}}
	},
}

// driverNames are Laravel's names of the drivers.
var driverNames = map[timeoutchain.Driver]string{
	timeoutchain.Redis: "redis", timeoutchain.Database: "database", timeoutchain.SQS: "sqs",
	timeoutchain.Beanstalkd: "beanstalkd", timeoutchain.RabbitMQ: "rabbitmq",
}

var driverDiffers = Rule{
	ID: "driver-differs", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The connection's `driver` in the application is another one than `queue.driver` (or than the connection's name says). With `driver: Other`, any of the drivers that have a name of their own.",
		Why:    "The rules about reservations depend on the driver: who decides when a reservation is over, what its longest may be, whether a pop blocks. With `sync` or `null` there is no queue at all.",
		Remedy: "set queue.driver to what the application uses, or correct config/queue.php (often QUEUE_CONNECTION)",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || !in.app.Queue.Exists || in.chain.Driver == "" {
			return nil
		}
		actual, declared := in.app.Queue.Driver, driverNames[in.chain.Driver]
		named := in.chain.Driver != timeoutchain.Other
		if named && actual == declared || !named && driverOf(actual) == "" && actual != "sync" && actual != "null" {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkDriver,
			Problem:     fmt.Sprintf("driver %s is declared, but %s is %q", in.chain.Driver, in.source(in.key("driver"), func(a *App) string { return a.Queue.Driver }), actual),
			Consequence: "the chain was judged by the limits of another queue", Fix: driverFix(actual),
		}}
	},
}

func driverOf(name string) timeoutchain.Driver {
	for driver, known := range driverNames {
		if known == name {
			return driver
		}
	}
	return ""
}

func driverFix(actual string) string {
	if driver := driverOf(actual); driver != "" {
		return fmt.Sprintf("set queue.driver to %s, or correct the connection's driver", driver)
	}
	return "correct the connection's driver in config/queue.php, or declare driver: Other"
}

// reservationFallback is what Laravel's connectors use where retry_after is
// missing or null, in seconds. Horizon's own has none.
const reservationFallback = 60

var retryAfterDiffers = Rule{
	ID: "retry-after-differs", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "`retry_after` of the connection is not `retryAfterSeconds`; left out or null it is 60 (under Horizon: a reservation that never ends). A warning on Redis and Database, where the worker's entry sets the declared value over it; an error there with `supervision: SignalsOnly`, which has no entry, and always on beanstalkd. On SQS the queue's `VisibilityTimeout` is compared. Other drivers keep the number elsewhere: not verified.",
		Why:    "The chain is judged with the declared number. Where another one applies, a job is handed to a second worker earlier than declared, or comes back later. Even where the entry sets it, programs without our entry that poll the same table, or dispatch, keep the old number; on Database the smallest of all pollers rules.",
		Remedy: "set retry_after to the declared number, or declare the number that applies",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || !in.app.Queue.Exists || !in.chain.RetryAfter.Declared() {
			return nil
		}
		switch in.app.Queue.Driver {
		case "redis", "database", "beanstalkd":
			return in.configuredReservation()
		case "sqs":
			return in.visibility()
		case "sync", "null":
			return nil
		default:
			return []Finding{{
				Severity: Unverified, Link: timeoutchain.LinkRetryAfter,
				Problem: fmt.Sprintf("retryAfterSeconds %d cannot be compared: driver %q takes its reservation from its server", in.chain.RetryAfter.N(), in.app.Queue.Driver),
			}}
		}
	},
}

func (in *inspection) configuredReservation() []Finding {
	setting := in.app.Queue.RetryAfter
	declared := in.chain.RetryAfter.N()
	absent, never := setting.Value == nil && setting.Text == "", in.chain.Runtime == timeoutchain.Horizon
	if setting.Value != nil && *setting.Value == declared || absent && !never && declared == reservationFallback {
		return nil
	}
	actual := setting.String()
	switch {
	case absent && never:
		actual += ", which means never under Horizon"
	case absent:
		actual += fmt.Sprintf(", which means %d", reservationFallback)
	}
	finding := Finding{
		Link: timeoutchain.LinkRetryAfter,
		Problem: fmt.Sprintf("retryAfterSeconds %d is declared, but %s is %s", declared,
			in.source(in.key("retry_after"), func(a *App) string { return a.Queue.RetryAfter.String() }), actual),
		Consequence: "the queue hands a job to another worker at that time, not at the declared one",
		Fix:         fmt.Sprintf("set retry_after to %d in %s", declared, in.fileToChange()),
	}
	if in.overridden() {
		finding.Severity = timeoutchain.Warning
		finding.Consequence = fmt.Sprintf("this worker sets %d itself, but the other number still rules wherever something else takes jobs from this queue or dispatches to it", declared)
		if in.app.Queue.Driver == "database" {
			finding.Consequence += ", and the smallest of all that poll the table decides"
		}
	}
	return []Finding{finding}
}

// overridden says whether the worker's entry sets the declared reservation.
func (in *inspection) overridden() bool {
	return in.declared.Supervision == Full && (in.app.Queue.Driver == "redis" || in.app.Queue.Driver == "database")
}

func (in *inspection) visibility() []Finding {
	declared, sqs := in.chain.RetryAfter.N(), in.facts.Booted.Servers.SQS
	switch {
	case sqs == nil:
		return []Finding{{
			Severity: Unverified, Link: timeoutchain.LinkRetryAfter,
			Problem: fmt.Sprintf("retryAfterSeconds %d cannot be compared with the queue's VisibilityTimeout: %s", declared, in.unanswered("sqs")),
		}}
	case sqs.Visibility == declared:
		return nil
	}
	return []Finding{{
		Link:        timeoutchain.LinkRetryAfter,
		Problem:     fmt.Sprintf("retryAfterSeconds %d is declared, but the queue's VisibilityTimeout on SQS is %d", declared, sqs.Visibility),
		Consequence: "SQS hands a job to another worker at that time, not at the declared one",
		Fix:         fmt.Sprintf("set the queue's VisibilityTimeout to %d, or declare retryAfterSeconds %d", declared, sqs.Visibility),
	}}
}

// unanswered says why a question to a server has no answer.
func (in *inspection) unanswered(what string) string {
	if failure, asked := in.facts.Booted.Servers.Unanswered[what]; asked {
		return failure.Message
	}
	if in.facts.Booted.App != nil {
		return "the process ended before it was asked"
	}
	return "the application did not start, so it was not asked"
}

// blockRules are the rules of the chain that the length of a pop can break.
var blockRules = []string{"block-forever", "drain-exceeds-grace", "blocked-call-past-grace"}

var blockForDiffers = Rule{
	ID: "block-for-differs", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "Redis: `block_for` of the connection is not `queue.blockForSeconds`. Where the real number breaks `block-forever`, `drain-exceeds-grace` or `blocked-call-past-grace`, that rule is reported instead, with its own severity.",
		Why:    "A pop that blocks cannot be called back when a drain begins, so its length is part of the drain time (P). The declared number decides the grace, the real one how long the pop takes.",
		Remedy: "set both to the same number",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.app.Queue.Driver != "redis" || in.chain.Runtime == timeoutchain.Generic {
			return nil
		}
		actual := in.app.Queue.BlockFor
		if actual.Text == "" && sameNumber(actual.Value, in.chain.BlockFor) {
			return nil
		}
		real := in.chain
		real.BlockFor = optional(actual.Value)
		source := fmt.Sprintf("%s is %s", in.source(in.key("block_for"), func(a *App) string { return a.Queue.BlockFor.String() }), actual)
		if found := in.broken(real, blockRules, timeoutchain.LinkBlockFor); len(found) > 0 {
			for i, f := range found {
				found[i] = f.inWordsOf(map[string]string{"blockForSeconds": "block_for"})
				found[i].Problem = source + ", so " + found[i].Problem
				found[i].Fix = in.blockFix(actual)
			}
			return found
		}
		return []Finding{{
			Link:        timeoutchain.LinkBlockFor,
			Problem:     fmt.Sprintf("blockForSeconds is %s, but %s", orUndeclared(in.chain.BlockFor), source),
			Consequence: "the grace is derived from another wait than the real one", Fix: in.blockFix(actual),
		}}
	},
}

// blockFix is the declared pop for the application, or the application's for the
// declaration, where a pop of that length can be declared at all.
func (in *inspection) blockFix(actual Setting) string {
	change, declare := "leave block_for out of "+in.fileToChange(), ""
	if in.chain.BlockFor.Positive() {
		change = fmt.Sprintf("set block_for to %d in %s", in.chain.BlockFor.N(), in.fileToChange())
	}
	switch {
	case actual.Value != nil && *actual.Value > 0:
		declare = in.declaring(timeoutchain.LinkBlockFor, *actual.Value)
	case actual.Value == nil && actual.Text == "":
		declare = "leave blockForSeconds out"
	}
	return or(change, declare)
}

func sameNumber(n *int64, v timeoutchain.Value) bool {
	return (n != nil) == v.Declared() && (n == nil || *n == v.N())
}

func orUndeclared(v timeoutchain.Value) string {
	if !v.Declared() {
		return "not declared"
	}
	return fmt.Sprint(v.N())
}

var cachedConfigHidesEnv = Rule{
	ID: "cached-config-hides-env", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "The image holds a cached configuration (`artisan config:cache`), and without it the queue connection, its driver, `retry_after`, `block_for`, the cache store or the failed-job store would be another one.",
		Why:    "With a cached configuration neither `.env` nor the environment of the pod is read: what was true when the image was built applies. Whoever sets a variable on the pod believes that it works.",
		Remedy: "build the cache when the container starts, or leave it out, or set APP_CONFIG_CACHE to a file that does not exist",
	},
	check: func(in *inspection) []Finding {
		uncached := in.facts.Uncached
		if !in.sees() || uncached == nil {
			return nil
		}
		if uncached.App == nil {
			return []Finding{{Severity: Unverified, Problem: "what the environment would give without the cached configuration cannot be read: " + uncached.Ending.Failure.String()}}
		}
		cached := in.facts.Light.App
		if cached == nil {
			return nil
		}
		var differences []string
		for _, value := range hideable {
			if was, would := value.of(cached), value.of(uncached.App); was != would && !value.told(in) {
				differences = append(differences, fmt.Sprintf("%s is %s, without the cache it would be %s", value.name, was, would))
			}
		}
		if len(differences) == 0 {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkEnv,
			Problem:     fmt.Sprintf("the cached configuration %s hides the environment: %s", cached.Laravel.CachedConfig, strings.Join(differences, "; ")),
			Consequence: "the numbers that were true when the image was built apply, whatever the pod's environment says",
			Fix:         "run config:cache when the container starts, or set APP_CONFIG_CACHE to a file that does not exist",
		}}
	},
}

// hideable are the values that a cached configuration can freeze. One that
// another rule has told already is not told again.
var hideable = []struct {
	name string
	of   func(*App) string
	told func(*inspection) bool
}{
	{"the queue connection", func(a *App) string { return a.Queue.Connection }, never},
	{"its driver", func(a *App) string { return orMissing(a.Queue.Driver) }, func(in *inspection) bool { return len(driverDiffers.check(in)) > 0 }},
	{"retry_after", func(a *App) string { return a.Queue.RetryAfter.String() }, func(in *inspection) bool { return len(retryAfterDiffers.check(in)) > 0 }},
	{"block_for", func(a *App) string { return a.Queue.BlockFor.String() }, func(in *inspection) bool { return len(blockForDiffers.check(in)) > 0 }},
	{"its queue", func(a *App) string { return orMissing(a.Queue.Queue) }, never},
	{"cache.default", func(a *App) string { return orMissing(a.Cache.Store) }, never},
	{"queue.failed.driver", func(a *App) string { return orMissing(a.Failed.Driver) }, never},
}

func never(*inspection) bool { return false }

func orMissing(text string) string {
	if text == "" {
		return "missing"
	}
	return text
}

var envNotSeen = Rule{
	ID: "env-not-seen", Severity: Unverified,
	Doc: timeoutchain.Doc{
		When:   "`kubectl queueworker preflight` only: a variable of the worker has its value from the cluster (`valueFrom`, or a `$(NAME)` that refers to such a one), and the environment of the command does not hold it; or there is an `envFrom`, whose names the file does not tell. A pod knows all of them.",
		Why:    "The application was read as if the variable were not set. Where a ConfigMap or a Secret sets the reservation, the connection or the environment's name, the real one may be another.",
		Remedy: "set the variable for the command, as the cluster will, or write its value into the template",
	},
	check: func(in *inspection) []Finding {
		if len(in.facts.UnseenEnv) == 0 {
			return nil
		}
		return []Finding{{
			Link:    timeoutchain.LinkEnv,
			Problem: fmt.Sprintf("what the cluster gives to the worker's environment is not known here: %s", strings.Join(in.facts.UnseenEnv, ", ")),
		}}
	},
}

var afterCommitOff = Rule{
	ID: "after-commit-off", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "`fence.mode: Table`, and the connection's `after_commit` is false on a driver other than database.",
		Why:    "A job that is dispatched inside a transaction can start before the commit. It then does not see the row that it was made for, or claims a key for an order that is rolled back.",
		Remedy: "set after_commit to true in config/queue.php, or dispatch with afterCommit()",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || !in.app.Queue.Exists || in.declared.Fence != timeoutchain.FenceTable || in.app.Queue.Driver == "database" || in.app.Queue.AfterCommit {
			return nil
		}
		return []Finding{{
			Problem:     fmt.Sprintf("fence.mode is Table, but %s is false", in.source(in.key("after_commit"), func(a *App) string { return fmt.Sprint(a.Queue.AfterCommit) })),
			Consequence: "a job can start before the transaction that dispatched it, and claim a key for what is rolled back",
			Fix:         "set after_commit to true in " + in.fileToChange(),
		}}
	},
}
