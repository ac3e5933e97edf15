// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"fmt"

	"github.com/queueworker/operator/internal/timeoutchain"
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// fenceTable declares the application's fence table and makes it.
func fenceTable(a *app, statements ...string) {
	a.declared.Fence, a.declared.FenceTable, a.declared.FenceKey = timeoutchain.FenceTable, "fence", "k"
	if len(statements) > 0 {
		a.sql("sqlite:"+a.dir+"/shop.sqlite", statements...)
	}
}

// onSQLite is a fence on SQLite; the queue is on the database too, so that a
// dispatch is part of its transaction.
func onSQLite(statements ...string) func(*app) {
	return func(a *app) { a.onDatabase(); fenceTable(a, statements...) }
}

// onServer is a fence on a real server, in a database or schema of its own.
func onServer(kind string, statements ...string) func(*app) {
	return func(a *app) {
		fenceTable(a)
		a.edit("config/queue.php", "'after_commit' => false", "'after_commit' => true")
		a.edit("config/queue.php", "'database' => env('DB_CONNECTION', 'sqlite')", "'database' => 'sqlite'")
		name := fmt.Sprintf("shop%d", apps.Add(1))
		a.edit("config/database.php", "'database' => env('DB_DATABASE', database_path('database.sqlite'))", "'database' => '"+a.dir+"/shop.sqlite'")
		a.set("DB_CONNECTION", kind)
		if kind == "mysql" {
			port := mariaDB.port(a.t)
			a.set("DB_PORT", port)
			a.set("DB_DATABASE", name)
			dsn := "mysql:host=127.0.0.1;port=" + port
			a.sql(dsn, append([]string{"create database " + name, "use " + name}, statements...)...)
			return
		}
		port := postgres.port(a.t)
		a.set("DB_PORT", port)
		a.edit("config/database.php", "'public'", "'"+name+"'")
		dsn := "pgsql:host=127.0.0.1;dbname=postgres;port=" + port
		a.sql(dsn, append([]string{"create schema " + name, "set search_path to " + name}, statements...)...)
	}
}

var ofFence = []variant{
	{
		name: "no fence table, SQLite", rule: "fence-table-missing",
		defect: onSQLite("create table fences (k varchar(64) primary key)"),
		twin:   onSQLite("create table fence (k varchar(64) primary key)"),
	},
	{
		name: "fence index not unique, SQLite", rule: "fence-index-missing",
		defect: onSQLite("create table fence (id integer primary key, k varchar(64))", "create index f on fence (k)"),
		twin:   onSQLite("create table fence (id integer primary key, k varchar(64))", "create unique index f on fence (k)"),
	},
	{
		name: "fence index of some rows only, SQLite", rule: "fence-index-missing",
		defect: onSQLite("create table fence (id integer primary key, k varchar(64))", "create unique index f on fence (k) where id > 0"),
	},
	{
		name: "fence key of another name, SQLite", rule: "fence-index-missing",
		defect: onSQLite("create table fence (name varchar(64) primary key)"),
	},
	{
		name: "no fence table, MariaDB", rule: "fence-table-missing",
		defect: onServer("mysql", "create table fences (k varchar(64) primary key)"),
		twin:   onServer("mysql", "create table fence (k varchar(64) primary key)"),
	},
	{
		name: "fence index of two columns, MariaDB", rule: "fence-index-missing",
		defect: onServer("mysql", "create table fence (k varchar(64), attempt int, unique (k, attempt))"),
		twin:   onServer("mysql", "create table fence (id int primary key, k varchar(64), unique (k))"),
	},
	{
		name: "fence index of a part of the key, MariaDB", rule: "fence-index-missing",
		defect: onServer("mysql", "create table fence (k varchar(64), unique (k(8)))"),
	},
	{
		name: "fence index not unique, PostgreSQL", rule: "fence-index-missing",
		defect: onServer("pgsql", "create table fence (id int primary key, k varchar(64))", "create index on fence (k)"),
		twin:   onServer("pgsql", "create table fence (id int primary key, k varchar(64))", "create unique index on fence (k)"),
	},
	{
		name: "fence index of some rows only, PostgreSQL", rule: "fence-index-missing",
		defect: onServer("pgsql", "create table fence (k varchar(64), done bool)", "create unique index on fence (k) where not done"),
	},
	{
		name: "no table declared", rule: "fence-table-missing", unseen: true,
		defect: func(a *app) { a.onDatabase(); a.declared.Fence = timeoutchain.FenceTable },
	},
}

// supervisors is config/horizon.php. Horizon itself is not there: only its
// configuration is read.
func supervisors(a *app, environment, supervisor string) {
	a.wire.Runtime = timeoutchain.Horizon
	a.declared.MemoryMegabytes, a.declared.Tries, a.declared.Backoff = nil, nil, nil
	a.write("config/horizon.php", fmt.Sprintf(`<?php
return [
    'fast_termination' => false,
    'defaults' => ['one' => ['connection' => 'redis', 'queue' => ['default'], 'balance' => 'off', 'minProcesses' => 2, 'maxProcesses' => 2, 'tries' => 3, 'timeout' => 30, 'memory' => 128]],
    'environments' => ['%s' => ['one' => [%s]]],
];
`, environment, supervisor))
}

