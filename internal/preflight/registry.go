// SPDX-License-Identifier: Apache-2.0

package preflight

import "github.com/queueworker/operator/internal/timeoutchain"

// Rule is one thing that must be so in the image.
type Rule struct {
	// ID is stable: it appears in messages, conditions and docs.
	ID string
	// Severity is the usual one; a finding may carry another where Doc says so.
	Severity timeoutchain.Severity
	// Passing marks a finding that may go away without a change of the image or
	// the declaration. It keeps a worker from starting but is no verdict.
	Passing bool
	Doc     timeoutchain.Doc

	check func(*inspection) []Finding
}

// Rules is the registry, in the order in which findings of one severity are
// reported. The rules of internal/timeoutchain that job classes and supervisors
// can break come under their own ids, see [ChainRules].
func Rules() []Rule { return registry }

// ChainRules are the rules of internal/timeoutchain that the application can
// break, by a job class, a supervisor or its configuration.
func ChainRules() []string {
	ids := append([]string{}, limitRules...)
	for _, id := range append(blockRules, "memory-over-container-limit") {
		if !contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

var registry = []Rule{
	phpMissing,
	applicationMissing,
	bootFailed,
	unfinished,

	pcntlMissing,
	posixMissing,
	frameworkFault,

	connectionMissing,
	driverDiffers,
	retryAfterDiffers,
	blockForDiffers,
	cachedConfigHidesEnv,
	envNotSeen,
	afterCommitOff,

	classLimits,
	classTimeoutOverDeclared,
	classLimitNotANumber,
	classLimitHidden,
	classNotVerified,
	classBroken,

	horizonMissing,
	horizonEnvironmentMissing,
	horizonQueueUnserved,
	horizonLimits,
	horizonTimeoutBelowClass,
	horizonFastTermination,
	horizonBalanceLongJobs,
	horizonOnCluster,

	jobsTableMissing,
	failedStoreNull,
	failedTableMissing,
	failedStoreLocal,
	restartStoreNotShared,
	logNotWritable,

	redisConnectionMissing,
	redisEvicts,
	redisSharedWithCache,
	redisPrefixMissing,
	redisClusterHashTag,

	memoryLimits,
	phpMemoryBelowWorker,
	phpMemoryOverContainer,

	fenceTableMissing,
	fenceIndexMissing,
}

// inspection is what the rules look at.
type inspection struct {
	declared Declared
	chain    timeoutchain.Chain // as declared
	base     []timeoutchain.Finding
	facts    Facts
	app      *App // what the worker would run with; never nil while a rule looks at it
}

// sees says whether there is a configuration to look at.
func (in *inspection) sees() bool { return in.app != nil }
