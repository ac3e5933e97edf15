// SPDX-License-Identifier: Apache-2.0

package chainsource

import "github.com/queueworker/operator/internal/timeoutchain"

// Sections are the fields of the spec that the sections of a rule stand for.
var Sections = []struct {
	Section timeoutchain.Section
	Field   string
}{
	{timeoutchain.SectionRuntime, "runtime"},
	{timeoutchain.SectionQueue, "queue"},
	{timeoutchain.SectionTimeouts, "timeouts"},
	{timeoutchain.SectionRetries, "retries"},
	{timeoutchain.SectionLocks, "locks"},
	{timeoutchain.SectionWorker, "worker"},
	{timeoutchain.SectionDrain, "drain"},
	{timeoutchain.SectionFence, "fence"},
	{timeoutchain.SectionTemplate, "template"},
	{timeoutchain.SectionPreflight, "preflight"},
	{timeoutchain.SectionStrategy, "strategy"},
	{timeoutchain.SectionMonitor, "monitor"},
}
