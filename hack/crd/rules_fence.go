// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/queueworker/operator/internal/fence/store/sqlfence"

var fenceRules = []rule{
	{
		id:    "fence-incomplete",
		holds: "!$fenced || has(self.fence.store) && $provided",
		text: "fence.mode is Proxy without {has(self.fence.store) ? 'providers' : $provided ? 'store' : 'store and providers'}: " +
			"the sidecar cannot start, and no worker beside it; " +
			"declare the store and at least one provider or claim, or set fence.mode to Table or None",
		field: "fence.mode", reason: required,
	},
	{
		id:    "fence-table-name",
		holds: "!$fenced || !has(self.fence.table) || !has(self.fence.table.name) || self.fence.table.name.matches('" + sqlfence.TablePattern + "')",
		text: "the sidecar's table cannot be named {self.fence.table.name}: " +
			"the sidecar does not start with it, and no worker beside it; " +
			"name it TABLE or SCHEMA.TABLE, each of at most 48 lower-case letters, digits and underscores that do not begin with a digit",
		field: "fence.table.name", reason: invalid,
	},
	{
		id:    "http-timeout-missing",
		holds: "!$fenced || has(self.timeouts.httpSeconds)",
		text: "httpSeconds is not set, while jobSeconds is {$job}: " +
			"a call without a timeout can hold a job past every limit declared here; " +
			"give every client the job uses a timeout, and declare the longest one as httpSeconds",
		field: "timeouts.httpSeconds", reason: required,
	},
	{
		id:    "provider-timeout-not-below-http",
		holds: "!has(self.timeouts.httpSeconds) || " + noProvider("$late"),
		text: "a call of provider {" + of("$late", "p.name") + "} may take {" + of("$late", "$reply + $around") + "} s " +
			"(send window $sendWindow + timeout {" + of("$late", "$reply") + "} + statements $statements), but httpSeconds is {$call}: " +
			"the client gives up while the call goes on, or a later run of the job has no time left to send; " +
			"set {$call > $around ? 'timeoutSeconds of %s to %d'.format([" + of("$late", "p.name") + ", $call - $around]) : " +
			"'httpSeconds to %d'.format([" + of("$late", "$reply + $around") + "])}",
		field: "fence.providers", reason: invalid,
	},
	{
		id:    "in-flight-too-short",
		holds: noProvider("$short"),
		text: "maxInFlightSeconds {" + of("$short", "$inFlight") + "} of provider {" + of("$short", "p.name") + "} " +
			"must be at least {" + of("$short", "$reply + $leastInFlight") + "}, its timeout plus $leastInFlight: " +
			"a key is taken for free while its request may still act, and the effect happens twice; " +
			"set maxInFlightSeconds of {" + of("$short", "p.name") + "} to {" + of("$short", "$reply + $leastInFlight") + "}",
		field: "fence.providers", reason: invalid,
	},
	{
		id:    "key-ttl-too-short-to-resend",
		holds: noProvider("$brief"),
		text: "keyTTLSeconds {" + of("$brief", "p.keyTTLSeconds") + "} of provider {" + of("$brief", "p.name") + "} " +
			"must be above {$reservation + " + of("$brief", "$sendWindow + $inFlight") + "}, retryAfterSeconds plus send window plus in-flight time: " +
			"no key can ever be sent again, and every unknown outcome waits for a person; " +
			"set keyTTLSeconds of {" + of("$brief", "p.name") + "} to {$reservation + 1 + " + of("$brief", "$sendWindow + $inFlight") + "} " +
			"if the provider really remembers that long, else leave it out",
		field: "fence.providers", reason: invalid,
	},
	{
		id:    "retention-below-retry-window",
		holds: "!$fenced || $until == 0 && $tries == 0 || $keepDone >= $mayCome",
		text: "done keys are kept {$keepDone} s, but a copy may come for {$mayCome} s " +
			"(retry window, one more run, failed jobs retried by hand): " +
			"a late copy finds a forgotten key, and the effect happens again; " +
			"set doneSeconds to {$mayCome}",
		field: "fence.retention.doneSeconds", reason: invalid,
	},
}

// noProvider holds where no provider of a sidecar has the fault.
func noProvider(fault string) string {
	return "!$fenced || !has(self.fence.providers) || !self.fence.providers.exists(p, " + fault + ")"
}

// of is a value of the first provider with the fault.
func of(fault, value string) string {
	return "self.fence.providers.filter(p, " + fault + ").map(p, " + value + ")[0]"
}
