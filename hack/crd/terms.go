// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// terms are the words in which the rules are written: the links of the chain
// and what is derived from them, each with the default that applies where
// nothing is declared. An empty list counts as none.
var terms = vocabulary{
	"runtime": "self.runtime",
	"driver": "(has(self.queue.driver) ? self.queue.driver : " +
		"$drivers[?self.queue.connection].orValue(self.runtime == 'Horizon' ? 'Redis' : ''))",
	"sqs":     "(has(self.queue.driver) ? self.queue.driver == 'SQS' : self.queue.connection == 'sqs')",
	"redis":   "(has(self.queue.driver) ? self.queue.driver == 'Redis' : self.queue.connection == 'redis' || !$telling)",
	"telling": "(self.queue.connection in $telltales)",

	// The chain: C, H, J, R, G.
	"call":        "self.timeouts.?httpSeconds.orValue(0)",
	"connect":     "self.timeouts.?httpConnectSeconds.orValue(0)",
	"attempts":    "self.timeouts.?httpAttempts.orValue(1)",
	"delay":       "self.timeouts.?httpRetryDelaySeconds.orValue(0)",
	"total":       "($call * $attempts + ($attempts - 1) * $delay)",
	"job":         "self.timeouts.jobSeconds",
	"reservation": "self.timeouts.?retryAfterSeconds.orValue(0)",
	"reserved":    "has(self.timeouts.retryAfterSeconds)",
	"grace":       "self.timeouts.?terminationGracePeriodSeconds.orValue(0)",
	"graced":      "has(self.timeouts.terminationGracePeriodSeconds)",

	// The drain: D, P and D + P + J.
	"before":      "self.drain.?beforeStop.?timeoutSeconds.orValue(0)",
	"block":       "self.queue.?blockForSeconds.orValue(0)",
	"queues":      "[size(self.queue.?names.orValue([])), 1].max()",
	"pop":         "($block > 0 ? ($block + 1) * $queues : 0)",
	"drain":       "($before + $pop + $job)",
	"outlastsJob": "(self.drain.graceOutlasts == 'Job')",

	// Retries. The window reads the first tries - 1 steps, then repeats the last.
	"until":   "self.retries.?retryUntilSeconds.orValue(0)",
	"tries":   "self.retries.?tries.orValue($runtime == 'Laravel' ? $defaultTries : 0)",
	"steps":   "self.retries.?backoffSeconds.orValue([])",
	"backoff": "(size($steps) > 0 ? $steps : $runtime != 'Laravel' || $defaultBackoff)",
	"longest": "([0] + $backoff).max()",
	"pauses": "$backoff.transformList(i, b, i < $tries - 1, b).sum() + " +
		"(size($backoff) > 0 && $tries - 1 > size($backoff) ? ($tries - 1 - size($backoff)) * $backoff[size($backoff) - 1] : 0)",
	"window": "(has(self.retries.retryUntilSeconds) ? $until + $job : ($tries - 1) * $reservation + $pauses + $job)",

	"retention": "self.queue.?messageRetentionSeconds.orValue(0)",
	"keyTTL":    "self.fence.?providerKeyTTLSeconds.orValue(0)",
	"sleep":     "self.worker.?sleepSeconds.orValue($runtime == 'Laravel' ? $defaultSleep : 0)",
	"rest":      "self.worker.?restSeconds.orValue(0)",

	// The fence.
	"fenced":   "(self.fence.?mode.orValue('') == 'Proxy')",
	"provided": "(size(self.fence.?providers.orValue([])) + size(self.fence.?claims.orValue([])) > 0)",
	"keepDone": "self.fence.?retention.?doneSeconds.orValue($defaultKeepDone)",
	"mayCome":  "($window + $job + $call + self.fence.?retention.?failedJobsSeconds.orValue($defaultKeepFailed))",

	// The template. Lists are named by their whole path wherever they are walked:
	// only then does the API server know their bounds when it estimates the cost.
	"pod":           "self.template.?spec",
	"podless":       "!has(self.template.spec)",
	"containers":    "self.template.spec.containers",
	"livenessGrace": "$containers.map(c, c.name == 'worker', c.?livenessProbe.?terminationGracePeriodSeconds.orValue(0))[0]",
	"startupGrace":  "$containers.map(c, c.name == 'worker', c.?startupProbe.?terminationGracePeriodSeconds.orValue(0))[0]",

	// The variable that carries the reservation; "=" is in no variable's name.
	"retryEnv": "($runtime == 'Generic' ? '=' : {'Redis': 'REDIS_QUEUE_RETRY_AFTER', 'Database': 'DB_QUEUE_RETRY_AFTER', " +
		"'Beanstalkd': 'BEANSTALKD_QUEUE_RETRY_AFTER'}[?$driver].orValue('='))",
	"retryValue": "'%d'.format([$reservation])",

	// Fixes. One that raises an inner link also raises an outer one that held
	// before and would no longer hold, or had room and would have none: so far
	// past it that nothing is found between the two.
	"room":     "[$margin, $call + $lead].max()",
	"roomLeft": "[$margin, $call + 1].max()",
	"fixedJob": "$job",
	"fixedReservation": "($reservation >= $job + $room && $reservation < $fixedJob + $room || " +
		"$reservation > $job && $reservation <= $fixedJob ? $fixedJob + $room : $reservation)",
	"fixedDrain": "($before + $pop + $fixedJob)",
	"fixedGrace": "[$fixedDrain + $roomLeft, $outlastsJob ? 0 : $fixedReservation + $margin].max()",
	"roomyGrace": "[$drain + $roomLeft, $outlastsJob ? 0 : $reservation + $margin].max()",
	"graceFollows": "($grace >= $roomyGrace && $grace < $fixedGrace || $drain < $grace && ($outlastsJob || $reservation < $grace) && " +
		"($fixedDrain >= $grace || !$outlastsJob && $fixedReservation >= $grace))",
}

// phrases are terms about the variable of a loop: an argument a, a variable of
// the environment e, a container or volume c, a mount m, a provider p.
var phrases = vocabulary{
	"ownedArg": "a.matches('^--(" + strings.Join(timeoutchain.OwnedArgs, "|") + ")(=|$)')",
	// Comparing by "in" costs nothing in the estimate, however long a value may be.
	"ownedEnv": "(e.name.startsWith('" + v1alpha1.ReservedEnvPrefix + "') || " +
		"$reserved && e.name == $retryEnv && " +
		"(has(e.valueFrom) || !(e.?value.orValue('') in [$retryValue])))",
	"reply":    "p.?timeoutSeconds.orValue($call > $around ? $call - $around : 1)",
	"inFlight": "p.?maxInFlightSeconds.orValue($defaultInFlight)",
	"late":     "$reply + $around > $call",
	"short":    "$inFlight < $reply + $leastInFlight",
	"brief": "has(p.keyTTLSeconds) && (p.?storesErrors.orValue(false) || !p.?actsOn5xx.orValue(true)) && " +
		"p.keyTTLSeconds <= $sendWindow + $inFlight",
	"ownedName":  "(c.name == '" + v1alpha1.ReservedName + "' || c.name.startsWith('" + v1alpha1.ReservedName + "-'))",
	"ownedMount": "($ownedPath || m.name == '" + v1alpha1.ReservedName + "' || m.name.startsWith('" + v1alpha1.ReservedName + "-'))",
	"ownedPath":  "(m.mountPath == '" + v1alpha1.ReservedMountPath + "' || m.mountPath.startsWith('" + v1alpha1.ReservedMountPath + "/'))",
}
