// SPDX-License-Identifier: Apache-2.0

package main

// rules lists every error that one object can decide, in the registry's order.
func rules() []rule {
	var all []rule
	for _, group := range [][]rule{missingRules, chainRules, retryRules, queueRules, templateRules, fenceRules} {
		all = append(all, group...)
	}
	return all
}

// Ends of a fix: the outer links that have to follow.
const (
	andGrace       = "{$graceFollows ? ' and terminationGracePeriodSeconds to %d'.format([$fixedGrace]) : ''}"
	andReservation = "{$fixedReservation > $reservation ? ' and retryAfterSeconds to %d'.format([$fixedReservation]) : ''}" + andGrace
)

var missingRules = []rule{
	{
		id:    "job-timeout-unbounded",
		holds: "$job > 0 || $runtime == 'Generic' && $reservation == 0 && !$sqs",
		text: "jobSeconds 0 means no limit, while retryAfterSeconds is {$reserved ? '%d'.format([$reservation]) : 'not set'}: " +
			"a job that runs longer than the reservation is run a second time beside itself; " +
			"set jobSeconds to {$fixedJob}" + andReservation,
		with:  vocabulary{"fixedJob": "[$reservation > 0 ? $reservation - $room : 60, $total + $margin, $sleep + 1, $rest + 1].max()"},
		field: "timeouts.jobSeconds", reason: invalid,
	},
	{
		id:    "retry-after-missing",
		holds: "$reserved ? $reservation > 0 : $runtime == 'Generic' && !$sqs",
		text: "retryAfterSeconds is {$reserved ? '0' : 'not set'}, while jobSeconds is {$job}: " +
			"{$reserved ? '0 does not switch the reservation off: a job is handed to a second worker at once' : " +
			"'the queue\\'s own fallback decides when a job is run again (60 s on Redis, database and beanstalkd; the queue\\'s visibility timeout on SQS)'}; " +
			"set retryAfterSeconds to {$fixedReservation}" + andGrace,
		with:  vocabulary{"fixedReservation": "($job + $room)"},
		field: "timeouts.retryAfterSeconds", reason: invalid,
	},
	{
		id:    "grace-missing",
		holds: "$job > 0 || $graced || $runtime != 'Generic' || $reservation > 0 || $sqs",
		text: "terminationGracePeriodSeconds is not set and jobSeconds 0 means no limit: " +
			"nothing says how long a worker may need to finish its job before it is killed; " +
			"set terminationGracePeriodSeconds to {[3600, $fixedGrace].max()}",
		field: "timeouts.terminationGracePeriodSeconds", reason: required,
	},
}

var chainRules = []rule{
	{
		id:    "connect-not-below-http",
		holds: "!has(self.timeouts.httpSeconds) || $connect <= $call",
		text: "httpConnectSeconds {$connect} must not be above httpSeconds {$call}: " +
			"connecting is part of the call, so the larger limit never applies; " +
			"set httpConnectSeconds to {$call}",
		field: "timeouts.httpConnectSeconds", reason: invalid,
	},
	{
		id:    "http-not-below-job",
		holds: "!has(self.timeouts.httpSeconds) || $job == 0 || $total < $job",
		text: "httpSeconds {$call}{$attempts == 1 ? '' : $delay == 0 ? ' x httpAttempts %d = %d'.format([$attempts, $total]) : " +
			"' x httpAttempts %d + %d x httpRetryDelaySeconds %d = %d'.format([$attempts, $attempts - 1, $delay, $total])} " +
			"must be below jobSeconds {$job}: " +
			"the job is killed while the provider is still answering, and nobody knows whether the call took effect; " +
			"set jobSeconds to {$fixedJob}" + andReservation,
		with:  vocabulary{"fixedJob": "($total + $margin)"},
		field: "timeouts.httpSeconds", reason: invalid,
	},
	{
		id:    "job-not-below-retry-after",
		holds: "$job == 0 || $reservation == 0 || $job < $reservation",
		text: "jobSeconds {$job} must be below retryAfterSeconds {$reservation}: " +
			"from second {$reservation} on a second worker runs the same job while the first still does; " +
			"set retryAfterSeconds to {$fixedReservation}" + andGrace,
		with:  vocabulary{"fixedReservation": "($job + $room)"},
		field: "timeouts.jobSeconds", reason: invalid,
	},
	{
		id:    "retry-after-not-below-grace",
		holds: "$outlastsJob || $reservation == 0 || !$graced || $reservation < $grace",
		text: "retryAfterSeconds {$reservation} must be below terminationGracePeriodSeconds {$grace}: " +
			"a job killed at the end of the grace stays reserved and comes back only when the reservation ends; " +
			"set terminationGracePeriodSeconds to {$fixedGrace}",
		with:  unchangedReservation,
		field: "timeouts.retryAfterSeconds", reason: invalid,
	},
	{
		id:    "drain-exceeds-grace",
		holds: "!$graced || $drain < $grace",
		text: "terminationGracePeriodSeconds {$grace} must be above " +
			"{$before + $pop > 0 ? 'beforeStop %d + pop %d + jobSeconds %d = %d'.format([$before, $pop, $job, $drain]) : 'jobSeconds %d'.format([$job])}: " +
			"a deploy, scale-down or node drain kills a job in the middle; " +
			"set terminationGracePeriodSeconds to {$fixedGrace}",
		with:  unchangedReservation,
		field: "timeouts.terminationGracePeriodSeconds", reason: invalid,
	},
	pauseRule("sleepSeconds", "$sleep"),
	pauseRule("restSeconds", "$rest"),
}

var unchangedReservation = vocabulary{"fixedReservation": "$reservation"}

func pauseRule(name, value string) rule {
	return rule{
		id:    "sleep-not-below-job",
		holds: "$runtime != 'Laravel' || $job == 0 || " + value + " < $job",
		text: name + " {" + value + "} must be below jobSeconds {$job}: " +
			"the job alarm stays armed during the pause and kills an idle worker; " +
			"set " + name + " to {$job - 1}",
		field: "worker." + name, reason: invalid,
	}
}
