// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/queueworker/operator/internal/timeoutchain"
)

const mebibyte = 1 << 20

// workerMegabytes is --memory, or what each supervisor of Horizon has.
func (in *inspection) workerMegabytes() (megabytes int64, from string) {
	if in.chain.Runtime != timeoutchain.Horizon {
		return in.chain.Worker.MemoryMegabytes.N(), "memoryMegabytes"
	}
	for _, s := range in.supervisors() {
		if s.Memory > megabytes {
			megabytes, from = s.Memory, fmt.Sprintf("memory of supervisor %s", s.Name)
		}
	}
	return megabytes, from
}

// memorySource is where PHP's memory_limit comes from.
func (a *App) memorySource() string {
	if a.PHP.MemoryLimit != a.PHP.MemoryLimitAtStart {
		return "set by the application's own code"
	}
	return "php.ini"
}

var memoryLimits = Rule{
	ID: "", // the chain's own rule
	check: func(in *inspection) []Finding {
		if !in.sees() {
			return nil
		}
		real, source, fix := in.chain, "", ""
		if in.chain.Runtime == timeoutchain.Horizon {
			var processes, total int64
			for _, s := range in.supervisors() {
				processes += s.MaxProcesses
				total += s.Memory * s.MaxProcesses
			}
			if processes == 0 {
				return nil
			}
			// The rule multiplies one number: take the one that gives the sum.
			real.Worker.Processes, real.Worker.MemoryMegabytes = timeoutchain.Of(1), timeoutchain.Of(total)
			source = fmt.Sprintf("%d processes of config/horizon.php together: ", processes)
			fix = fmt.Sprintf("raise the memory limit above %d Mi, or lower memory or maxProcesses of the supervisors", total)
		}
		var findings []Finding
		for _, f := range timeoutchain.Check(real) {
			if f.Rule == "memory-over-container-limit" {
				finding := Finding{Rule: f.Rule, Severity: f.Severity, Link: f.Link, Problem: f.Problem, Consequence: f.Consequence, Fix: f.Fix.String()}
				if fix != "" { // the sum is no number of the declaration
					finding = finding.inWordsOf(map[string]string{"memoryMegabytes": "memory"})
					finding.Problem, finding.Fix = source+finding.Problem, fix
				}
				findings = append(findings, finding)
			}
		}
		return findings
	},
}

var phpMemoryBelowWorker = Rule{
	ID: "php-memory-below-worker", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "PHP's `memory_limit` is not above `worker.memoryMegabytes` (Horizon: a supervisor's `memory`). PHP without a php.ini has 128M, and the worker's default is 128.",
		Why:    "The worker looks at its memory between jobs and then stops cleanly. PHP's own limit ends it in the middle of a job first, with exit code 255, and the job stays reserved.",
		Remedy: "raise memory_limit above the worker's number, or lower that",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || in.chain.Runtime == timeoutchain.Generic {
			return nil
		}
		limit := in.app.PHP.MemoryLimit
		megabytes, from := in.workerMegabytes()
		if limit <= 0 || megabytes <= 0 || limit > megabytes*mebibyte {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkMemory,
			Problem:     fmt.Sprintf("%s %d is not below PHP's memory_limit of %d MiB (%s)", from, megabytes, limit/mebibyte, in.app.memorySource()),
			Consequence: "PHP ends a job in the middle before the worker stops by itself between two",
			Fix:         fmt.Sprintf("set memory_limit above %dM, or the worker's memory to at most %d", megabytes, max(limit/mebibyte-32, 16)),
		}}
	},
}

var phpMemoryOverContainer = Rule{
	ID: "php-memory-over-container", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "The container has a memory limit, and PHP's `memory_limit` is none (-1) or not below it.",
		Why:    "A job that grows is then killed by the kernel, without a word in any log, and on cgroup v2 the agent with it. PHP's own limit would name the file and line.",
		Remedy: "set memory_limit below the container's limit, above worker.memoryMegabytes",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() || !in.chain.Pod.MemoryLimitBytes.Positive() {
			return nil
		}
		limit, container := in.app.PHP.MemoryLimit, in.chain.Pod.MemoryLimitBytes.N()
		if limit > 0 && limit < container || len(memoryLimits.check(in)) > 0 {
			return nil
		}
		text := fmt.Sprintf("of %d MiB", limit/mebibyte)
		if limit <= 0 {
			text = fmt.Sprintf("is none (%d)", limit)
		}
		return []Finding{{
			Link:        timeoutchain.LinkMemoryLimit,
			Problem:     fmt.Sprintf("PHP's memory_limit %s (%s), while the container's is %d MiB", text, in.app.memorySource(), container/mebibyte),
			Consequence: "the kernel kills a job that grows, and no log names it",
			Fix:         fmt.Sprintf("set memory_limit to less than %dM", container/mebibyte),
		}}
	},
}
