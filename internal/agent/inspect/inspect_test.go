// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/inspect"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestForTakesTheCommandApart(t *testing.T) {
	declared := preflight.Declared{Connection: "redis", Queues: []string{"payments", "default"}, Fence: timeoutchain.FenceTable, FenceTable: "fence", FenceKey: "key"}
	for name, c := range map[string]struct {
		runtime timeoutchain.Runtime
		command string
		php     string
		artisan string
		options string
	}{
		"plain":   {timeoutchain.Laravel, "php artisan queue:work redis --timeout=30", "php", "artisan", "queue:work redis --timeout=30"},
		"wrapped": {timeoutchain.Laravel, "/entrypoint.sh php -d x=1 /app/artisan queue:work", "/entrypoint.sh php -d x=1", "/app/artisan", "queue:work"},
		"horizon": {timeoutchain.Horizon, "php artisan horizon --environment=x", "php", "artisan", "horizon --environment=x"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := inspect.For(c.runtime, declared, strings.Fields(c.command))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(plan.PHP, strings.Fields(c.php)) || plan.Artisan != c.artisan || !slices.Equal(plan.Options, strings.Fields(c.options)) {
				t.Errorf("got %+v", plan)
			}
			if plan.Connection != "redis" || plan.Queue != "payments" || plan.FenceTable != "fence" || plan.FenceKey != "key" {
				t.Errorf("the declaration is not asked for: %+v", plan)
			}
		})
	}
	for _, command := range []string{"", "queue:work", "artisan queue:work", "php artisan horizon"} {
		if _, err := inspect.For(timeoutchain.Laravel, declared, strings.Fields(command)); err == nil || !strings.Contains(err.Error(), "queue:work") {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// speaker is a program in the place of PHP. A shell reads it: a file just written
// cannot be executed while another test's new process still holds it open.
func speaker(t *testing.T, script string) inspect.Plan {
	t.Helper()
	path := filepath.Join(t.TempDir(), "php")
	if err := os.WriteFile(path, []byte(script+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return inspect.Plan{PHP: []string{"/bin/sh", path}, Artisan: "artisan", Scripts: t.TempDir(), Env: os.Environ(), Limit: 2 * time.Minute}
}

// How a process ends is a fact, whatever it is.
func TestEndings(t *testing.T) {
	const record = `echo '{"v":1,"kind":"end","stage":"light","facts":{}}' >&3`
	for name, c := range map[string]struct {
		script string
		how    preflight.How
		said   string
	}{
		"ended":                    {record, preflight.Ended, ""},
		"ended, and is killed":     {record + "; kill -9 $$", preflight.Ended, ""},
		"says nothing":             {"exit 0", preflight.Failed, "it said nothing"},
		"another program":          {"echo usage: php >&2; exit 1", preflight.Failed, "usage: php"},
		"its last words count":     {"echo first; echo; echo last; kill -9 $$", preflight.Killed, "last"},
		"records of another kind":  {`echo '{"v":1,"kind":"news"}' >&3; sleep 600`, preflight.Unread, "unknown kind"},
		"no records":               {`echo 'Warning: x' >&3`, preflight.Unread, "not JSON"},
		"too much":                 {`while :; do echo '{"v":1,"kind":"loading","stage":"light","facts":{"class":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","file":"y"}}'; done >&3`, preflight.TooMuch, ""},
		"a line without end":       {`head -c 3000000 /dev/zero | tr '\0' x >&3`, preflight.TooMuch, ""},
		"keeps the pipe in others": {record + "; sleep 600 & exit 0", preflight.Ended, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			ending := inspect.Inspect(speaker(t, c.script)).Light.Ending
			if ending.How != c.how || !strings.Contains(ending.Failure.Message, c.said) {
				t.Errorf("got %+v, wanted %s with %q", ending, c.how, c.said)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("took %s", took)
			}
		})
	}
	t.Run("takes too long", func(t *testing.T) {
		t.Parallel()
		plan := speaker(t, "sleep 600 & echo waiting; sleep 600")
		plan.Limit = 5 * time.Second // more than a shell needs to begin
		if ending := inspect.Inspect(plan).Light.Ending; ending.How != preflight.TimedOut || ending.Failure.Message != "waiting" {
			t.Errorf("got %+v", ending)
		}
	})
	t.Run("is not there", func(t *testing.T) {
		t.Parallel()
		plan := speaker(t, "")
		plan.PHP = []string{"/nowhere/php"}
		if ending := inspect.Inspect(plan).Light.Ending; ending.How != preflight.NotStarted || !strings.Contains(ending.Failure.Message, `"/nowhere/php"`) {
			t.Errorf("got %+v", ending)
		}
	})
}
