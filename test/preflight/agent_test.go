// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	judge "github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// outcome is what a run of the init container left behind.
type outcome struct {
	code            int
	stderr, message string
}

// agent runs the init container's command. Words around it can take its rights
// away.
func (a *app) agent(around []string, flags ...string) outcome {
	a.t.Helper()
	program, err := agent()
	if err != nil {
		a.t.Fatal(err)
	}
	open := filepath.Join(a.dir, "..", filepath.Base(a.dir)+".shared")
	for _, dir := range []string{open, filepath.Join(open, "qw")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			a.t.Fatal(err)
		}
		_ = os.Chmod(dir, 0o777)
	}
	a.t.Cleanup(func() { _ = os.RemoveAll(open) })
	message := filepath.Join(open, "termination-log")
	if err := os.WriteFile(message, nil, 0o666); err != nil {
		a.t.Fatal(err)
	}
	_ = os.Chmod(message, 0o666)
	words := append(append(around, program, "preflight", "--dir="+filepath.Join(open, "qw"), "--termination-log="+message), flags...)
	words = append(append(words, "--"), a.words()...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = a.dir
	cmd.Env = append(a.env, timeoutchain.WireEnv+"="+a.wire.Encode(), judge.DeclaredEnv+"="+a.declared.Encode(), "QUEUEWORKER_MEMORY_LIMIT="+sprintf("%d", a.memory))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		a.t.Fatal(err)
	}
	text, err := os.ReadFile(message)
	if err != nil {
		a.t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stderr.String(), string(text)}
}

func (o outcome) want(t *testing.T, code int, words ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, wanted %d", o.code, code)
	}
	for _, word := range words {
		if !strings.Contains(o.message, word) || !strings.Contains(o.stderr, word) {
			t.Errorf("message or standard error lack %q", word)
		}
	}
	if t.Failed() {
		t.Logf("message:\n%s\nstandard error:\n%s", o.message, o.stderr)
	}
}

func TestAgent(t *testing.T) {
	export := func(a *app) { a.job("Export", "    public $timeout = 600;") }
	for name, c := range map[string]struct {
		change func(*app)
		flags  []string
		code   int
		words  []string
	}{
		"sound":                       {func(*app) {}, nil, 0, []string{"preflight Passed: 0 errors, 0 warnings"}},
		"enforced":                    {export, nil, 1, []string{"preflight Refused: 1 errors", "job-not-below-retry-after", `App\Jobs\Export`, "600", "90"}},
		"warned":                      {export, []string{"--policy=Warn"}, 0, []string{"preflight Refused: 1 errors", "job-not-below-retry-after"}},
		"no php":                      {func(a *app) { a.php = []string{"php7.0"} }, nil, 1, []string{"php-missing", `there is no program "php7.0" in the image`}},
		"not php":                     {func(a *app) { a.php = []string{"/bin/false"} }, nil, 1, []string{"boot-failed", "did not run our PHP file"}},
		"a wrapper":                   {func(a *app) { a.write("run.sh", "exec \"$@\"\n"); a.php = []string{"sh", "run.sh", "php8.2"} }, nil, 0, []string{"preflight Passed"}},
		"a wrapper that closes files": {func(a *app) { a.write("run.sh", "exec \"$@\" 3>&-\n"); a.php = []string{"sh", "run.sh", "php8.2"} }, nil, 1, []string{"boot-failed", "file descriptor 3 is closed"}},
		"wrong working directory": {func(a *app) { a.artisan = "current/artisan" }, nil, 1, []string{
			"application-missing", "there is no file current/artisan (working directory "}},
		"no vendor":            {func(a *app) { _ = os.Remove(filepath.Join(a.dir, "vendor/autoload.php")) }, nil, 1, []string{"application-missing", "vendor/autoload.php"}},
		"hung while it starts": {func(a *app) { provider(a, "fwrite(STDERR, \"waiting for the shop\\n\"); sleep(600);") }, []string{"--timeout=15s"}, 75, []string{"preflight Unjudged", "preflight-unfinished", "longer than the time limit", "waiting for the shop"}},
		"hung in a class":      {func(a *app) { a.write("app/Jobs/Export.php", "<?php\nsleep(600);\n") }, []string{"--timeout=15s"}, 0, []string{"class-broken", `App\Jobs\Export cannot be loaded: loading it takes longer`}},
		"killed":               {func(a *app) { provider(a, "posix_kill(getmypid(), SIGKILL);") }, nil, 75, []string{"preflight-unfinished", "PHP was killed"}},
		"out of memory": {func(a *app) {
			a.php = []string{"php8.2", "-d", "memory_limit=16M"}
			provider(a, "str_repeat('x', 1 << 26);")
		}, nil, 75, []string{"preflight-unfinished", "PHP ran out of memory", "AppServiceProvider.php"}},
		"fatal while it starts": {func(a *app) { provider(a, "new class implements \\Countable {};") }, nil, 1, []string{"boot-failed", "Class Countable@anonymous contains 1 abstract method"}},
		"prints while it starts": {func(a *app) {
			provider(a, "echo str_repeat(\"noise {\\\"v\\\":1}\\n\", 100000); fwrite(STDERR, 'more');")
		}, nil, 0, []string{"preflight Passed"}},
		"warns while it starts": {func(a *app) {
			provider(a, "@trigger_error('careful', E_USER_DEPRECATED);")
			a.edit("bootstrap/app.php", "<?php", "<?php echo $undefined;")
		}, nil, 0, []string{"preflight Passed"}},
		"leaves a process behind": {func(a *app) { provider(a, "shell_exec('sleep 600 > /dev/null 2>&1 &');") }, nil, 0, []string{"preflight Passed"}},
		"says too much": {func(a *app) {
			provider(a, "config(['queue.connections' => array_fill_keys(array_map(function ($i) { return str_repeat('x', 60).$i; }, range(1, 30000)), []) + config('queue.connections')]);")
		}, nil, 75, []string{"preflight-unfinished", "said more than is read"}},
		"a secret in the error": {func(a *app) {
			a.set("REDIS_PASSWORD", "hunter2-hunter2")
			provider(a, "throw new \\LogicException('cannot log in with hunter2-hunter2 at https://shop:pa55word@example.com');")
		}, nil, 1, []string{"boot-failed", "cannot log in with *** at https://***@example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			c.change(a)
			begin := time.Now()
			o := a.agent(nil, c.flags...)
			o.want(t, c.code, c.words...)
			for _, secret := range []string{"hunter2", "pa55word"} {
				if strings.Contains(o.stderr+o.message, secret) {
					t.Errorf("a secret is printed: %s", o.stderr)
				}
			}
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("took %s", took)
			}
		})
	}
}

