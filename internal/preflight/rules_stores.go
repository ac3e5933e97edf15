// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

var jobsTableMissing = Rule{
	ID: "jobs-table-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "Database: the connection's `table` is not in its database, with the prefix of the database connection before its name. Not verified where the database does not answer; a SQLite file that is not there counts as that.",
		Why:    "Every pop fails, and so does every dispatch.",
		Remedy: "run the migrations (php artisan queue:table, php artisan migrate)",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.app.Queue.Driver != "database" {
			return nil
		}
		return in.table("jobs", "the queue's table", in.facts.Booted.Servers.Jobs, Finding{
			Problem:     "queue connection " + in.app.Queue.Connection,
			Consequence: "no job can be taken", Fix: "run php artisan migrate before the workers, or correct the connection's table",
		})
	},
}

// table is a finding where a table is missing or could not be looked for. Its
// problem names who needs the table.
func (in *inspection) table(question, what string, table *Table, missing Finding) []Finding {
	switch {
	case table == nil:
		return []Finding{{Severity: Unverified, Problem: fmt.Sprintf("%s cannot be looked for: %s", what, in.unanswered(question))}}
	case table.Exists:
		return nil
	default:
		missing.Problem = fmt.Sprintf("%s needs the table %s, which database connection %s does not have", missing.Problem, table.Name, table.Connection)
		return []Finding{missing}
	}
}

var failedStoreNull = Rule{
	ID: "failed-store-null", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "`queue.failed.driver` is `null`; or there is neither `dynamodb`, `database-uuids` nor `file`, and no `queue.failed.table` (with a table Laravel uses the database, whatever the driver's name).",
		Why:    "A job that has used up its tries is deleted without a trace: nobody can see that it failed or run it again.",
		Remedy: "set queue.failed.driver to database-uuids",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.app.Failed.Store != "null" {
			return nil
		}
		problem := fmt.Sprintf("%s is %s", in.source("queue.failed.driver", func(a *App) string { return orMissing(a.Failed.Driver) }), orMissing(in.app.Failed.Driver))
		if in.app.Failed.Driver != "null" {
			problem += ", and there is no queue.failed.table"
		}
		return []Finding{{
			Problem:     problem,
			Consequence: "a job that has used up its tries is gone without a trace", Fix: "set queue.failed.driver to database-uuids in " + in.fileToChange(),
		}}
	},
}

var failedTableMissing = Rule{
	ID: "failed-table-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The failed-job store is a database, and its table is not there. Not verified where the database does not answer.",
		Why:    "Filing a failed job then fails too: the job is neither in the table nor in the queue, or comes back for ever.",
		Remedy: "run the migrations (php artisan queue:failed-table, php artisan migrate)",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || !strings.HasPrefix(in.app.Failed.Store, "database") {
			return nil
		}
		return in.table("failed", "the table of failed jobs", in.facts.Booted.Servers.Failed, Finding{
			Problem:     "the store of failed jobs (queue.failed)",
			Consequence: "a job that has used up its tries cannot be filed", Fix: "run php artisan migrate before the workers, or correct queue.failed.table",
		})
	},
}

var failedStoreLocal = Rule{
	ID: "failed-store-local", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "`queue.failed.driver` is `file`.",
		Why:    "The file is in the pod and goes with it, and holds the newest hundred only.",
		Remedy: "set queue.failed.driver to database-uuids or dynamodb",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.app.Failed.Store != "file" {
			return nil
		}
		return []Finding{{
			Problem:     in.source("queue.failed.driver", func(a *App) string { return a.Failed.Driver }) + " is file",
			Consequence: "failed jobs are lost with the pod", Fix: "set queue.failed.driver to database-uuids in " + in.fileToChange(),
		}}
	},
}

var restartStoreNotShared = Rule{
	ID: "restart-store-not-shared", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "The default cache store is `array`, `file`, `apc` or `null` (`file` is the default of Laravel 8 to 10). An error where there is no store of that name.",
		Why:    "`queue:restart` and `queue:pause` leave a word in the cache, and so do unique locks, WithoutOverlapping, rate limits and maxExceptions. In such a store each pod has its own, so no word and no lock reaches another pod.",
		Remedy: "set CACHE_DRIVER (CACHE_STORE from Laravel 11 on) to redis, memcached or database",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() {
			return nil
		}
		finding := Finding{
			Problem:     fmt.Sprintf("cache.default is %q with driver %s (config/cache.php)", in.app.Cache.Store, in.app.Cache.Driver),
			Consequence: "queue:restart, unique locks and rate limits do not reach other pods", Fix: "use a store that pods share, such as redis or database",
		}
		switch {
		case in.app.Cache.Driver == "":
			finding.Severity = timeoutchain.Error
			finding.Problem = fmt.Sprintf("cache.default is %q, and cache.stores has no such store with a driver (config/cache.php)", in.app.Cache.Store)
			finding.Consequence = "no worker can start"
		case in.app.Cache.Store == "null":
			finding.Problem = "cache.default is null (config/cache.php), Laravel's store that keeps nothing"
		case !contains([]string{"array", "file", "apc", "null"}, in.app.Cache.Driver):
			return nil
		}
		return []Finding{finding}
	},
}

var logNotWritable = Rule{
	ID: "log-not-writable", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "The default log channel, or one of the channels of its stack, writes to a file that this user cannot write: on a read-only root file system, in a directory that cannot be made, or where a directory has the file's name. `single` and `daily` are looked at.",
		Why:    "The first error of a job becomes two, and the second hides the first. Before Laravel 9.52 the worker then ends with exit code 0.",
		Remedy: "set LOG_CHANNEL to stderr",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || len(in.app.UnwritableLogs) == 0 {
			return nil
		}
		return []Finding{{
			Problem:     fmt.Sprintf("the default log channel writes to %s, which cannot be written", strings.Join(in.app.UnwritableLogs, ", ")),
			Consequence: "an error of a job is hidden by the one about the log, and ends the worker", Fix: "set LOG_CHANNEL to stderr",
		}}
	},
}
