// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// timeoutRules are the rules of the chain that a job's own limit can break, the
// gravest first: one cause is one finding.
var timeoutRules = []string{
	"job-timeout-unbounded", "job-not-below-retry-after", "drain-exceeds-grace", "sleep-not-below-job",
	"http-not-below-job", "blocked-call-past-reservation", "blocked-call-past-grace", "thin-margin",
}

// retryRules are those that a job's own retries and lock can break.
var retryRules = []string{
	"retries-unbounded", "backoff-flat", "backoff-beyond-tries", "backoff-exceeds-retention", "driver-limit",
	"key-ttl-below-retry-window", "unique-lock-shorter-than-retries",
}

var limitRules = append(append([]string{}, timeoutRules...), retryRules...)

var classLimits = Rule{
	ID: "", // the chain's own rules
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, class := range in.classes() {
			findings = append(findings, in.classFindings(class)...)
		}
		return findings
	},
}

// classes are those whose jobs this worker may run: not those that name another
// connection or queue.
func (in *inspection) classes() []Class {
	var kept []Class
	for _, class := range in.facts.Light.Classes {
		if in.sees() && in.serves(class) {
			kept = append(kept, class)
		}
	}
	return kept
}

func (in *inspection) serves(c Class) bool {
	if c.Connection != nil && c.Connection.Text != "" && c.Connection.Text != in.app.Queue.Connection && !contains(c.Assigned, "connection") {
		return false
	}
	queues := in.declared.Queues
	if len(queues) == 0 {
		queues = []string{in.app.Queue.Queue}
	}
	return c.Queue == nil || c.Queue.Text == "" || contains(c.Assigned, "queue") || contains(queues, c.Queue.Text)
}

func (in *inspection) classFindings(c Class) []Finding {
	var findings []Finding
	if timeout := c.number("timeout", c.Timeout); timeout != nil {
		findings = append(findings, in.timeoutFindings(c, *timeout)...)
	}
	real, words := in.chain, map[string]string{}
	if tries := c.number("tries", c.Tries); tries != nil {
		real.Tries = timeoutchain.Of(*tries)
		words["tries "] = c.Tries.By + " "
	}
	if c.Backoff != nil && len(c.Backoff.Numbers) > 0 && c.Backoff.Text == "" && !c.dynamic("backoff") {
		real.Backoff = c.Backoff.Numbers
		words["backoffSeconds"] = c.Backoff.By
	}
	if lock := c.number("uniqueFor", c.UniqueFor); lock != nil && c.Unique {
		real.UniqueFor = timeoutchain.Of(*lock)
		words["uniqueForSeconds"] = c.UniqueFor.By
	}
	if c.RetryUntil || c.dynamic("tries") {
		real.Tries, real.RetryUntil = timeoutchain.Value{}, timeoutchain.Value{}
	}
	for _, f := range in.broken(real, retryRules, timeoutchain.LinkTries) {
		if strings.HasPrefix(f.Rule, "backoff") && words["backoffSeconds"] == "" {
			continue // the declared steps do not fit the class's tries: they are not the class's
		}
		f = f.inWordsOf(words)
		f.Subject = c.Name
		f.Problem = fmt.Sprintf("%s (%s): %s", c.Name, c.File, f.Problem)
		findings = append(findings, f)
	}
	return findings
}

func (in *inspection) timeoutFindings(c Class, timeout int64) []Finding {
	real := in.chain
	real.Job = timeoutchain.Of(timeout)
	found := in.broken(real, timeoutRules, timeoutchain.LinkJob)
	for _, rule := range timeoutRules {
		for _, f := range found {
			if f.Rule != rule || f.Rule == "thin-margin" && !strings.Contains(f.Problem, fmt.Sprintf("jobSeconds %d", timeout)) {
				continue
			}
			if known, ok := timeoutchain.RuleByID(rule); ok {
				f.Severity = ChainSeverity(known)
			}
			f = f.inWordsOf(map[string]string{"jobSeconds": c.Timeout.By})
			f.Subject, f.Fix = c.Name, in.timeoutFix(c, timeout)
			f.Problem = fmt.Sprintf("%s (%s): %s", c.Name, c.Timeout.File, f.Problem)
			return []Finding{f}
		}
	}
	return nil
}

