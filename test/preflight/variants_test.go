// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"strconv"

	judge "github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// variant is one defect and its twin: a change of the same kind on the right
// side of the edge.
type variant struct {
	name string
	rule string // under which the defect must be found
	// severity is what it must be found as, where a rule has several.
	severity timeoutchain.Severity
	// unseen marks a defect of which only "not verified" can be said.
	unseen bool
	defect func(*app)
	twin   func(*app) // nil = the application as it is
}

// variants are all of them, by what is broken.
func variants() []variant {
	var all []variant
	for _, group := range [][]variant{ofPHP, ofStart, ofConfiguration, ofClasses, ofStores, ofServers, ofFence, ofMemory, ofHorizon} {
		all = append(all, group...)
	}
	return all
}

// noPcntl stands in for a PHP without the extension: Debian has it built in, so
// our script is told that it is not there.
const noPcntl = `<?php
namespace QueueWorker\Facts;

function extension_loaded(string $name): bool { return $name !== '%s' && \extension_loaded($name); }
`

func disabled(functions string) func(*app) {
	return func(a *app) { a.php = []string{"php8.2", "-d", "disable_functions=" + functions} }
}

var ofPHP = []variant{
	{name: "pcntl not installed (stand-in)", rule: "pcntl-missing", severity: timeoutchain.Error, defect: without("pcntl"), twin: without("gmp")},
	{name: "pcntl_alarm disabled", rule: "pcntl-missing", defect: disabled("pcntl_alarm"), twin: disabled("exec,pcntl_exec")},
	{name: "pcntl_sigprocmask disabled", rule: "pcntl-missing", severity: timeoutchain.Warning, defect: disabled("pcntl_sigprocmask")},
	{name: "posix not installed (stand-in)", rule: "posix-missing", defect: without("posix")},
	{name: "posix_kill disabled", rule: "posix-missing", defect: disabled("posix_kill"), twin: disabled("posix_getpwuid")},
	{
		name: "options that this Laravel does not know", rule: "framework-fault",
		defect: func(a *app) { laravel(a, "8.31.0"); a.declared.Rest = count(1) },
		twin:   func(a *app) { laravel(a, "8.32.0"); a.declared.Rest = count(1) },
	},
	{
		name: "a crash that ends with 0, and nobody who looks", rule: "framework-fault",
		defect: func(a *app) { a.declared.Supervision = judge.SignalsOnly },
		twin:   signalsOnly,
	},
	{
		name: "memory 0 before 12.54", rule: "framework-fault",
		defect: func(a *app) { a.declared.MemoryMegabytes = count(0) },
		twin:   func(a *app) { laravel(a, "12.54.0"); a.declared.MemoryMegabytes = count(0) },
	},
}

func without(extension string) func(*app) {
	return func(a *app) {
		a.write("bootstrap/without.php", sprintf(noPcntl, extension))
		a.edit("bootstrap/app.php", "<?php\n", "<?php\nrequire __DIR__.'/without.php';\n")
	}
}

// laravel stands in for another version of the framework, by its number only.
func laravel(a *app, version string) {
	a.write("bootstrap/version.php", sprintf("<?php\nclass OtherVersion extends Illuminate\\Foundation\\Application { public function version() { return '%s'; } }\n", version))
	a.edit("bootstrap/app.php", "$app = new Illuminate\\Foundation\\Application(", "require __DIR__.'/version.php';\n$app = new OtherVersion(")
}

// signalsOnly starts the worker as the image has it, on a Laravel without the
// fault that this brings out.
func signalsOnly(a *app) {
	laravel(a, "9.52.22")
	a.declared.Supervision = judge.SignalsOnly
}