// What makes no sense is refused before PHP starts.
func TestAgentRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*app)
		flags  []string
		want   string
	}{
		"no chain":       {func(a *app) { a.wire.Version = 9 }, nil, "version 9"},
		"no declaration": {func(a *app) { a.declared.Supervision = "Half" }, nil, `"Half"`},
		"unknown policy": {func(*app) {}, []string{"--policy=Maybe"}, `"Maybe"`},
		"no time":        {func(*app) {}, []string{"--timeout=0s"}, "no time"},
		"a shell":        {func(a *app) { a.wire.Runtime = timeoutchain.Horizon; a.options = nil; a.php, a.artisan = nil, "x" }, nil, "php artisan horizon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			c.change(a)
			if o := a.agent(nil, c.flags...); o.code != 64 || !strings.Contains(o.stderr, c.want) {
				t.Errorf("exit code %d: %s", o.code, o.stderr)
			}
		})
	}
}

// A worker of which nothing is known has nothing to compare.
func TestAgentGeneric(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.wire.Runtime, a.php = timeoutchain.Generic, []string{"nothing"}
	a.agent(nil).want(t, 0, "preflight Passed")
}

// The init container has the rights of the worker: none.
func TestAgentReadOnlyRootAndAnyUser(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.command("list") // what the image's build leaves in bootstrap/cache
	a.job("Export", "    public $timeout = 600;")
	around := []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" &&
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"`, a.dir}
	before := snapshot(t, a.dir)
	a.agent(around).want(t, 1, "job-not-below-retry-after", "preflight Refused: 1 errors, 0 warnings")
	if after := snapshot(t, a.dir); after != before {
		t.Errorf("the application has changed:\n%s\nwas\n%s", after, before)
	}
}

// With OPcache on, and its files where they are never looked at again.
func TestAgentWithOPcache(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.job("Export", "    public $timeout = 600;")
	a.php = []string{"php8.2", "-d", "opcache.enable_cli=1", "-d", "opcache.validate_timestamps=0", "-d", "opcache.save_comments=0"}
	a.agent(nil).want(t, 1, "job-not-below-retry-after")
}

// Nothing of the application is written, not even where it could be.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.command("list")
	before := snapshot(t, a.dir)
	a.agent(nil).want(t, 0, "preflight Passed")
	if after := snapshot(t, a.dir); after != before {
		t.Errorf("the application has changed:\n%s\nwas\n%s", after, before)
	}
}

func snapshot(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-type", "f", "-printf", "%P %s %T@\n").Output()
	if err != nil || len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// However much there is to say, the message fits and begins with the errors.
func TestMessageFits(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	for i := range 60 {
		a.job(sprintf("Export%d%s", i, strings.Repeat("x", 60)), "    public $timeout = 600;")
		a.job(sprintf("Lost%d", i), "    protected $tries = 3;")
	}
	o := a.agent(nil)
	o.want(t, 1, "preflight Refused: 60 errors, 60 warnings")
	lines := strings.Split(o.message, "\n")
	if len(o.message) > termination.MaxBytes || len(o.message) < termination.MaxBytes/2 {
		t.Errorf("the message has %d bytes", len(o.message))
	}
	if !strings.HasPrefix(lines[1], "error job-not-below-retry-after: ") || !strings.HasPrefix(lines[len(lines)-1], "and ") {
		t.Errorf("the message is\n%s", o.message)
	}
	if n := strings.Count(o.stderr, "\n"); n != 121 {
		t.Errorf("standard error has %d lines, wanted all 121", n)
	}
}