// timeoutFix is the most that the declared chain allows a class, and what would
// have to be declared to allow what the class has.
func (in *inspection) timeoutFix(c Class, timeout int64) string {
	who := fmt.Sprintf("%s of %s", c.Timeout.By, c.Name)
	least := in.chain.LeastJob()
	if timeout > 0 && timeout < least {
		return fmt.Sprintf("set %s to at least %d, or shorten its calls", who, least)
	}
	lower, raise := "", ""
	most := in.chain.LongestJob()
	switch declared := in.chain.Job.N(); {
	case most < least:
	case declared >= least && declared < most:
		lower = fmt.Sprintf("set %s to at most %d (%d with jobSeconds %d)", who, declared, most, most)
	default:
		lower = fmt.Sprintf("set %s to at most %d", who, most)
	}
	if timeout > 0 {
		raise = in.declaring(timeoutchain.LinkJob, timeout)
	}
	return or(lower, raise)
}

// number is a limit that is one number for every job of the class.
func (c Class) number(name string, l *Limit) *int64 {
	if l == nil || len(l.Numbers) != 1 || c.dynamic(name) {
		return nil
	}
	return &l.Numbers[0]
}

// dynamic says whether a limit is decided only when a job is made. Before
// Laravel 13 a property comes before a method of its name, but a job that has
// both is seldom meant to.
func (c Class) dynamic(limit string) bool {
	return contains(c.Assigned, limit) || contains(c.Methods, limit)
}

var classTimeoutOverDeclared = Rule{
	ID: "class-timeout-over-declared", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "A job class sets a `$timeout` above `jobSeconds`, and the chain holds with it all the same.",
		Why:    "The declared number is meant to be the longest: a rollout on the Database driver, the derived grace and the timeline all go by it.",
		Remedy: "declare the longest timeout as jobSeconds, or lower the class's",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, c := range in.classes() {
			timeout := c.number("timeout", c.Timeout)
			if timeout == nil || !in.chain.Job.Positive() || *timeout <= in.chain.Job.N() || len(in.timeoutFindings(c, *timeout)) > 0 {
				continue
			}
			findings = append(findings, Finding{
				Subject: c.Name, Link: timeoutchain.LinkJob,
				Problem:     fmt.Sprintf("%s (%s): %s %d is above jobSeconds %d", c.Name, c.Timeout.File, c.Timeout.By, *timeout, in.chain.Job.N()),
				Consequence: "jobSeconds is not the longest a job may take, and what is derived from it is too short for this one",
				Fix:         fmt.Sprintf("declare jobSeconds %d, or set %s of %s to at most %d", *timeout, c.Timeout.By, c.Name, in.chain.Job.N()),
			})
		}
		return findings
	},
}

var classLimitNotANumber = Rule{
	ID: "class-limit-not-a-number", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "A job class sets `timeout` or `tries` to something that is no number, such as `'10 minutes'`, an empty text or a list. A warning for `backoff`, and for `uniqueFor` of a class that is unique.",
		Why:    "Laravel hands the value on as it is. With such a timeout PHP ends the worker as soon as it takes the job, which comes back and ends the next one; an empty text means no limit. Such tries never run out, such a backoff is no pause.",
		Remedy: "write the number of seconds, or of runs",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, c := range in.classes() {
			for _, l := range c.numeric() {
				if l.limit == nil || l.limit.Text == "" || c.dynamic(l.name) {
					continue
				}
				findings = append(findings, Finding{
					Severity: l.severity, Subject: c.Name, Link: l.link,
					Problem:     fmt.Sprintf("%s (%s): %s is %s, which is no number", c.Name, l.limit.File, l.limit.By, l.limit.Text),
					Consequence: l.consequence, Fix: fmt.Sprintf("set %s of %s to a whole number", l.limit.By, c.Name),
				})
			}
		}
		return findings
	},
}