var ofStart = []variant{
	{
		name: "a provider throws", rule: "boot-failed",
		defect: func(a *app) { provider(a, "throw new \\LogicException('the shop has no key');") },
		twin:   func(a *app) { provider(a, "echo 'the shop has a key'; trigger_error('old', E_USER_DEPRECATED);") },
	},
	{
		name: "a provider ends the process", rule: "boot-failed",
		defect: func(a *app) { provider(a, "die('no licence');") },
	},
	{
		name: "a configuration file throws", rule: "boot-failed",
		defect: func(a *app) {
			a.write("config/shop.php", "<?php\nthrow new LogicException('no shop');\n")
		},
		twin: func(a *app) { a.write("config/shop.php", "<?php\nreturn ['open' => true];\n") },
	},
	{
		name: "a provider of which the class is missing", rule: "boot-failed",
		defect: func(a *app) {
			a.edit("config/app.php", "App\\Providers\\AppServiceProvider::class", "App\\Providers\\Lost::class")
		},
	},
	{name: "another working directory", rule: "application-missing", defect: func(a *app) { a.artisan = "app/artisan" }, twin: func(a *app) { a.artisan = a.dir + "/artisan" }},
	{name: "php not in the image", rule: "php-missing", defect: func(a *app) { a.php = []string{"php7.0"} }, twin: func(a *app) { a.php = []string{"/usr/bin/env", "php8.2"} }},
	{
		name: "a database that is away while the application starts", rule: "boot-failed", unseen: true,
		defect: func(a *app) {
			away(a)
			provider(a, "\\Illuminate\\Support\\Facades\\DB::connection('mysql')->select('select 1');")
		},
	},
}

// provider adds a line to the boot of the application's own provider.
func provider(a *app, line string) {
	a.edit("app/Providers/AppServiceProvider.php", "if ($seconds = (float)", line+"\n        if ($seconds = (float)")
}

// away makes the default database one on which nobody listens.
func away(a *app) {
	a.edit("config/queue.php", "env('DB_CONNECTION', 'sqlite')", "'mysql'")
	a.set("DB_PORT", freePort(a.t))
}

