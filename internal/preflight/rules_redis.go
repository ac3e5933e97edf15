// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// onRedis says whether the queue is on Redis and its connection is known.
func (in *inspection) onRedis() bool { return in.sees() && in.app.Redis != nil }

// clustered says whether the queue's Redis is a cluster.
func (in *inspection) clustered() bool {
	server := in.facts.Booted.Servers.Redis
	return in.onRedis() && (in.app.Redis.Cluster || server != nil && server.Cluster)
}

var redisConnectionMissing = Rule{
	ID: "redis-connection-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The queue connection's `connection` is not in `database.redis`.",
		Why:    "Every pop fails: the Redis connection is not configured.",
		Remedy: "add it to database.redis in config/database.php, or correct the queue connection's connection",
	},
	check: func(in *inspection) []Finding {
		if !in.onRedis() || in.app.Redis.Exists {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkConnection,
			Problem:     fmt.Sprintf("%s is %q, which is not in database.redis (config/database.php)", in.key("connection"), in.app.Redis.Connection),
			Consequence: "no job can be taken", Fix: fmt.Sprintf("add %q to database.redis, or correct the queue connection", in.app.Redis.Connection),
		}}
	},
}

var redisEvicts = Rule{
	ID: "redis-evicts", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The queue's Redis has a `maxmemory-policy` of `allkeys-*` and a `maxmemory`. A warning for `allkeys-*` with a `maxmemory` of 0 (no limit yet), and for `volatile-*` with a `maxmemory`. Not verified where Redis does not answer.",
		Why:    "When its memory is full, Redis with `allkeys-*` deletes keys of any kind, a queue with all its jobs among them. With `volatile-*` it deletes keys that expire: unique and overlap locks.",
		Remedy: "set maxmemory-policy noeviction on the queue's Redis, and keep the cache on another server",
	},
	check: func(in *inspection) []Finding {
		if !in.onRedis() || !in.app.Redis.Exists {
			return nil
		}
		server := in.facts.Booted.Servers.Redis
		if server == nil || server.Policy == "" {
			why := "it does not tell"
			if server == nil {
				why = in.unanswered("redis")
			}
			return []Finding{{Severity: Unverified, Problem: "the maxmemory-policy of the queue's Redis cannot be read: " + why}}
		}
		finding := Finding{
			Problem: fmt.Sprintf("the queue's Redis has maxmemory-policy %s and maxmemory %d", server.Policy, server.MaxMemory),
			Fix:     "set maxmemory-policy noeviction on that Redis",
		}
		switch {
		case strings.HasPrefix(server.Policy, "allkeys"):
			finding.Consequence = "when its memory is full, it deletes queues with the jobs in them"
			if server.MaxMemory == 0 {
				finding.Severity = timeoutchain.Warning
				finding.Consequence = "as soon as somebody limits its memory, it deletes queues with the jobs in them"
			}
		case strings.HasPrefix(server.Policy, "volatile") && server.MaxMemory > 0:
			finding.Severity = timeoutchain.Warning
			finding.Consequence = "when its memory is full, it deletes unique and overlap locks that are still needed"
		default:
			return nil
		}
		return []Finding{finding}
	},
}

var redisSharedWithCache = Rule{
	ID: "redis-shared-with-cache", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "The default cache store is Redis, on the same server and the same database number as the queue, whatever the prefixes. Connections with the same host and port are on the same server. Where the names differ, the booted application asks both servers for their `run_id`: one server may have several names. Not verified where one of them does not answer.",
		Why:    "`artisan cache:clear` empties the whole database, prefixes or not, and with it every queue.",
		Remedy: "give the cache a database number of its own (REDIS_CACHE_DB), better a server of its own",
	},
	check: func(in *inspection) []Finding {
		if !in.onRedis() {
			return nil
		}
		both := fmt.Sprintf("queue connection %s and cache store %q", in.app.Queue.Connection, in.app.Cache.Store)
		shared := Finding{
			Problem:     both + " are in the same database of the same Redis (config/database.php)",
			Consequence: "cache:clear empties the database, and every queue in it", Fix: "give the cache a database number of its own (REDIS_CACHE_DB)",
		}
		cache := in.facts.Booted.Servers.Cache
		switch {
		case in.app.Redis.SharedWithCache:
			return []Finding{shared}
		case !in.app.Redis.MaybeShared || cache != nil && !cache.Same:
			return nil
		case cache == nil:
			return []Finding{{Severity: Unverified, Problem: fmt.Sprintf("%s have the same database number, and whether their servers are one cannot be asked: %s", both, in.unanswered("cache"))}}
		}
		shared.Problem += ", which has two addresses"
		return []Finding{shared}
	},
}

var redisPrefixMissing = Rule{
	ID: "redis-prefix-missing", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "The queue's Redis connection has no key prefix.",
		Why:    "Another application or environment without a prefix on the same database has the same key, `queues:default`, and takes these jobs.",
		Remedy: "set REDIS_PREFIX (database.redis.options.prefix), while the queues are empty: it renames all keys",
	},
	check: func(in *inspection) []Finding {
		if !in.onRedis() || !in.app.Redis.Exists || in.app.Redis.Prefix != "" {
			return nil
		}
		return []Finding{{
			Problem:     fmt.Sprintf("Redis connection %s has no key prefix (database.redis.options.prefix)", in.app.Redis.Connection),
			Consequence: "another application on that database without a prefix takes these jobs", Fix: "set REDIS_PREFIX, while the queues are empty: it renames all keys",
		}}
	},
}

var redisClusterHashTag = Rule{
	ID: "redis-cluster-hash-tag", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The queue is on a Redis Cluster, Laravel is older than 13.5, and a queue's name has no hash tag (`{default}`).",
		Why:    "A queue has three keys that one script touches. Without a hash tag they lie in different slots, and the cluster refuses the script.",
		Remedy: "name the queue in braces, {default}, here and in config/queue.php, or update to Laravel 13.5",
	},
	check: func(in *inspection) []Finding {
		if !in.clustered() || in.chain.Runtime == timeoutchain.Horizon || in.laravel().known() && !in.laravel().below(13, 5, 0) {
			return nil
		}
		queues := in.declared.Queues
		if len(queues) == 0 {
			queues = []string{in.app.Queue.Queue}
		}
		var findings []Finding
		for _, queue := range queues {
			if open := strings.Index(queue, "{"); open >= 0 && strings.Index(queue[open:], "}") > 1 {
				continue
			}
			findings = append(findings, Finding{
				Link: timeoutchain.LinkQueues, Subject: queue,
				Problem:     fmt.Sprintf("queue %q is on a Redis Cluster, has no hash tag, and Laravel is %s", queue, in.app.Laravel.Version),
				Consequence: "the cluster refuses every pop, since the queue's keys are in different slots", Fix: fmt.Sprintf("name it {%s}, here and in config/queue.php, or update to Laravel 13.5", queue),
			})
		}
		return findings
	},
}
