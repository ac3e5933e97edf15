// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"fmt"
	"slices"
	"strings"
)

var sleepNotBelowJob = Rule{
	ID:       "sleep-not-below-job",
	Severity: Error,
	Sections: SectionTimeouts | SectionWorker | SectionRuntime,
	Doc: Doc{
		When:   "Laravel: `worker.sleepSeconds` (3 when not set) or `worker.restSeconds` is not below `jobSeconds`.",
		Why:    "The worker's alarm stays armed while it pauses: with a sleep of 8 s under a timeout of 2 s an idle worker killed itself after 2 s, again and again.",
		Remedy: "lower sleepSeconds and restSeconds below jobSeconds",
	},
	check: func(c *Chain) []Finding {
		if c.Runtime != Laravel || !c.Job.Positive() {
			return nil
		}
		var findings []Finding
		for _, pause := range []struct {
			link  Link
			value int64
		}{{LinkSleep, c.Worker.Sleep.N()}, {LinkRest, c.Worker.Rest.N()}} {
			if pause.value < c.Job.N() {
				continue
			}
			findings = append(findings, Finding{
				Link: pause.link, Against: LinkJob, Got: pause.value, Need: c.Job.N(),
				Problem:     fmt.Sprintf("%s %d must be below jobSeconds %d", pause.link, pause.value, c.Job.N()),
				Consequence: "the job alarm stays armed during the pause and kills an idle worker",
			})
		}
		return findings
	},
	repair: func(_ *Chain, f Finding) []Fix { return []Fix{setTo(f.Link, f.Need-1)} },
}

var blockForever = Rule{
	ID:       "block-forever",
	Severity: Warning,
	Sections: SectionQueue,
	Doc: Doc{
		When:   "`queue.blockForSeconds` is 0 on Redis.",
		Why:    "0 means: wait until a job arrives. An idle worker hears the request to stop only after its next job, which it then runs first. On an empty queue it is killed at the end of the grace.",
		Remedy: "set blockForSeconds to a few seconds, or leave it out",
	},
	check: func(c *Chain) []Finding {
		if c.Driver != Redis || !c.BlockFor.Zero() {
			return nil
		}
		return []Finding{{
			Link:        LinkBlockFor,
			Problem:     "blockForSeconds 0 on Redis means: block until a job arrives",
			Consequence: "an idle worker hears the request to stop only after its next job",
		}}
	},
	repair: func(_ *Chain, _ Finding) []Fix { return []Fix{setTo(LinkBlockFor, Margin)} },
}

// OwnedArgs are the options of queue:work that the operator renders from the
// declared chain, and those that switch its guarantees off. Each may appear as
// --name or --name=value.
var OwnedArgs = []string{
	"backoff", "delay", "max-jobs", "max-time", "memory", "once",
	"queue", "rest", "sleep", "timeout", "tries",
}

var argsOwned = Rule{
	ID:       "args-owned",
	Severity: Error,
	Sections: SectionWorker,
	Doc: Doc{
		When:   "`worker.extraArgs` repeats an option that is rendered from the declared chain (--timeout, --tries, --backoff, --delay, --sleep, --rest, --memory, --max-time, --max-jobs, --queue), or holds --once.",
		Why:    "The last one wins, so the chain in the spec would not be the chain that runs. --once installs no signal handlers and enforces no timeout in any version.",
		Remedy: "remove the option from extraArgs and set the field of the spec that renders it",
	},
	check: func(c *Chain) []Finding {
		var findings []Finding
		for _, arg := range c.Worker.ExtraArgs {
			if !ownedArg(arg) {
				continue
			}
			findings = append(findings, Finding{
				Link: LinkExtraArgs, Subject: arg,
				Problem:     fmt.Sprintf("extraArgs must not hold %q", arg),
				Consequence: "it replaces what the declared chain renders, so that another chain runs than the one judged here",
			})
		}
		return findings
	},
}

func ownedArg(arg string) bool {
	name, dashed := strings.CutPrefix(arg, "--")
	if !dashed {
		return false
	}
	name, _, _ = strings.Cut(name, "=")
	return slices.Contains(OwnedArgs, name)
}

var fieldIgnored = Rule{
	ID:       "field-ignored",
	Severity: Warning,
	Sections: SectionWorker | SectionQueue | SectionRuntime | SectionFence,
	Doc: Doc{
		When:   "A field is set that the runtime, the driver or the fence's mode does not use: under Horizon `sleepSeconds`, `restSeconds`, `maxTimeSeconds`, `maxJobs`; under Generic every field of `worker`; under Laravel `processes`; `blockForSeconds` on Database and SQS; `store`, `providers`, `claims` and `retention` of a fence that is no Proxy, `providerKeyTTLSeconds` of one that is.",
		Why:    "Horizon takes its workers' options from config/horizon.php, and a command of your own takes its options from you. A number here would only look as if it applied.",
		Remedy: "remove the field, or set it where the worker reads it",
	},
	check: func(c *Chain) []Finding {
		var findings []Finding
		for _, link := range c.Worker.Declared {
			if usedBy(c.Runtime, link) {
				continue
			}
			findings = append(findings, Finding{
				Link: link, Subject: string(c.Runtime),
				Problem:     fmt.Sprintf("%s has no effect under runtime %s", link, c.Runtime),
				Consequence: "the worker runs with whatever its own configuration says",
			})
		}
		if c.BlockFor.Declared() && (c.Driver == Database || c.Driver == SQS) {
			findings = append(findings, Finding{
				Link: LinkBlockFor, Subject: string(c.Driver), Got: c.BlockFor.N(),
				Problem:     fmt.Sprintf("blockForSeconds %d has no effect on %s, which does not block", c.BlockFor.N(), c.Driver),
				Consequence: "the grace is derived from a wait that never happens",
			})
		}
		for _, link := range c.FenceDeclared {
			if c.fenced() == (link != LinkProviderKeyTTL) {
				continue
			}
			findings = append(findings, Finding{
				Link: link, Subject: string(c.Fence),
				Problem:     fmt.Sprintf("%s has no effect under fence.mode %s", link, c.Fence),
				Consequence: "no call is guarded by it",
			})
		}
		return findings
	},
}

func usedBy(r Runtime, l Link) bool {
	switch r {
	case Generic:
		return false
	case Horizon:
		return l == LinkPHP || l == LinkArtisan || l == LinkMemory || l == LinkProcesses || l == LinkExtraArgs ||
			l == LinkWrapper || l == LinkSupervision
	default:
		return l != LinkProcesses
	}
}
