// SPDX-License-Identifier: Apache-2.0

package main

var templateRules = []rule{
	probeRule("livenessProbe", "livenessGrace"),
	probeRule("startupProbe", "startupGrace"),
	{
		id:    "deadline-kills-early",
		holds: "!$pod.?activeDeadlineSeconds.hasValue()",
		text: "activeDeadlineSeconds {$pod.?activeDeadlineSeconds.orValue(0)} must not be set on a worker: " +
			"the pod is killed at that age in the middle of a job; " +
			"leave activeDeadlineSeconds out",
		field: "template.spec.activeDeadlineSeconds", reason: forbidden,
	},
	{
		id:    "template-worker-missing",
		holds: "!$podless && $containers.exists(c, c.name == 'worker')",
		text: "no container is named worker: " +
			"there is no place for the worker's command and its drain hook; " +
			"name the container that runs the queue worker `worker`",
		field: "template.spec.containers", reason: required,
	},
	{
		id:    "template-command",
		holds: "$runtime == 'Generic' || $podless || $containers.all(c, c.name != 'worker' || size(c.?command.orValue([])) + size(c.?args.orValue([])) == 0)",
		text: "the worker container must not set command or args under runtime {$runtime}: " +
			"the command is rendered from the declared chain, and another one would run with other timeouts; " +
			"remove command and args; use worker.php, worker.artisan and worker.extraArgs, or runtime: Generic for a command of your own that is no queue:work or horizon, since nothing compares a command of your own with the chain",
		field: "template.spec.containers", reason: forbidden,
	},
	{
		id:    "template-command-missing",
		holds: "$runtime != 'Generic' || $podless || $containers.all(c, c.name != 'worker' || size(c.?command.orValue([])) > 0)",
		text: "the worker container needs a command under runtime Generic: " +
			"an image's own entrypoint is not visible here and cannot be started and stopped with care; " +
			"set the worker container's command",
		field: "template.spec.containers", reason: required,
	},
	{
		id:    "template-grace",
		holds: "!$pod.?terminationGracePeriodSeconds.hasValue()",
		text: "the template must not set terminationGracePeriodSeconds ({$pod.?terminationGracePeriodSeconds.orValue(0)}): " +
			"the grace is a link of the chain and is taken from timeouts; " +
			"remove it from the template and set timeouts.terminationGracePeriodSeconds, or leave it to be derived",
		field: "template.spec.terminationGracePeriodSeconds", reason: forbidden,
	},
	{
		id:    "template-pre-stop",
		holds: "$podless || $containers.all(c, c.name != 'worker' || !c.?lifecycle.?preStop.hasValue())",
		text: "the worker container must not set lifecycle.preStop: " +
			"the hook is where the drain happens, and its time would not be part of the chain; " +
			"move the command to drain.beforeStop, with its timeout",
		field: "template.spec.containers", reason: forbidden,
	},
	{
		id:    "template-restart-policy",
		holds: "$pod.?restartPolicy.orValue('') in ['', 'Always']",
		text: "restartPolicy {strings.quote(self.template.spec.restartPolicy)} must be Always: " +
			"a Deployment accepts nothing else; " +
			"remove restartPolicy or set it to Always",
		field: "template.spec.restartPolicy", reason: invalid,
	},
	ownedNameRule("container", "initContainers"),
	ownedMountRule("initContainers"),
	ownedNameRule("container", "containers"),
	ownedMountRule("containers"),
	ownedNameRule("volume", "volumes"),
	{
		id:    "env-owned",
		holds: "$podless || $containers.all(c, c.name != 'worker' || !has(c.env) || !c.env.exists(e, $ownedEnv))",
		text: "the environment variable {$containers.map(c, c.name == 'worker', c.env.map(e, $ownedEnv, e.name))[0][0]} is set by the operator: " +
			"the application would read another number than the one declared; " +
			"remove the variable, or change timeouts.retryAfterSeconds",
		field: "template.spec.containers", reason: forbidden, quotes: true,
	},
	{
		id:    "args-owned",
		holds: "!has(self.worker.extraArgs) || !self.worker.extraArgs.exists(a, $ownedArg)",
		text: "extraArgs must not hold {strings.quote(self.worker.extraArgs.filter(a, $ownedArg)[0])}: " +
			"it replaces what the declared chain renders, so that another chain runs than the one judged here; " +
			"remove the option from extraArgs and set the field of the spec that renders it",
		field: "worker.extraArgs", reason: forbidden,
	},
}

// probeRule is about a probe that may have a grace of its own.
func probeRule(probe, grace string) rule {
	return rule{
		id: "liveness-kills-early",
		holds: "$podless || $containers.all(c, c.name != 'worker' || " +
			"c.?" + probe + ".?terminationGracePeriodSeconds.orValue($before + $job) >= $before + $job)",
		text: probe + ".terminationGracePeriodSeconds {$" + grace + "} must be at least beforeStop {$before} + jobSeconds {$job}: " +
			"a failed probe kills a job in the middle, whatever the pod's grace is; " +
			"set " + probe + ".terminationGracePeriodSeconds to {$before + $job}",
		field: "template.spec.containers", reason: invalid,
	}
}

// The rules about kept names tell the first one of each list.
func ownedNameRule(kind, list string) rule {
	path := "self.template.spec." + list
	return rule{
		id:    "template-owned-name",
		holds: "!$pod.?" + list + ".hasValue() || !" + path + ".exists(c, $ownedName)",
		text:  "the name " + kind + " {" + path + ".map(c, $ownedName, c.name)[0]} is reserved: " + collides,
		field: "template.spec." + list, reason: forbidden, quotes: true,
	}
}

func ownedMountRule(list string) rule {
	path := "self.template.spec." + list
	return rule{
		id:    "template-owned-name",
		holds: "!$pod.?" + list + ".hasValue() || !" + path + ".exists(c, has(c.volumeMounts) && c.volumeMounts.exists(m, $ownedMount))",
		text: "the name mount {" + path + ".map(c, has(c.volumeMounts) && c.volumeMounts.exists(m, $ownedMount), " +
			"c.volumeMounts.map(m, $ownedMount, $ownedPath ? m.mountPath : m.name))[0][0]} is reserved: " + collides,
		field: "template.spec." + list, reason: forbidden, quotes: true,
	}
}

const collides = "it would collide with what the operator adds to the pod; choose another name"
