// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

var told = regexp.MustCompile(`(\$timeout of A to|with jobSeconds|jobSeconds|retryAfterSeconds)( at most| at least)? (\d+)`)

// Whoever follows the fix of a class's timeout gets no further finding, whichever
// way he takes. A second more than the most that is told is found.
func TestFixOfAClassHolds(t *testing.T) {
	for _, c := range []struct{ call, job int64 }{{0, 30}, {1, 30}, {20, 30}, {20, 80}} {
		for timeout := int64(-1); timeout < 150; timeout++ {
			chain := wire()
			chain.CallSeconds, chain.JobSeconds = c.call, c.job
			for _, f := range judgeTimeout(chain, timeout).Findings {
				followFix(t, chain, timeout, f)
			}
		}
	}
}

func followFix(t *testing.T, chain timeoutchain.Wire, timeout int64, f preflight.Finding) {
	t.Helper()
	steps := map[string]int64{}
	for _, step := range told.FindAllStringSubmatch(f.Fix, -1) {
		steps[step[1]], _ = strconv.ParseInt(step[3], 10, 64)
	}
	lower := steps["$timeout of A to"]
	if lower == 0 {
		t.Fatalf("no other timeout is told in %q", f.Message())
	}
	expectNothing(t, f, judgeTimeout(chain, lower))
	most := lower
	if with, ok := steps["with jobSeconds"]; ok {
		most = with
		higher := chain
		higher.JobSeconds = with
		expectNothing(t, f, judgeTimeout(higher, with))
	}
	if strings.Contains(f.Fix, "at most") && len(judgeTimeout(chain, most+1).Findings) == 0 {
		t.Errorf("%q tells of %d, and one more is allowed, too", f.Message(), most)
	}
	if len(judgeTimeout(chain, most).Findings) > 0 && judgeTimeout(chain, most).Findings[0].Rule != "class-timeout-over-declared" {
		t.Errorf("%q tells of %d, which is found", f.Message(), most)
	}
	if raised := steps["jobSeconds"]; raised > 0 {
		expectNothing(t, f, judgeTimeout(declaring(chain, raised, steps["retryAfterSeconds"]), timeout))
	}
}

// declaring is a chain with these numbers, its grace derived.
func declaring(w timeoutchain.Wire, job, retryAfter int64) timeoutchain.Wire {
	w.JobSeconds, w.RetryAfterSeconds = job, max(retryAfter, w.RetryAfterSeconds)
	w.GraceSeconds = max(w.RetryAfterSeconds, job+w.CallSeconds) + 10
	return w
}

func judgeTimeout(chain timeoutchain.Wire, timeout int64) preflight.Verdict {
	facts := sound()
	*facts.Light.App.Queue.RetryAfter.Value = chain.RetryAfterSeconds
	facts.Light.Classes = []preflight.Class{{Name: "A", Timeout: &preflight.Limit{Numbers: []int64{timeout}, By: "$timeout"}}}
	return preflight.Judge(chain, declared(), 0, facts)
}

func expectNothing(t *testing.T, followed preflight.Finding, v preflight.Verdict) {
	t.Helper()
	if len(v.Findings) > 0 {
		t.Errorf("whoever follows %q is told %q", followed.Message(), v.Findings[0].Message())
	}
}

// A grace that is declared has to follow, and a derived one is not spoken of.
func TestFixOfAClassTellsOfADeclaredGrace(t *testing.T) {
	for grace, want := range map[int64]string{
		100: "declare jobSeconds 600 and retryAfterSeconds 623",
		120: "declare jobSeconds 600 and retryAfterSeconds 623 and terminationGracePeriodSeconds 628",
	} {
		chain := wire()
		chain.GraceSeconds = grace
		if fix := judgeTimeout(chain, 600).Findings[0].Fix; !strings.HasSuffix(fix, ", or "+want) {
			t.Errorf("grace %d: %q, wanted %q", grace, fix, want)
		}
	}
}

