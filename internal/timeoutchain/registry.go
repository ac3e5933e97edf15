// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "slices"

// Section is a part of the declaration that a rule reads. A finding about an
// existing object blocks a change only when one of its sections changed.
type Section uint16

// The sections.
const (
	SectionRuntime Section = 1 << iota
	SectionQueue
	SectionTimeouts
	SectionRetries
	SectionLocks
	SectionWorker
	SectionDrain
	SectionFence
	SectionTemplate
	SectionPreflight
	SectionStrategy
	SectionMonitor
)

// Rule is one relation that must hold.
type Rule struct {
	// ID is stable: it appears in refusals, metrics, docs and file names.
	ID string
	// Severity is the usual one; a finding may carry another where Doc says so.
	Severity Severity
	// Sections are what the rule reads.
	Sections Section
	// CrossObject marks a rule that one object alone cannot decide.
	CrossObject bool
	// SometimesError marks a warning that is an error for some chains, as Doc
	// says.
	SometimesError bool
	// NotInTheCRD marks an error that the CRD's own rules cannot judge: the
	// webhook and the command line do.
	NotInTheCRD bool
	// NoFields marks a rule whose inputs no field of the API sets yet: no
	// QueueWorker can break it, so neither samples nor the manual show it.
	NoFields bool
	Doc      Doc

	// check returns the findings without fixes.
	check func(*Chain) []Finding
	// repair lists changes that could remove a finding, the smallest first.
	// Check takes the first that does and adds nothing, see smallestFix.
	repair func(*Chain, Finding) []Fix
}

// Doc explains a rule to a reader of the manual.
type Doc struct {
	When   string // the condition, in words
	Why    string // what happens when it is broken, and how that is known
	Remedy string // what to do
}

// InTheCRD reports whether the CRD's own rules repeat it: it can block, and one
// object decides it.
func (r Rule) InTheCRD() bool {
	return (r.Severity == Error || r.SometimesError) && !r.CrossObject && !r.NotInTheCRD
}

// Rules is the registry, in the order in which findings are reported: what is
// missing, the chain from the inside out, retries, the queue's own limits,
// locks and keys, the platform, the template, other workers.
func Rules() []Rule { return registry }

// Declarable are the rules that a QueueWorker can break.
func Declarable() []Rule {
	return slices.DeleteFunc(slices.Clone(registry), func(r Rule) bool { return r.NoFields })
}

// RuleByID finds a rule of the registry.
func RuleByID(id string) (Rule, bool) {
	for _, r := range registry {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

var registry = []Rule{
	httpTimeoutMissing,
	jobTimeoutUnbounded,
	retryAfterMissing,
	graceMissing,

	connectNotBelowHTTP,
	httpNotBelowJob,
	jobNotBelowRetryAfter,
	retryAfterNotBelowGrace,
	drainExceedsGrace,
	blockedCallPastReservation,
	blockedCallPastGrace,
	sleepNotBelowJob,
	thinMargin,
	blockForever,

	retriesUnbounded,
	backoffFlat,
	backoffBeyondTries,
	backoffExceedsRetention,

	driverUnknown,
	driverLimit,
	horizonNeedsRedis,

	keyTTLBelowRetryWindow,
	fenceIncomplete,
	fenceTableName,
	fenceExpression,
	providerTimeoutNotBelowHTTP,
	inFlightTooShort,
	quietPastRetries,
	keyTTLTooShortToResend,
	retentionBelowRetryWindow,
	overlapLockShorterThanJob,
	uniqueLockShorterThanRetries,

	graceOverPlatformCap,
	memoryOverContainerLimit,
	livenessKillsEarly,
	deadlineKillsEarly,
	strategyOverridden,
	stuckBeforeJobEnds,

	templateWorkerMissing,
	templateCommand,
	templateCommandMissing,
	commandNotCompared,
	sidecarStopsFirst,
	templateGrace,
	templatePreStop,
	templateRestartPolicy,
	templateOwnedName,
	envOwned,
	argsOwned,
	fieldIgnored,

	sharedQueueShorterReservation,
}

// Check judges a chain by every rule and attaches the smallest fix to each
// finding.
func Check(c Chain) []Finding {
	findings := evaluate(&c)
	for i := range findings {
		findings[i].Fix = smallestFix(&c, findings, findings[i])
	}
	return findings
}

func evaluate(c *Chain) []Finding {
	var findings []Finding
	for i := range registry {
		for _, f := range registry[i].check(c) {
			f.Rule = registry[i].ID
			if f.Severity == "" {
				f.Severity = registry[i].Severity
			}
			findings = append(findings, f)
		}
	}
	return findings
}
