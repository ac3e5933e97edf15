// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "fmt"

var graceOverPlatformCap = Rule{
	ID:       "grace-over-platform-cap",
	Severity: Warning,
	Sections: SectionTimeouts | SectionDrain | SectionQueue,
	Doc: Doc{
		When:   "The grace, declared or derived, is above what the platform is configured to grant (600 s unless the installation says otherwise).",
		Why:    "Some ways to lose a node cap the grace: the cluster autoscaler at 600 s by default, spot instances at 25 to 120 s. Deploys and scale-downs still get all of it.",
		Remedy: "split long jobs, keep these workers off nodes that are reclaimed, or raise the cap where the platform really grants more",
	},
	check: func(c *Chain) []Finding {
		limit := c.GraceCap.Or(DefaultGraceCap)
		if c.GracePeriod() <= limit || !c.graceKnown() {
			return nil
		}
		return []Finding{{
			Link: LinkGrace, Against: LinkGraceCap, Got: c.GracePeriod(), Need: limit,
			Problem:     fmt.Sprintf("terminationGracePeriodSeconds %d is above the %d s that this platform is said to grant", c.GracePeriod(), limit),
			Consequence: "when a node is reclaimed, a job that needs longer is killed in the middle",
		}}
	},
}

var memoryOverContainerLimit = Rule{
	ID:       "memory-over-container-limit",
	Severity: Warning,
	Sections: SectionWorker | SectionTemplate | SectionRuntime,
	Doc: Doc{
		When:   "`worker.memoryMegabytes` (128 for Laravel when not set; Horizon: times `processes`) is not below the worker container's memory limit.",
		Why:    "The worker checks its memory between jobs and then stops cleanly. With a lower container limit the kernel kills it first, in the middle of a job.",
		Remedy: "raise the container's memory limit, or lower memoryMegabytes",
	},
	check: func(c *Chain) []Finding {
		if c.Runtime == Generic || !c.Pod.MemoryLimitBytes.Positive() {
			return nil
		}
		const mebibyte = 1 << 20
		megabytes := mul(c.Worker.MemoryMegabytes.N(), c.processes())
		if mul(megabytes, mebibyte) < c.Pod.MemoryLimitBytes.N() {
			return nil
		}
		limit := c.Pod.MemoryLimitBytes.N() / mebibyte
		return []Finding{{
			Link: LinkMemory, Against: LinkMemoryLimit, Got: megabytes, Need: limit,
			Problem:     fmt.Sprintf("%s is not below the container's memory limit of %d MiB", memoryText(c), limit),
			Consequence: "the kernel kills the worker in the middle of a job before it stops by itself between two",
		}}
	},
	repair: func(c *Chain, f Finding) []Fix {
		least := max((f.Need-1)/c.processes(), 1)
		fix := setTo(LinkMemory, least)
		fix.Text = fmt.Sprintf("raise the memory limit above %d Mi or set memoryMegabytes to %d", f.Got, least)
		return []Fix{fix}
	},
}

func memoryText(c *Chain) string {
	megabytes, processes := c.Worker.MemoryMegabytes.N(), c.processes()
	if processes == 1 {
		return fmt.Sprintf("memoryMegabytes %d", megabytes)
	}
	return fmt.Sprintf("memoryMegabytes %d x processes %d = %d", megabytes, processes, mul(megabytes, processes))
}

var livenessKillsEarly = Rule{
	ID:       "liveness-kills-early",
	Severity: Error,
	Sections: SectionTimeouts | SectionDrain | SectionTemplate,
	Doc: Doc{
		When:   "The worker's livenessProbe or startupProbe has a `terminationGracePeriodSeconds` of its own below D + J.",
		Why:    "When the probe fails, that number replaces the pod's grace. A worker that is busy, not dead, is killed in the middle of its job. Without a number of its own, a probe has the pod's grace.",
		Remedy: "remove the probe's terminationGracePeriodSeconds or raise it to beforeStop + jobSeconds",
	},
	check: func(c *Chain) []Finding {
		need := add(c.BeforeStop.N(), c.Job.N())
		var findings []Finding
		for _, probe := range []struct {
			link  Link
			grace Value
		}{{LinkLivenessGrace, c.Pod.LivenessGrace}, {LinkStartupGrace, c.Pod.StartupGrace}} {
			if !probe.grace.Declared() || probe.grace.N() >= need {
				continue
			}
			findings = append(findings, Finding{
				Link: probe.link, Against: LinkDrain, Got: probe.grace.N(), Need: need,
				Problem:     fmt.Sprintf("%s %d must be at least beforeStop %d + jobSeconds %d", probe.link, probe.grace.N(), c.BeforeStop.N(), c.Job.N()),
				Consequence: "a failed probe kills a job in the middle, whatever the pod's grace is",
			})
		}
		return findings
	},
	repair: func(_ *Chain, f Finding) []Fix {
		return []Fix{setTo(f.Link, f.Need), leaveOut(f.Link)}
	},
}

var deadlineKillsEarly = Rule{
	ID:       "deadline-kills-early",
	Severity: Error,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "`activeDeadlineSeconds` is set in the template.",
		Why:    "It ends the pod at a fixed age, whatever it is doing. A worker has no end date; `worker.maxTimeSeconds` recycles it between two jobs.",
		Remedy: "remove activeDeadlineSeconds; use worker.maxTimeSeconds to recycle workers",
	},
	check: func(c *Chain) []Finding {
		if !c.Pod.ActiveDeadline.Declared() {
			return nil
		}
		return []Finding{{
			Link: LinkActiveDeadline, Got: c.Pod.ActiveDeadline.N(),
			Problem:     fmt.Sprintf("activeDeadlineSeconds %d must not be set on a worker", c.Pod.ActiveDeadline.N()),
			Consequence: "the pod is killed at that age in the middle of a job",
		}}
	},
	repair: func(_ *Chain, _ Finding) []Fix { return []Fix{leaveOut(LinkActiveDeadline)} },
}
