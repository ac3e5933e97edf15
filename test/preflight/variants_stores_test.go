// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import "github.com/queueworker/operator/internal/timeoutchain"

var ofStores = []variant{
	{
		name: "failed jobs go nowhere", rule: "failed-store-null",
		defect: func(a *app) { a.set("QUEUE_FAILED_DRIVER", "null") },
		twin:   func(a *app) { a.set("QUEUE_FAILED_DRIVER", "database") },
	},
	{
		name: "no store of failed jobs", rule: "failed-store-null",
		defect: func(a *app) { a.edit("config/queue.php", "'failed' =>", "'filed' =>") },
	},
	{
		name: "failed jobs in the pod", rule: "failed-store-local",
		defect: func(a *app) { a.set("QUEUE_FAILED_DRIVER", "file") },
	},
	{
		name: "no table of failed jobs", rule: "failed-table-missing",
		defect: func(a *app) { a.sql("sqlite:"+a.dir+"/shop.sqlite", "drop table failed_jobs") },
		twin: func(a *app) {
			a.sql("sqlite:"+a.dir+"/shop.sqlite", "alter table failed_jobs rename to failures")
			a.edit("config/queue.php", "'failed_jobs'", "'failures'")
		},
	},
	{
		name: "no table of jobs", rule: "jobs-table-missing",
		defect: func(a *app) { a.onDatabase(); a.set("DB_QUEUE_TABLE", "job_queue") },
		twin: func(a *app) {
			a.onDatabase()
			a.set("DB_QUEUE_TABLE", "job_queue")
			a.sql("sqlite:"+a.dir+"/shop.sqlite", "alter table jobs rename to job_queue")
		},
	},
	{name: "cache in the process", rule: "restart-store-not-shared", defect: func(a *app) { a.set("CACHE_DRIVER", "array") }, twin: func(a *app) { a.set("CACHE_DRIVER", "redis") }},
	{name: "cache that keeps nothing", rule: "restart-store-not-shared", severity: timeoutchain.Warning, defect: func(a *app) { a.set("CACHE_DRIVER", "null") }},
	{name: "no such cache store", rule: "restart-store-not-shared", severity: timeoutchain.Error, defect: func(a *app) { a.set("CACHE_DRIVER", "shared") }},
	{name: "cache in the pod", rule: "restart-store-not-shared", defect: func(a *app) { a.set("CACHE_DRIVER", "file") }},
	{
		name: "a log that this user cannot write", rule: "log-not-writable",
		defect: func(a *app) { a.set("LOG_CHANNEL", "single"); asNobody(a) },
		twin:   func(a *app) { a.set("LOG_CHANNEL", "stderr"); asNobody(a) },
	},
	{
		name: "a log below a device", rule: "log-not-writable",
		defect: logsTo("single", "/dev/null/logs/shop.log"),
		twin:   logsTo("single", "/dev/null"),
	},
	{
		name: "a log below a file", rule: "log-not-writable",
		defect: func(a *app) { logsTo("single", a.dir+"/artisan/logs/shop.log")(a) },
		twin:   func(a *app) { logsTo("single", a.dir+"/storage/new/logs/shop.log")(a) },
	},
	{
		name: "a directory in the place of the log", rule: "log-not-writable",
		defect: func(a *app) { logsTo("single", a.dir+"/storage")(a) },
	},
	{
		name: "a daily log below a file", rule: "log-not-writable",
		defect: func(a *app) { logsTo("daily", a.dir+"/artisan/shop.log")(a) },
		twin:   func(a *app) { logsTo("daily", a.dir+"/storage/logs/shop.log")(a) },
	},
	{
		name: "a log below a file, in a stack", rule: "log-not-writable",
		defect: func(a *app) { logsTo("single", a.dir+"/artisan/shop.log")(a); stacked(a, "stderr,single") },
		twin:   func(a *app) { logsTo("single", a.dir+"/artisan/shop.log")(a); stacked(a, "stderr") },
	},
	{
		name: "a log by a stream", rule: "log-not-writable",
		defect: func(a *app) { logsTo("single", "file://"+a.dir+"/artisan/shop.log")(a) },
		twin:   logsTo("single", "php://stderr"),
	},
	{
		name: "failed jobs on a database without a table", rule: "failed-store-null",
		defect: func(a *app) {
			a.set("QUEUE_FAILED_DRIVER", "database")
			a.edit("config/queue.php", "'table' => 'failed_jobs'", "'tables' => 'failed_jobs'")
		},
		twin: func(a *app) {
			a.edit("config/queue.php", "'driver' => env('QUEUE_FAILED_DRIVER', 'database-uuids'),\n        'database'", "'database'")
		},
	},
	{
		name: "no table of jobs with the prefix", rule: "jobs-table-missing",
		defect: func(a *app) { a.onDatabase(); prefixed(a) },
		twin: func(a *app) {
			a.onDatabase()
			prefixed(a)
			a.sql("sqlite:"+a.dir+"/shop.sqlite", "alter table jobs rename to pk_jobs")
		},
	},
}

// logsTo makes a channel with this path the default one.
func logsTo(driver, path string) func(*app) {
	return func(a *app) {
		a.set("LOG_CHANNEL", "single")
		a.edit("config/logging.php", "['driver' => 'single', 'path' => storage_path('logs/laravel.log')]", sprintf("['driver' => '%s', 'path' => '%s']", driver, path))
	}
}

// stacked makes a stack of these channels the default one.
func stacked(a *app, channels string) {
	a.set("LOG_CHANNEL", "stack")
	a.edit("config/logging.php", "'channels' => [", sprintf("'channels' => [\n        'stack' => ['driver' => 'stack', 'channels' => explode(',', '%s')],", channels))
}

// prefixed gives the queue a database connection that puts a prefix before the
// names of its tables.
func prefixed(a *app) {
	a.edit("config/database.php", "'mysql' => [", "'prefixed' => ['driver' => 'sqlite', 'database' => env('DB_DATABASE'), 'prefix' => 'pk_'],\n        'mysql' => [")
	a.set("DB_QUEUE_CONNECTION", "prefixed")
}

// asNobody starts PHP as a user who can read the application and no more.
func asNobody(a *app) {
	a.php = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "php8.2"}
	a.command("package:discover")
	a.command("list")
}
