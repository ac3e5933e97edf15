// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"os"
	"slices"
	"testing"
)

// newStandIn is an application on a stand-in for a newer Laravel, see
// testdata/standin. The same PHP files of ours read it. Its Redis is never
// there, so that rule is not verified.
func newStandIn(t *testing.T, version string) *app {
	t.Helper()
	a := newApp(t)
	if err := os.RemoveAll(a.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(a.dir, os.DirFS("testdata/standin")); err != nil {
		t.Fatal(err)
	}
	a.env = append(baseEnv(), "LARAVEL_VERSION="+version, "REDIS_QUEUE_RETRY_AFTER=90")
	return a
}

// attributed adds a job with what stands before its class.
func attributed(a *app, name, attributes, body string) {
	a.job(name, body)
	a.edit("app/Jobs/"+name+".php", "class "+name, attributes+"\nclass "+name)
}

// TestShapes reads what only other versions have.
func TestShapes(t *testing.T) {
	const space = `#[\Illuminate\Queue\Attributes\`
	for _, c := range []struct {
		name, version string
		change        func(*app)
		want          []string
	}{
		{"9, as its skeleton", "9.52.22", func(a *app) { a.set("CACHE_DRIVER", "redis") }, nil},
		{"9, the cache's default", "9.52.22", func(*app) {}, []string{"restart-store-not-shared"}},
		{"10, the environment is not read", "10.50.3", func(a *app) {
			a.set("CACHE_DRIVER", "redis")
			a.wire.RetryAfterSeconds, a.wire.GraceSeconds = 120, 130
			a.set("REDIS_QUEUE_RETRY_AFTER", "120")
		}, []string{"retry-after-differs"}},
		{"11, the environment is read", "11.56.0", func(a *app) {
			a.wire.RetryAfterSeconds, a.wire.GraceSeconds = 120, 130
			a.set("REDIS_QUEUE_RETRY_AFTER", "120")
		}, nil},
		{"12, another connection of Redis", "12.67.0", func(a *app) { a.set("REDIS_QUEUE_CONNECTION", "queue") }, []string{"redis-connection-missing"}},
		{"12, attributes are not read", "12.67.0", func(a *app) { attributed(a, "Export", space+`Timeout(600)]`, "") }, nil},
		{"13, as its skeleton", "13.26.1", func(*app) {}, nil},
		{"13, timeout", "13.26.1", func(a *app) { attributed(a, "Export", space+`Timeout(600)]`, "") }, []string{"job-not-below-retry-after"}},
		{"13, timeout by name", "13.26.1", func(a *app) { attributed(a, "Export", space+`Timeout(value: 600)]`, "") }, []string{"job-not-below-retry-after"}},
		{"13, the attribute beats the property", "13.26.1", func(a *app) { attributed(a, "Export", space+`Timeout(25)]`, "    public $timeout = 600;") }, nil},
		{"13, inherited", "13.26.1", func(a *app) {
			attributed(a, "Slow", space+`Timeout(600)]`, "")
			a.edit("app/Jobs/Slow.php", "class Slow", "abstract class Slow")
			a.class("Jobs\\Export", "extends Slow", "")
		}, []string{"job-not-below-retry-after"}},
		{"13, a child's property beats the inherited attribute", "13.26.1", func(a *app) {
			attributed(a, "Slow", space+`Timeout(600)]`, "")
			a.edit("app/Jobs/Slow.php", "class Slow", "abstract class Slow")
			a.class("Jobs\\Export", "extends Slow", "    public $timeout = 25;")
		}, nil},
		{"13, of a trait", "13.26.1", func(a *app) {
			a.write("app/TakesLong.php", "<?php\nnamespace App;\n"+space+"Timeout(600)]\ntrait TakesLong {}\n")
			a.job("Export", "    use \\App\\TakesLong;")
		}, []string{"job-not-below-retry-after"}},
		{"13, tries", "13.26.1", func(a *app) { attributed(a, "Export", space+`Tries(0)]`, "") }, []string{"retries-unbounded"}},
		{"13, backoff", "13.26.1", func(a *app) { attributed(a, "Export", space+`Backoff([5, 5])]`, "") }, []string{"backoff-flat"}},
		{"13, uniqueFor", "13.26.1", func(a *app) {
			attributed(a, "Export", space+`UniqueFor(60)]`, "")
			a.edit("app/Jobs/Export.php", "implements ShouldQueue", "implements ShouldQueue, ShouldBeUnique")
		}, []string{"unique-lock-shorter-than-retries"}},
		{"13, a job of another queue", "13.26.1", func(a *app) {
			attributed(a, "Export", space+`Timeout(600)] `+space+`Queue('exports')]`, "")
		}, nil},
		{"13, a cluster needs no hash tags", "13.26.1", func(a *app) { a.set("REDIS_CLUSTER", "1") }, nil},
		{"13.4, a cluster needs hash tags", "13.4.0", func(a *app) { a.set("REDIS_CLUSTER", "1") }, []string{"redis-cluster-hash-tag"}},
		{"13, Horizon on a cluster", "13.26.1", func(a *app) { supervisors(a, "production", ""); a.set("REDIS_CLUSTER", "1") }, []string{"horizon-on-cluster"}},
		{"12.60 with Horizon 5.46.0", "12.60.0", func(a *app) { supervisors(a, "production", ""); a.set("HORIZON_VERSION", "v5.46.0") }, []string{"framework-fault"}},
		{"12.59 with Horizon 5.46.0", "12.59.0", func(a *app) { supervisors(a, "production", ""); a.set("HORIZON_VERSION", "v5.46.0") }, nil},
		{"12.60 with Horizon 5.47.0", "12.60.0", func(a *app) { supervisors(a, "production", ""); a.set("HORIZON_VERSION", "v5.47.0") }, nil},
		{"Horizon 5.25, long jobs without a balance", "10.50.3", func(a *app) {
			longJobs(a, "'off'", 1)
			a.set("CACHE_DRIVER", "redis")
			a.set("HORIZON_VERSION", "v5.25.0")
		}, nil},
		{"Horizon 5.26, long jobs without a balance", "10.50.3", func(a *app) {
			longJobs(a, "'off'", 1)
			a.set("CACHE_DRIVER", "redis")
			a.set("HORIZON_VERSION", "v5.26.0")
		}, []string{"horizon-balance-long-jobs"}},
		{"Horizon 5.25, long jobs under a balance", "10.50.3", func(a *app) {
			longJobs(a, "'auto'", 1)
			a.set("CACHE_DRIVER", "redis")
			a.set("HORIZON_VERSION", "v5.25.0")
		}, []string{"horizon-balance-long-jobs"}},
		{"7", "7.30.6", func(a *app) { a.set("CACHE_DRIVER", "redis") }, []string{"framework-fault"}},
		{"SQS, another visibility", "12.67.0", func(a *app) { onSQS(a); a.set("SQS_VISIBILITY", "30") }, []string{"retry-after-differs"}},
		{"SQS, the declared visibility", "12.67.0", func(a *app) { onSQS(a); a.set("SQS_VISIBILITY", "90") }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newStandIn(t, c.version)
			c.change(a)
			if verdict := a.judge(); !slices.Equal(alarms(verdict), c.want) {
				t.Errorf("wanted %v, got\n%s", c.want, text(verdict))
			}
		})
	}
	t.Run("SQS, not allowed to ask", func(t *testing.T) {
		t.Parallel()
		a := newStandIn(t, "12.67.0")
		onSQS(a)
		if verdict := a.judge(); len(alarms(verdict)) > 0 || !slices.Contains(unseen(verdict), "retry-after-differs") {
			t.Errorf("got\n%s", text(verdict))
		}
	})
}

func onSQS(a *app) { a.declared.Connection, a.wire.Driver = "sqs", "SQS" }