var ofConfiguration = []variant{
	{name: "no such connection", rule: "connection-missing", defect: func(a *app) { a.declared.Connection = "rabbit" }, twin: func(a *app) { a.declared.Connection = ""; a.set("QUEUE_CONNECTION", "redis") }},
	{
		name: "another driver", rule: "driver-differs",
		defect: func(a *app) { a.edit("config/queue.php", "'driver' => 'redis'", "'driver' => 'sync'") },
		twin: func(a *app) {
			a.edit("config/queue.php", "'driver' => 'redis'", "'driver' => env('QUEUE_DRIVER', 'redis')")
		},
	},
	{
		name: "driver by environment", rule: "driver-differs",
		defect: func(a *app) {
			a.edit("config/queue.php", "'driver' => 'redis'", "'driver' => env('QUEUE_DRIVER', 'redis')")
			a.set("QUEUE_DRIVER", "database")
			a.write("bootstrap/cache/.keep", "")
		},
	},
	{
		name: "retry_after written down, and no entry of ours", rule: "retry-after-differs", severity: timeoutchain.Error,
		defect: func(a *app) {
			signalsOnly(a)
			a.edit("config/queue.php", "(int) env('REDIS_QUEUE_RETRY_AFTER', 90)", "30")
		},
		twin: signalsOnly,
	},
	{
		name: "retry_after written down, Redis", rule: "retry-after-differs", severity: timeoutchain.Warning,
		defect: func(a *app) { a.edit("config/queue.php", "(int) env('REDIS_QUEUE_RETRY_AFTER', 90)", "30") },
		twin:   func(a *app) { a.edit("config/queue.php", "(int) env('REDIS_QUEUE_RETRY_AFTER', 90)", "'90'") },
	},
	{
		name: "retry_after written down, Database", rule: "retry-after-differs",
		defect: func(a *app) {
			a.onDatabase()
			a.edit("config/queue.php", "(int) env('DB_QUEUE_RETRY_AFTER', 90)", "120")
		},
		twin: func(a *app) { a.onDatabase() },
	},
	{
		name: "retry_after left out means 60", rule: "retry-after-differs",
		defect: func(a *app) {
			a.edit("config/queue.php", "'retry_after' => (int) env('REDIS_QUEUE_RETRY_AFTER', 90),", "")
		},
		twin: func(a *app) {
			a.edit("config/queue.php", "'retry_after' => (int) env('REDIS_QUEUE_RETRY_AFTER', 90),", "")
			a.wire.RetryAfterSeconds = 60
		},
	},
	{
		name: "retry_after set while the application starts", rule: "retry-after-differs",
		defect: func(a *app) { provider(a, "config(['queue.connections.redis.retry_after' => 30]);") },
		twin:   func(a *app) { provider(a, "config(['queue.connections.redis.retry_after' => 90]);") },
	},
	{
		name: "retry_after in .env that the pod's environment hides", rule: "retry-after-differs",
		defect: func(a *app) {
			a.edit("config/queue.php", "REDIS_QUEUE_RETRY_AFTER", "SHOP_RETRY_AFTER")
			a.write(".env", "SHOP_RETRY_AFTER=45\n")
		},
		twin: func(a *app) { a.write(".env", "REDIS_QUEUE_RETRY_AFTER=45\n") },
	},
	{
		name: "retry_after frozen in the cached configuration", rule: "retry-after-differs",
		defect: func(a *app) {
			a.set("REDIS_QUEUE_RETRY_AFTER", "30")
			a.command("config:cache")
			a.set("REDIS_QUEUE_RETRY_AFTER", "90")
		},
		twin: func(a *app) { a.command("config:cache") },
	},
	{
		name: "cache store frozen in the cached configuration", rule: "cached-config-hides-env",
		defect: func(a *app) { a.command("config:cache"); a.set("CACHE_DRIVER", "file") },
	},
	{
		name: "queue frozen in the cached configuration", rule: "cached-config-hides-env",
		defect: func(a *app) { a.command("config:cache"); a.set("REDIS_QUEUE", "payments") },
		twin: func(a *app) {
			a.command("config:cache")
			a.set("REDIS_QUEUE", "payments")
			a.set("APP_CONFIG_CACHE", "/no/such/file")
		},
	},
	{
		name: "retry_after on beanstalkd", rule: "retry-after-differs", severity: timeoutchain.Error,
		defect: func(a *app) { beanstalkd(a, 60) },
		twin:   func(a *app) { beanstalkd(a, 90) },
	},
	{
		name: "a driver that keeps its reservation elsewhere", rule: "retry-after-differs", unseen: true,
		defect: func(a *app) {
			beanstalkd(a, 60)
			a.edit("config/queue.php", "'beanstalkd'", "'rabbitmq'")
			a.declared.Connection, a.wire.Driver = "rabbitmq", "RabbitMQ"
		},
	},
	{
		name: "a pop that blocks for ever", rule: "block-forever",
		defect: func(a *app) { a.set("REDIS_QUEUE_BLOCK_FOR", "0") },
		twin: func(a *app) {
			a.set("REDIS_QUEUE_BLOCK_FOR", "5")
			a.declared.BlockFor, a.wire.PopSeconds = count(5), 6
		},
	},
	{
		name: "a pop longer than the grace has room for", rule: "drain-exceeds-grace",
		defect: func(a *app) { a.set("REDIS_QUEUE_BLOCK_FOR", "80") },
	},
	{
		name: "another pop than declared", rule: "block-for-differs",
		defect: func(a *app) { a.set("REDIS_QUEUE_BLOCK_FOR", "5") },
	},
	{
		name: "dispatch before the commit, with a fence table", rule: "after-commit-off",
		defect: func(a *app) { fenceTable(a, "create table fence (k varchar(64) primary key)") },
		twin: func(a *app) {
			fenceTable(a, "create table fence (k varchar(64) primary key)")
			a.edit("config/queue.php", "'after_commit' => false", "'after_commit' => true")
		},
	},
}

func beanstalkd(a *app, retryAfter int) {
	a.set("BEANSTALKD_QUEUE_RETRY_AFTER", strconv.Itoa(retryAfter))
	a.declared.Connection, a.wire.Driver = "beanstalkd", "Beanstalkd"
}