// before adds an environment before the others.
func before(a *app, environment string) {
	a.edit("config/horizon.php", "'environments' => [", "'environments' => ["+environment+", ")
}

func horizon(environment, supervisor string) func(*app) {
	return func(a *app) { supervisors(a, environment, supervisor) }
}

var ofHorizon = []variant{
	{
		name: "no configuration of Horizon", rule: "horizon-missing",
		defect: func(a *app) { a.wire.Runtime = timeoutchain.Horizon },
		twin:   horizon("production", ""),
	},
	{
		name: "no supervisors for this environment", rule: "horizon-environment-missing",
		defect: horizon("local", ""),
		twin:   horizon("prod*", ""),
	},
	{
		name: "a pattern before the environment's own name", rule: "horizon-queue-unserved",
		defect: func(a *app) {
			supervisors(a, "production", "")
			before(a, "'*' => ['one' => ['queue' => ['other']]]")
			a.declared.Queues = []string{"default"}
		},
		twin: func(a *app) {
			supervisors(a, "prod*", "")
			before(a, "'stag*' => ['one' => ['queue' => ['other']]]")
			a.declared.Queues = []string{"default"}
		},
	},
	{
		name: "an empty pattern before the environment's own name", rule: "horizon-environment-missing",
		defect: func(a *app) {
			supervisors(a, "production", "")
			before(a, "'prod*' => []")
			a.edit("config/horizon.php", "'defaults' => ['one'", "'default' => ['one'")
		},
	},
	{
		name: "a supervisor without processes", rule: "horizon-environment-missing",
		defect: horizon("production", "'maxProcesses' => 0"),
		twin:   horizon("production", "'max_processes' => 1"),
	},
	{
		name: "no processes for one queue", rule: "horizon-queue-unserved",
		defect: func(a *app) {
			supervisors(a, "production", "], 'two' => ['queue' => 'payments', 'processes' => 0")
			a.declared.Queues = []string{"payments", "default"}
		},
		twin: func(a *app) {
			supervisors(a, "production", "], 'two' => ['queue' => 'payments', 'tries' => 2")
			a.declared.Queues = []string{"payments", "default"}
		},
	},
	{
		name: "environment by option", rule: "horizon-environment-missing",
		defect: func(a *app) { supervisors(a, "production", ""); a.options = []string{"--environment=staging"} },
		twin:   func(a *app) { supervisors(a, "staging", ""); a.options = []string{"--environment=staging"} },
	},
	{
		name: "supervisor's timeout over the reservation", rule: "job-not-below-retry-after",
		defect: horizon("production", "'timeout' => 120"),
		twin:   horizon("production", "'timeout' => 30"),
	},
	{name: "supervisor's tries without end", rule: "retries-unbounded", defect: horizon("production", "'tries' => 0")},
	{
		name: "a queue that no supervisor has", rule: "horizon-queue-unserved",
		defect: func(a *app) { supervisors(a, "production", ""); a.declared.Queues = []string{"payments", "default"} },
		twin: func(a *app) {
			supervisors(a, "production", "'queue' => ['default', 'payments']")
			a.declared.Queues = []string{"payments", "default"}
		},
	},
	{
		name: "no supervisor on this connection", rule: "horizon-queue-unserved",
		defect: horizon("production", "'connection' => 'redis-long'"),
	},
	{
		name: "a job longer than its supervisor", rule: "horizon-timeout-below-class",
		defect: func(a *app) {
			supervisors(a, "production", "")
			a.wire.JobSeconds = 40
			a.job("Export", "    public $timeout = 40;")
		},
		twin: func(a *app) {
			supervisors(a, "production", "'timeout' => 40")
			a.wire.JobSeconds = 40
			a.job("Export", "    public $timeout = 40;")
		},
	},
	{
		name: "fast termination", rule: "horizon-fast-termination",
		defect: func(a *app) { supervisors(a, "production", ""); a.edit("config/horizon.php", "false", "true") },
	},
	{
		name: "long jobs under a balance", rule: "horizon-balance-long-jobs",
		defect: func(a *app) { longJobs(a, "'auto'", 1) },
		twin:   func(a *app) { longJobs(a, "'auto'", 8) },
	},
	{
		name: "long jobs without a balance", rule: "horizon-balance-long-jobs",
		defect: func(a *app) { longJobs(a, "false", 1) },
		twin:   func(a *app) { longJobs(a, "'simple'", 1) },
	},
}

// longJobs has a supervisor of up to eight processes, with jobs of a minute.
func longJobs(a *app, balance string, minProcesses int) {
	supervisors(a, "production", sprintf("'balance' => %s, 'timeout' => 60, 'minProcesses' => %d, 'maxProcesses' => 8", balance, minProcesses))
	a.wire.JobSeconds = 60
}