// numericLimit is a limit that must be a number, and what follows if it is not.
type numericLimit struct {
	name        string
	limit       *Limit
	link        timeoutchain.Link
	severity    timeoutchain.Severity
	consequence string
}

func (c Class) numeric() []numericLimit {
	limits := []numericLimit{
		{"timeout", c.Timeout, timeoutchain.LinkJob, timeoutchain.Error, "the worker dies when it takes such a job, or runs it without a limit"},
		{"tries", c.Tries, timeoutchain.LinkTries, timeoutchain.Error, "a job that kills its process is run again for ever"},
		{"backoff", c.Backoff, timeoutchain.LinkBackoff, timeoutchain.Warning, "there is no pause before the next run"},
	}
	if c.Unique {
		limits = append(limits, numericLimit{"uniqueFor", c.UniqueFor, timeoutchain.LinkUniqueFor, timeoutchain.Warning, "the lock cannot be taken, or ends at another time"})
	}
	return limits
}

var classLimitHidden = Rule{
	ID: "class-limit-hidden", Severity: timeoutchain.Warning,
	Doc: timeoutchain.Doc{
		When:   "A job class sets `timeout`, `tries`, `backoff` or `uniqueFor` in a property that is not public.",
		Why:    "The queue reads the property from outside the class and sees none: the worker's own option applies.",
		Remedy: "make the property public",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, c := range in.classes() {
			for _, name := range c.Hidden {
				findings = append(findings, Finding{
					Subject:     c.Name,
					Problem:     fmt.Sprintf("%s (%s): $%s is not public", c.Name, c.File, name),
					Consequence: "the queue does not see it, and the worker's own option applies", Fix: fmt.Sprintf("make $%s public", name),
				})
			}
		}
		return findings
	},
}

var classNotVerified = Rule{
	ID: "class-not-verified", Severity: Unverified,
	Doc: timeoutchain.Doc{
		When:   "A job class sets `timeout`, `tries`, `backoff` or `uniqueFor` in its constructor, be it an inherited one or by a promoted parameter, or has a method `tries()`, `backoff()`, `uniqueFor()` or `retryUntil()`.",
		Why:    "The number is known only when a job is made. Classes are loaded here, never made.",
		Remedy: "make it a property with a default, if one number fits all jobs of the class",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, c := range in.classes() {
			var what []string
			for _, name := range c.Assigned {
				if name != "queue" && name != "connection" {
					what = append(what, "$"+name+" is set in the constructor")
				}
			}
			for _, name := range c.Methods {
				what = append(what, name+"() decides at run time")
			}
			if c.RetryUntil {
				what = append(what, "retryUntil replaces the number of tries")
			}
			if len(what) > 0 {
				findings = append(findings, Finding{Subject: c.Name, Problem: fmt.Sprintf("%s (%s): %s", c.Name, c.File, strings.Join(what, ", "))})
			}
		}
		return findings
	},
}

var classBroken = Rule{
	ID: "class-broken", Severity: Unverified,
	Doc: timeoutchain.Doc{
		When:   "A class of the application cannot be loaded, or loading it ends or hangs the process; or the list of classes could not be made at all.",
		Why:    "Its limits cannot be seen. That need not be a fault: a test helper whose base class is not in the image is one such class. If it is a job, its worker will meet the same error.",
		Remedy: "repair what the error names, or leave the file out of the image",
	},
	check: func(in *inspection) []Finding {
		var findings []Finding
		for _, b := range in.facts.Light.Broken {
			findings = append(findings, Finding{Subject: b.Name, Problem: fmt.Sprintf("%s cannot be loaded: %s", b.Name, b.Failure)})
		}
		if ending := in.facts.Light.Ending; in.facts.Light.App != nil && ending.How != Ended {
			reason := cmp.Or(why(ending), ending.Failure.String(), "the process ended")
			findings = append(findings, Finding{Problem: "not all job classes were seen: " + reason})
		}
		return findings
	},
}