var ofServers = []variant{
	{
		name: "Redis evicts any key", rule: "redis-evicts",
		defect: func(a *app) { a.set("REDIS_PORT", redis(a.t, "allkeys-lru")) },
		twin:   func(a *app) { a.set("REDIS_PORT", redis(a.t, "noeviction")) },
	},
	{name: "Redis would evict any key", rule: "redis-evicts", defect: func(a *app) { a.set("REDIS_PORT", redis(a.t, "allkeys-lru unlimited")) }},
	{name: "Redis evicts locks", rule: "redis-evicts", defect: func(a *app) { a.set("REDIS_PORT", redis(a.t, "volatile-ttl")) }},
	{name: "Redis is away", rule: "redis-evicts", unseen: true, defect: func(a *app) { a.set("REDIS_PORT", freePort(a.t)) }},
	{
		name: "queue and cache in one database", rule: "redis-shared-with-cache",
		defect: func(a *app) { a.set("REDIS_CACHE_DB", "0") },
		twin:   func(a *app) { a.set("REDIS_CACHE_DB", "7") },
	},
	{
		name: "queue and cache by one connection", rule: "redis-shared-with-cache",
		defect: func(a *app) { a.set("REDIS_CACHE_CONNECTION", "default") },
	},
	{
		name: "queue and cache in one database, under two names", rule: "redis-shared-with-cache",
		defect: func(a *app) { a.set("REDIS_CACHE_DB", "0"); a.set("REDIS_CACHE_HOST", "localhost") },
		twin: func(a *app) {
			a.set("REDIS_CACHE_DB", "0")
			a.set("REDIS_CACHE_HOST", "localhost")
			a.set("REDIS_CACHE_PORT", redis(a.t, "allkeys-lru"))
		},
	},
	{
		name: "queue and cache in one database, perhaps", rule: "redis-shared-with-cache", unseen: true,
		defect: func(a *app) {
			a.set("REDIS_CACHE_DB", "0")
			a.set("REDIS_CACHE_PORT", freePort(a.t))
		},
	},
	{name: "no prefix", rule: "redis-prefix-missing", defect: func(a *app) { a.set("REDIS_PREFIX", "") }, twin: func(a *app) { a.set("REDIS_PREFIX", "x:") }},
	{
		name: "no such Redis connection", rule: "redis-connection-missing",
		defect: func(a *app) { a.set("REDIS_QUEUE_CONNECTION", "queue") },
		twin:   func(a *app) { a.set("REDIS_QUEUE_CONNECTION", "default") },
	},
	{
		name: "a cluster without hash tags", rule: "redis-cluster-hash-tag",
		defect: func(a *app) { a.set("REDIS_PORT", redis(a.t, "cluster")) },
		twin:   func(a *app) { a.set("REDIS_PORT", redis(a.t, "cluster")); a.set("REDIS_QUEUE", "{default}") },
	},
	{
		name: "the database of failed jobs is away", rule: "failed-table-missing", unseen: true,
		defect: away,
	},
}

var ofMemory = []variant{
	{
		name: "PHP's limit below the worker's", rule: "php-memory-below-worker",
		defect: func(a *app) { a.php = []string{"php8.2", "-d", "memory_limit=128M"} },
		twin:   func(a *app) { a.php = []string{"php8.2", "-d", "memory_limit=160M"} },
	},
	{
		name: "PHP's limit below the worker's, by the application", rule: "php-memory-below-worker",
		defect: func(a *app) { a.edit("bootstrap/app.php", "<?php\n", "<?php\nini_set('memory_limit', '96M');\n") },
		twin:   func(a *app) { a.edit("bootstrap/app.php", "<?php\n", "<?php\nini_set('memory_limit', '196M');\n") },
	},
	{
		name: "PHP without a limit in a container with one", rule: "php-memory-over-container",
		defect: func(a *app) { a.memory = 256 << 20 },
		twin:   func(a *app) { a.memory = 256 << 20; a.php = []string{"php8.2", "-d", "memory_limit=167772160"} },
	},
	{
		name: "the worker's limit over the container's", rule: "memory-over-container-limit",
		defect: func(a *app) { a.memory = 128 << 20 },
	},
}
