// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

var pcntlMissing = Rule{
	ID: "pcntl-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "PHP has no `pcntl`, or one of `pcntl_signal`, `pcntl_async_signals` and `pcntl_alarm` is disabled. A warning where only `pcntl_sigprocmask` is.",
		Why:    "Laravel keeps a job's time limit by `pcntl_alarm`: without the extension a job has none, and SIGTERM kills it in the middle. With the extension but a function in `disable_functions` the worker dies when it starts. No official PHP image has pcntl built in.",
		Remedy: "install it (docker-php-ext-install pcntl) and take its functions out of disable_functions",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() {
			return nil
		}
		php := in.app.PHP
		if !php.Pcntl {
			return []Finding{{
				Link:        timeoutchain.LinkJob,
				Problem:     fmt.Sprintf("PHP %s has no extension pcntl, so jobSeconds %d is not enforced", php.Version, in.chain.Job.N()),
				Consequence: "a job has no time limit, and a request to stop kills it in the middle",
				Fix:         "install pcntl in the image (docker-php-ext-install pcntl)",
			}}
		}
		if off := named(php.Missing, "pcntl_signal", "pcntl_async_signals", "pcntl_alarm"); len(off) > 0 {
			return []Finding{{
				Link:        timeoutchain.LinkJob,
				Problem:     fmt.Sprintf("%s is disabled in PHP's configuration (disable_functions)", strings.Join(off, ", ")),
				Consequence: "queue:work dies when it starts",
				Fix:         "take it out of disable_functions",
			}}
		}
		if off := named(php.Missing, "pcntl_sigprocmask"); len(off) > 0 && in.declared.Supervision == Full {
			return []Finding{{
				Severity:    timeoutchain.Warning,
				Problem:     "pcntl_sigprocmask is disabled in PHP's configuration (disable_functions)",
				Consequence: "a drain waits until an idle worker has come round its loop",
				Fix:         "take it out of disable_functions",
			}}
		}
		return nil
	},
}

var posixMissing = Rule{
	ID: "posix-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "PHP has `posix` but `posix_kill` is disabled, or Horizon runs without `posix`. A warning where `queue:work` runs without it.",
		Why:    "A worker ends a job that is over its limit by `posix_kill` on itself. With the function disabled that call fails and the job runs on. Without the extension the worker exits instead, which runs shutdown functions. Horizon needs it for every signal.",
		Remedy: "install posix, or take posix_kill out of disable_functions",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() {
			return nil
		}
		php := in.app.PHP
		switch {
		case php.Posix && len(named(php.Missing, "posix_kill")) > 0:
			return []Finding{{
				Link:        timeoutchain.LinkJob,
				Problem:     fmt.Sprintf("posix_kill is disabled in PHP's configuration (disable_functions), so jobSeconds %d is not enforced", in.chain.Job.N()),
				Consequence: "a worker cannot end itself when a job is over its limit, and the job runs on",
				Fix:         "take posix_kill out of disable_functions",
			}}
		case !php.Posix && in.chain.Runtime == timeoutchain.Horizon:
			return []Finding{{
				Problem:     fmt.Sprintf("PHP %s has no extension posix", php.Version),
				Consequence: "Horizon cannot signal its workers", Fix: "install posix in the image",
			}}
		case !php.Posix:
			return []Finding{{
				Severity:    timeoutchain.Warning,
				Problem:     fmt.Sprintf("PHP %s has no extension posix", php.Version),
				Consequence: "a worker whose job is over its limit runs its shutdown functions before it ends", Fix: "install posix in the image",
			}}
		}
		return nil
	},
}

func named(list []string, words ...string) []string {
	var found []string
	for _, word := range words {
		if contains(list, word) {
			found = append(found, word)
		}
	}
	return found
}

