// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func wire() timeoutchain.Wire {
	return timeoutchain.Wire{Version: 1, Runtime: timeoutchain.Laravel, Driver: timeoutchain.Beanstalkd, CallSeconds: 20, JobSeconds: 30, RetryAfterSeconds: 90, GraceSeconds: 100}
}

func declared() preflight.Declared {
	return preflight.Declared{Version: 1, Connection: "beanstalkd", Supervision: preflight.Full}
}

// sound is an application in which nothing is wrong.
func sound() preflight.Facts {
	app := &preflight.App{}
	ninety := int64(90)
	app.PHP.Pcntl, app.PHP.Posix, app.PHP.MemoryLimit = true, true, 512<<20
	app.Laravel.Version = "12.67.0"
	app.Queue = preflight.Connection{
		Connection: "beanstalkd", Connections: []string{"beanstalkd"}, Exists: true, Driver: "beanstalkd", Queue: "default",
		RetryAfter: preflight.Setting{Set: true, Value: &ninety},
	}
	app.Failed.Driver, app.Failed.Store, app.Cache.Store, app.Cache.Driver = "dynamodb", "dynamodb", "redis", "redis"
	ended := preflight.Ending{How: preflight.Ended}
	return preflight.Facts{Light: preflight.Reading{App: app, Ending: ended}, Booted: preflight.Reading{App: app, Ending: ended}}
}

func judge(facts preflight.Facts) preflight.Verdict {
	return preflight.Judge(wire(), declared(), 0, facts)
}

func TestOutcomes(t *testing.T) {
	if v := judge(sound()); v.Outcome != preflight.Passed || len(v.Findings) != 0 {
		t.Fatalf("a sound application: %s %+v", v.Outcome, v.Findings)
	}
	unbooted := func(how preflight.How, class, message string) preflight.Facts {
		facts := sound()
		facts.Booted = preflight.Reading{Ending: preflight.Ending{How: how, Failure: preflight.Failure{Class: class, Message: message}}}
		return facts
	}
	for name, c := range map[string]struct {
		facts   preflight.Facts
		outcome preflight.Outcome
		rule    string
	}{
		"nothing could be started":   {preflight.Facts{Light: preflight.Reading{Ending: preflight.Ending{How: preflight.NotStarted}}}, preflight.Refused, "php-missing"},
		"no application":             {preflight.Facts{Light: preflight.Reading{Missing: &preflight.Missing{File: "artisan"}, Ending: preflight.Ending{How: preflight.Ended}}}, preflight.Refused, "application-missing"},
		"fails":                      {unbooted(preflight.Failed, "LogicException", "no key"), preflight.Refused, "boot-failed"},
		"ends itself":                {unbooted(preflight.Exited, "", ""), preflight.Refused, "boot-failed"},
		"records of another version": {unbooted(preflight.Unread, "", "version 2"), preflight.Refused, "boot-failed"},
		"the database is away":       {unbooted(preflight.Failed, "Illuminate\\Database\\QueryException PDOException", "SQLSTATE[HY000] [2002] Connection refused"), preflight.Passed, "boot-failed"},
		"the password is refused":    {unbooted(preflight.Failed, "PDOException", "SQLSTATE[HY000] [1045] Access denied for user"), preflight.Refused, "boot-failed"},
		"says refused, is no client": {unbooted(preflight.Failed, "DomainException", "connection refused by policy"), preflight.Refused, "boot-failed"},
		"hangs":                      {unbooted(preflight.TimedOut, "", ""), preflight.Unjudged, "preflight-unfinished"},
		"killed":                     {unbooted(preflight.Killed, "", ""), preflight.Unjudged, "preflight-unfinished"},
		"killed for its memory":      {unbooted(preflight.OOMKilled, "", ""), preflight.Unjudged, "preflight-unfinished"},
		"over PHP's memory":          {unbooted(preflight.Failed, "", "Allowed memory size of 1 bytes exhausted"), preflight.Unjudged, "preflight-unfinished"},
		"says more than is read":     {unbooted(preflight.TooMuch, "", ""), preflight.Unjudged, "preflight-unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(c.facts)
			if v.Outcome != c.outcome || len(v.Findings) != 1 || v.Findings[0].Rule != c.rule {
				t.Errorf("wanted %s by %s, got %s %+v", c.outcome, c.rule, v.Outcome, v.Findings)
			}
		})
	}
}

// A list of classes that broke off is not taken for a whole one.
func TestClassesThatWereNotSeen(t *testing.T) {
	facts := sound()
	facts.Light.Ending = preflight.Ending{How: preflight.Failed, Failure: preflight.Failure{Message: "cannot read app/Jobs"}}
	v := judge(facts)
	if v.Outcome != preflight.Passed || v.Count(preflight.Unverified) != 1 || !strings.Contains(v.Findings[0].Problem, "cannot read app/Jobs") {
		t.Errorf("got %s %+v", v.Outcome, v.Findings)
	}
}

// A verdict that only a change removes is not hidden by one that may pass.
func TestRefusedBeatsUnjudged(t *testing.T) {
	facts := sound()
	facts.Light.App.PHP.Pcntl = false
	facts.Booted = preflight.Reading{Ending: preflight.Ending{How: preflight.Killed}}
	if v := judge(facts); v.Outcome != preflight.Refused || len(v.Findings) != 2 {
		t.Errorf("got %s %+v", v.Outcome, v.Findings)
	}
}

func TestErrorsComeFirst(t *testing.T) {
	facts := sound()
	facts.Light.Broken = []preflight.Broken{{Name: "A"}}
	facts.Light.App.Cache.Driver = "array"
	facts.Light.App.Queue.RetryAfter = preflight.Setting{}
	var order []string
	for _, f := range judge(facts).Findings {
		order = append(order, string(f.Severity)+" "+f.Rule)
	}
	want := []string{"error retry-after-differs", "warning restart-store-not-shared", "unverified class-broken"}
	if !slices.Equal(order, want) {
		t.Errorf("got %q, wanted %q", order, want)
	}
}

// Every finding names both values, and what to change.
func TestMessageOfAClass(t *testing.T) {
	facts := sound()
	facts.Light.Classes = []preflight.Class{{
		Name: `App\Jobs\Export`, File: "app/Jobs/Export.php",
		Timeout: &preflight.Limit{Numbers: []int64{600}, By: "$timeout", In: `App\Jobs\Slow`, File: "app/Jobs/Slow.php"},
	}}
	v := judge(facts)
	if len(v.Findings) != 1 {
		t.Fatalf("got %+v", v.Findings)
	}
	message := v.Findings[0].Message()
	for _, part := range []string{"job-not-below-retry-after: ", `App\Jobs\Export (app/Jobs/Slow.php): $timeout 600 must be below retryAfterSeconds 90`, "to at most 30 (67 with jobSeconds 67)", "declare jobSeconds 600 and retryAfterSeconds 623"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q lacks %q", message, part)
		}
	}
	if strings.Contains(message, "jobSeconds 600 must") {
		t.Errorf("the class has no jobSeconds: %q", message)
	}
}

func TestRuleIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range preflight.Rules() {
		if rule.ID == "" {
			continue
		}
		if _, ofChain := timeoutchain.RuleByID(rule.ID); ofChain || seen[rule.ID] {
			t.Errorf("%s is taken", rule.ID)
		}
		seen[rule.ID] = true
	}
	for _, id := range preflight.ChainRules() {
		if _, ok := timeoutchain.RuleByID(id); !ok {
			t.Errorf("the chain has no rule %s", id)
		}
	}
}
