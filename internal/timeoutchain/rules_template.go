// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "fmt"

var templateWorkerMissing = Rule{
	ID:       "template-worker-missing",
	Severity: Error,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "No container of the template is named `worker`.",
		Why:    "The command, the environment and the drain hook go into that container.",
		Remedy: "name the container that runs the queue worker `worker`",
	},
	check: func(c *Chain) []Finding {
		return templateFault(c.Pod.WorkerMissing, LinkContainers,
			"no container is named worker",
			"there is no place for the worker's command and its drain hook")
	},
}

var templateCommand = Rule{
	ID:       "template-command",
	Severity: Error,
	Sections: SectionTemplate | SectionRuntime,
	Doc: Doc{
		When:   "Laravel or Horizon: the worker container has a `command` or `args`.",
		Why:    "The command is rendered from the chain, so that --timeout is the declared jobSeconds. Another command runs with other numbers.",
		Remedy: "remove command and args; use worker.php, worker.artisan and worker.extraArgs, or runtime: Generic for a command of your own that is no queue:work or horizon, since nothing compares a command of your own with the chain",
	},
	check: func(c *Chain) []Finding {
		return templateFault(c.Runtime != Generic && c.Pod.Command, LinkWorkerCommand,
			fmt.Sprintf("the worker container must not set command or args under runtime %s", c.Runtime),
			"the command is rendered from the declared chain, and another one would run with other timeouts")
	},
}

var templateCommandMissing = Rule{
	ID:       "template-command-missing",
	Severity: Error,
	Sections: SectionTemplate | SectionRuntime,
	Doc: Doc{
		When:   "Generic: the worker container has no `command`.",
		Why:    "An image's own entrypoint is not visible here, and what is not visible cannot be started and stopped with care.",
		Remedy: "set the worker container's command",
	},
	check: func(c *Chain) []Finding {
		return templateFault(c.Runtime == Generic && c.Pod.CommandMissing && !c.Pod.WorkerMissing, LinkWorkerCommand,
			"the worker container needs a command under runtime Generic",
			"an image's own entrypoint is not visible here and cannot be started and stopped with care")
	},
}

var commandNotCompared = Rule{
	ID:       "command-not-compared",
	Severity: Warning,
	Sections: SectionTemplate | SectionRuntime,
	Doc: Doc{
		When:   "Generic: the worker's command or args start a worker of Laravel's own: they hold `queue:work`, `queue:listen` or `artisan horizon`.",
		Why:    "Nothing compares the options of a command of your own with the chain, so --timeout may be another number than jobSeconds. And the agent knows nothing of such a worker: a drain is a plain SIGTERM, which cuts sleep() short in a running job, and no watchdog ends a job that is stuck.",
		Remedy: "use runtime: Laravel or Horizon, without a command in the template; a script in front of php goes to worker.wrapper",
	},
	check: func(c *Chain) []Finding {
		return templateFault(c.Runtime == Generic && c.Pod.RunsArtisan, LinkWorkerCommand,
			"the worker's own command runs a worker of Laravel's",
			"its options are not compared with the chain, and a drain signals it in the middle of a job")
	},
}

var sidecarStopsFirst = Rule{
	ID:       "sidecar-stops-first",
	Severity: Warning,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "The template has an ordinary container beside the worker.",
		Why:    "Kubernetes asks all ordinary containers to stop at once, when the drain begins. One without a wait of its own is gone while the worker still finishes its job, which then loses its database proxy or its network. A native sidecar is stopped after the worker.",
		Remedy: "make it a native sidecar: an init container with restartPolicy: Always",
	},
	check: func(c *Chain) []Finding {
		var findings []Finding
		for _, name := range c.Pod.Sidecars {
			findings = append(findings, Finding{
				Link: LinkContainers, Subject: name,
				Problem:     fmt.Sprintf("the container %s is stopped when the drain begins", name),
				Consequence: "a job that still runs loses whatever it offers, such as a database connection",
			})
		}
		return findings
	},
}

