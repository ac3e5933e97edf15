// SPDX-License-Identifier: Apache-2.0

package main

var retryRules = []rule{
	{
		id:    "retries-unbounded",
		holds: "$runtime == 'Generic' || !has(self.retries.tries) || self.retries.tries > 0 || has(self.retries.retryUntilSeconds)",
		text: "tries 0 means unlimited, and retryUntilSeconds is not set: " +
			"a job that kills its process is run again for ever; " +
			"set tries to {[3, size($backoff) + 1].max()}",
		field: "retries.tries", reason: invalid,
	},
	{
		id:    "backoff-exceeds-retention",
		holds: "!has(self.queue.messageRetentionSeconds) || $longest < $retention",
		text: "backoffSeconds {$longest} must be below messageRetentionSeconds {$retention}: " +
			"the queue deletes the message while it waits for its next try, and the job is lost without a trace; " +
			"set messageRetentionSeconds to {$longest + $margin}",
		field: "retries.backoffSeconds", reason: invalid,
	},
	{
		id:    "key-ttl-below-retry-window",
		holds: "self.fence.mode != 'None' || !has(self.fence.providerKeyTTLSeconds) || $until == 0 && $tries == 0 || $keyTTL > $window",
		text: "providerKeyTTLSeconds {$keyTTL} must be above the retry window {$window}: " +
			"the last run carries a key that the provider no longer knows, so its effect is made a second time; " +
			"shorten the retries, keep a fence table (fence.mode: Table), or set providerKeyTTLSeconds to {$window + 1} if the provider really remembers that long",
		field: "fence.providerKeyTTLSeconds", reason: invalid,
	},
}

var queueRules = []rule{
	{
		id:    "driver-unknown",
		holds: "$runtime != 'Laravel' || has(self.queue.driver) || $telling",
		text: "driver is not set and the connection's name does not say it: " +
			"no rule about the driver's own limits can be judged; " +
			"set queue.driver to the connection's driver: Redis, Database, SQS, Beanstalkd, RabbitMQ or Other",
		field: "queue.driver", reason: required,
	},
	{
		id:    "driver-limit",
		holds: "!$sqs || $reservation <= $sqsMaxVisibility",
		text: "retryAfterSeconds {$reservation} must be at most $sqsMaxVisibility on SQS: " + sqsRefuses +
			"set retryAfterSeconds to $sqsMaxVisibility{$job > $sqsMaxVisibility - $room ? ' and jobSeconds to %d'.format([$sqsMaxVisibility - $room]) : ''}",
		field: "timeouts.retryAfterSeconds", reason: invalid,
	},
	{
		id:    "driver-limit",
		holds: "!$sqs || !has(self.retries.backoffSeconds) || self.retries.backoffSeconds.all(b, b <= $sqsMaxVisibility)",
		text: "backoffSeconds {self.retries.backoffSeconds.max()} must be at most $sqsMaxVisibility on SQS: " + sqsRefuses +
			"keep every step of backoffSeconds at or below $sqsMaxVisibility",
		field: "retries.backoffSeconds", reason: invalid,
	},
	{
		id:    "driver-limit",
		holds: "!$sqs || $retention == 0 || $retention >= $sqsMinRetention && $retention <= $sqsMaxRetention",
		text: "messageRetentionSeconds {$retention} must be {$retention < $sqsMinRetention ? 'at least $sqsMinRetention' : 'at most $sqsMaxRetention'} on SQS: " + sqsRefuses +
			"set messageRetentionSeconds to {$retention < $sqsMinRetention ? $sqsMinRetention : $sqsMaxRetention}",
		field: "queue.messageRetentionSeconds", reason: invalid,
	},
	{
		id:    "horizon-needs-redis",
		holds: "$runtime != 'Horizon' || $redis",
		text: "runtime Horizon cannot use driver {$driver}: " +
			"Horizon supervises Redis queues only, so no job of this connection would ever run; " +
			"use a Redis connection, or runtime: Laravel",
		field: "queue.driver", reason: invalid,
	},
}

const sqsRefuses = "SQS refuses the number, so another one applies than the one declared; "