// The application's pop is mended in the application.
func TestFixOfAPopIsThePlaceThatIsWrong(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	const file = "config/queue.php"
	for name, c := range map[string]struct {
		declared, actual *int64
		rule, fix        string
	}{
		"for ever":           {number(5), number(0), "block-forever", "set block_for to 5 in " + file},
		"for ever, none":     {nil, number(0), "block-forever", "leave block_for out of " + file},
		"too long":           {nil, number(80), "drain-exceeds-grace", "leave block_for out of " + file + ", or declare blockForSeconds 80"},
		"longer":             {number(5), number(8), "block-for-differs", "set block_for to 5 in " + file + ", or declare blockForSeconds 8"},
		"none, though there": {number(5), nil, "block-for-differs", "set block_for to 5 in " + file + ", or leave blockForSeconds out"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			app := facts.Light.App
			app.Queue.Driver, app.Queue.BlockFor = "redis", preflight.Setting{Set: c.actual != nil, Value: c.actual}
			chain, d := wire(), declared()
			chain.Driver, d.BlockFor = timeoutchain.Redis, c.declared
			v := preflight.Judge(chain, d, 0, facts)
			if len(v.Findings) != 1 || v.Findings[0].Rule != c.rule || v.Findings[0].Fix != c.fix || strings.Contains(v.Findings[0].Problem, "blockForSeconds 0") {
				t.Errorf("wanted %s with %q, got %+v", c.rule, c.fix, v.Findings)
			}
		})
	}
}

// A text says what stands in the application, not what it comes down to.
func TestMessagesQuoteTheApplication(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*preflight.Facts)
		want   string
	}{
		"a driver of null": {func(f *preflight.Facts) { f.Light.App.Failed.Driver, f.Light.App.Failed.Store = "null", "null" }, "queue.failed.driver in config/queue.php is null: "},
		"no driver": {func(f *preflight.Facts) { f.Light.App.Failed.Driver, f.Light.App.Failed.Store = "", "null" },
			"queue.failed.driver in config/queue.php is missing, and there is no queue.failed.table: "},
		"the store that keeps nothing": {func(f *preflight.Facts) { f.Light.App.Cache.Store, f.Light.App.Cache.Driver = "null", "null" }, "cache.default is null (config/cache.php)"},
		"no such store":                {func(f *preflight.Facts) { f.Light.App.Cache.Store, f.Light.App.Cache.Driver = "shared", "" }, `cache.default is "shared", and cache.stores has no such store`},
		"a limit of ini_set": {func(f *preflight.Facts) {
			f.Light.App.PHP.MemoryLimit, f.Light.App.PHP.MemoryLimitAtStart = 96<<20, 512<<20
		}, "memory_limit of 96 MiB (set by the application's own code)"},
		"a limit of php.ini": {func(f *preflight.Facts) {
			f.Light.App.PHP.MemoryLimit, f.Light.App.PHP.MemoryLimitAtStart = 96<<20, 96<<20
		}, "memory_limit of 96 MiB (php.ini)"},
		"a timeout below 0": {func(f *preflight.Facts) {
			f.Light.Classes = []preflight.Class{{Name: "A", File: "a.php", Timeout: &preflight.Limit{Numbers: []int64{-1}, By: "$timeout", File: "a.php"}}}
		}, "A (a.php): $timeout -1 means no limit"},
		"a table with a prefix": {func(f *preflight.Facts) {
			f.Light.App.Failed.Driver, f.Light.App.Failed.Store = "database", "database"
			f.Booted.Servers.Failed = &preflight.Table{Name: "pk_failed_jobs", Connection: "prefixed"}
		}, "the table pk_failed_jobs, which database connection prefixed does not have"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			c.change(&facts)
			d := declared()
			d.MemoryMegabytes = new(int64)
			*d.MemoryMegabytes = 128
			v := preflight.Judge(wire(), d, 0, facts)
			if len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Message(), c.want) {
				t.Errorf("wanted %q, got %+v", c.want, v.Findings)
			}
		})
	}
}