var templateGrace = Rule{
	ID:       "template-grace",
	Severity: Error,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "`terminationGracePeriodSeconds` is set in the template.",
		Why:    "The grace is a link of the chain and has one place.",
		Remedy: "remove it from the template and set timeouts.terminationGracePeriodSeconds, or leave it to be derived",
	},
	check: func(c *Chain) []Finding {
		if !c.Pod.Grace.Declared() {
			return nil
		}
		return []Finding{{
			Link: LinkTemplateGrace, Against: LinkGrace, Got: c.Pod.Grace.N(), Need: c.GracePeriod(),
			Problem:     fmt.Sprintf("the template must not set terminationGracePeriodSeconds (%d)", c.Pod.Grace.N()),
			Consequence: fmt.Sprintf("the grace is a link of the chain and is taken from timeouts, where it is %d", c.GracePeriod()),
		}}
	},
	repair: func(_ *Chain, _ Finding) []Fix {
		fix := leaveOut(LinkTemplateGrace)
		fix.Text = "remove it from the template and set timeouts.terminationGracePeriodSeconds, or leave it to be derived"
		return []Fix{fix}
	},
}

var templatePreStop = Rule{
	ID:       "template-pre-stop",
	Severity: Error,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "The worker container has a `lifecycle.preStop` of its own.",
		Why:    "The hook is where the drain happens, and its time is part of the chain.",
		Remedy: "move the command to drain.beforeStop, with its timeout",
	},
	check: func(c *Chain) []Finding {
		return templateFault(c.Pod.PreStop, LinkWorkerPreStop,
			"the worker container must not set lifecycle.preStop",
			"the hook is where the drain happens, and its time would not be part of the chain")
	},
}

var templateRestartPolicy = Rule{
	ID:       "template-restart-policy",
	Severity: Error,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "`restartPolicy` is set to something other than Always.",
		Why:    "A Deployment restarts its containers; the API refuses anything else.",
		Remedy: "remove restartPolicy or set it to Always",
	},
	check: func(c *Chain) []Finding {
		return templateFault(c.Pod.RestartPolicy != "" && c.Pod.RestartPolicy != "Always", LinkRestartPolicy,
			fmt.Sprintf("restartPolicy %q must be Always", c.Pod.RestartPolicy),
			"a Deployment accepts nothing else")
	},
}

var templateOwnedName = Rule{
	ID:       "template-owned-name",
	Severity: Error,
	Sections: SectionTemplate,
	Doc: Doc{
		When:   "A container, init container or volume is named `queueworker` or `queueworker-…`, a volume of such a name is mounted, or something is mounted at `/queueworker`.",
		Why:    "These names are kept for what the operator adds to the pod.",
		Remedy: "choose another name",
	},
	check: func(c *Chain) []Finding {
		var findings []Finding
		for _, name := range c.Pod.OwnedNames {
			findings = append(findings, Finding{
				Link: LinkTemplate, Subject: name,
				Problem:     fmt.Sprintf("the name %s is reserved", name),
				Consequence: "it would collide with what the operator adds to the pod",
			})
		}
		return findings
	},
}

var envOwned = Rule{
	ID:       "env-owned",
	Severity: Error,
	Sections: SectionTemplate | SectionTimeouts | SectionQueue | SectionRuntime,
	Doc: Doc{
		When:   "The worker container sets an environment variable that the operator sets, to another value: a name that starts with `QUEUEWORKER_`, or the driver's `REDIS_QUEUE_RETRY_AFTER`, `DB_QUEUE_RETRY_AFTER` or `BEANSTALKD_QUEUE_RETRY_AFTER`. The same value is accepted.",
		Why:    "The application would read another reservation than the one declared, and every rule here would have judged a number that does not apply.",
		Remedy: "remove the variable, or change timeouts.retryAfterSeconds",
	},
	check: func(c *Chain) []Finding {
		var findings []Finding
		for _, name := range c.Pod.OwnedEnv {
			findings = append(findings, Finding{
				Link: LinkEnv, Subject: name,
				Problem:     fmt.Sprintf("the environment variable %s is set by the operator", name),
				Consequence: "the application would read another number than the one declared",
			})
		}
		return findings
	},
}

func templateFault(broken bool, l Link, problem, consequence string) []Finding {
	if !broken {
		return nil
	}
	return []Finding{{Link: l, Problem: problem, Consequence: consequence}}
}