var frameworkFault = Rule{
	ID: "framework-fault", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "Laravel is older than 8.0; or `worker.restSeconds` is set below 8.32, which does not know `--rest`; or Horizon up to 5.46.0 meets Laravel 11.53, 12.60 or 13.10 and later; or `--memory=0` below 12.54. A warning for `supervision: SignalsOnly` below 9.52.",
		Why:    "Each is a fault of those versions that no configuration mends: an option the worker refuses at its start; Horizon's workers dying at theirs (an option that Horizon does not know); a memory limit of 0 that means \"stop after each job\"; and, before 9.52, exit code 0 from a worker that crashed while its log could not be written, which then looks like a clean end.",
		Remedy: "update the framework, or leave out what it does not know",
	},
	check: func(in *inspection) []Finding {
		if !in.sees() {
			return nil
		}
		var findings []Finding
		for _, fault := range faults {
			if problem := fault.applies(in); problem != "" {
				findings = append(findings, Finding{Severity: fault.severity, Link: fault.link, Problem: problem, Consequence: fault.consequence, Fix: fault.fix})
			}
		}
		return findings
	},
}

// fault is a fault of some versions. applies names the versions, or nothing.
type fault struct {
	severity         timeoutchain.Severity
	link             timeoutchain.Link
	applies          func(*inspection) string
	consequence, fix string
}

var faults = []fault{
	{
		applies: func(in *inspection) string {
			if v := in.laravel(); v.known() && v.below(8, 0, 0) {
				return fmt.Sprintf("Laravel is %s", in.app.Laravel.Version)
			}
			return ""
		},
		consequence: "its workers raise other events, so neither a drain nor a time limit can be promised", fix: "update to Laravel 8 or later",
	},
	{
		link: timeoutchain.LinkRest,
		applies: func(in *inspection) string {
			if v := in.laravel(); v.known() && v.below(8, 32, 0) && in.chain.Worker.Rest.Positive() {
				return fmt.Sprintf("restSeconds is %d, but Laravel %s does not know --rest", in.chain.Worker.Rest.N(), in.app.Laravel.Version)
			}
			return ""
		},
		consequence: "queue:work refuses its options and ends", fix: "leave restSeconds out, or update to Laravel 8.32 or later",
	},
	{
		applies: func(in *inspection) string {
			horizon, laravel := parseVersion(in.app.Laravel.Horizon), in.laravel()
			if in.chain.Runtime == timeoutchain.Horizon && horizon.known() && horizon.below(5, 46, 1) && stopsWhenEmptyFor(laravel) {
				return fmt.Sprintf("Horizon %s does not fit Laravel %s", in.app.Laravel.Horizon, in.app.Laravel.Version)
			}
			return ""
		},
		consequence: "every worker ends at its start: the option stop-when-empty-for does not exist", fix: "update laravel/horizon above 5.46.0",
	},
	{
		link: timeoutchain.LinkMemory,
		applies: func(in *inspection) string {
			if v := in.laravel(); v.known() && v.below(12, 54, 0) && in.chain.Runtime == timeoutchain.Laravel && in.chain.Worker.MemoryMegabytes.Zero() {
				return fmt.Sprintf("memoryMegabytes is 0, and Laravel is %s", in.app.Laravel.Version)
			}
			return ""
		},
		consequence: "a worker ends after each loop: 0 means no limit only from 12.54 on", fix: "set memoryMegabytes to what a worker may use, or leave it out",
	},
	{
		severity: timeoutchain.Warning,
		applies: func(in *inspection) string {
			if v := in.laravel(); v.known() && v.below(9, 52, 0) && in.declared.Supervision == SignalsOnly {
				return fmt.Sprintf("Laravel is %s, and supervision is SignalsOnly", in.app.Laravel.Version)
			}
			return ""
		},
		consequence: "a worker that crashes while its log cannot be written ends with 0, as if all were well", fix: "use supervision: Full, or update to Laravel 9.52 or later",
	},
}

func stopsWhenEmptyFor(v version) bool {
	return v.known() && (v[0] == 11 && !v.below(11, 53, 0) || v[0] == 12 && !v.below(12, 60, 0) || !v.below(13, 10, 0))
}

func (in *inspection) laravel() version { return parseVersion(in.app.Laravel.Version) }
