// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/inspect"
	judge "github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// app is a copy of the application, what its worker is started with, and what
// its QueueWorker declares.
type app struct {
	t   *testing.T
	dir string
	env []string

	php      []string // the words before artisan
	artisan  string
	options  []string // the words after queue:work
	wire     timeoutchain.Wire
	declared judge.Declared
	memory   int64 // the container's limit in bytes
	limit    time.Duration
}

var apps atomic.Int32

// makeTemplate makes the application once, so that each test copies files only.
func makeTemplate() error {
	suite.scripts, suite.template = filepath.Join(suite.dir, "scripts"), filepath.Join(suite.dir, "template")
	if err := inspect.Install(suite.scripts); err != nil {
		return err
	}
	for _, layer := range []string{"../e2e/app", "testdata/app"} {
		if out, err := exec.Command("cp", "-r", layer+"/.", suite.template).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w\n%s", layer, err, out)
		}
	}
	database := filepath.Join(suite.template, "shop.sqlite")
	if err := os.WriteFile(database, nil, 0o666); err != nil {
		return err
	}
	cmd := exec.Command("php8.2", "artisan", "app:schema")
	cmd.Dir, cmd.Env = suite.template, append(baseEnv(), "DB_DATABASE="+database, "CACHE_DRIVER=array")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("app:schema: %w\n%s", err, out)
	}
	return nil
}

func baseEnv() []string {
	env := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LC_ALL=C.UTF-8"}
	if autoload := os.Getenv("LARAVEL_AUTOLOAD"); autoload != "" {
		env = append(env, "LARAVEL_AUTOLOAD="+autoload)
	}
	return env
}

// newApp is an application in which nothing is wrong, declared as it is.
func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{
		t: t, dir: filepath.Join(suite.dir, fmt.Sprintf("a%d", apps.Add(1))),
		php: []string{"php8.2"}, artisan: "artisan", limit: time.Minute,
		wire: timeoutchain.Wire{
			Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, Driver: timeoutchain.Redis,
			CallSeconds: 20, JobSeconds: 30, RetryAfterSeconds: 90, GraceSeconds: 100, WatchdogSeconds: 55,
		},
		declared: judge.Declared{
			Version: judge.DeclaredVersion, Connection: "redis", Supervision: judge.Full,
			Tries: count(3), Backoff: []int64{10, 60}, MemoryMegabytes: count(128), Fence: timeoutchain.FenceNone,
		},
	}
	if err := os.CopyFS(a.dir, os.DirFS(suite.template)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(a.dir) })
	a.env = append(baseEnv(), "REDIS_PORT="+redis(t, "noeviction"), "DB_DATABASE="+filepath.Join(a.dir, "shop.sqlite"), "REDIS_QUEUE_RETRY_AFTER=90", "DB_QUEUE_RETRY_AFTER=90")
	return a
}

func count(n int64) *int64 { return &n }

// onDatabase declares and uses the queue on the database.
func (a *app) onDatabase() {
	a.declared.Connection, a.wire.Driver = "database", timeoutchain.Database
}

// set gives a variable another value.
func (a *app) set(name, value string) {
	a.env = slices.DeleteFunc(a.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	a.env = append(a.env, name+"="+value)
}

// write replaces a file of the application.
func (a *app) write(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		a.t.Fatal(err)
	}
}

// edit replaces a text that must be there.
func (a *app) edit(name, old, text string) {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), old) {
		a.t.Fatalf("%s holds no %q (%v)", name, old, err)
	}
	a.write(name, strings.ReplaceAll(string(content), old, text))
}

// class adds a class of the application with this body; the head is what
// follows its name.
func (a *app) class(name, head, body string) {
	folder, class := filepath.Split(strings.ReplaceAll(name, `\`, "/"))
	space := "App"
	if folder != "" {
		space += `\` + strings.ReplaceAll(strings.TrimSuffix(folder, "/"), "/", `\`)
	}
	a.write("app/"+folder+class+".php", fmt.Sprintf("<?php\n\nnamespace %s;\n\nuse Illuminate\\Contracts\\Queue\\ShouldQueue;\nuse Illuminate\\Contracts\\Queue\\ShouldBeUnique;\n\nclass %s %s\n{\n%s\n}\n", space, class, head, body))
}

// job adds a job with these members.
func (a *app) job(name, body string) { a.class("Jobs\\"+name, "implements ShouldQueue", body) }

// command runs one of the application's own.
func (a *app) command(words ...string) {
	a.t.Helper()
	cmd := exec.Command("php8.2", append([]string{"artisan"}, words...)...)
	cmd.Dir, cmd.Env = a.dir, a.env
	if out, err := cmd.CombinedOutput(); err != nil {
		a.t.Fatalf("artisan %v: %v\n%s", words, err, out)
	}
}

// sql runs statements through PDO.
func (a *app) sql(dsn string, statements ...string) {
	a.t.Helper()
	code := fmt.Sprintf("$p = new PDO(%q, 'fence', ''); $p->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);", dsn)
	for _, s := range statements {
		code += fmt.Sprintf("$p->exec(%q);", s)
	}
	if out, err := exec.Command("php8.2", "-r", code).CombinedOutput(); err != nil {
		a.t.Fatalf("%v: %v\n%s", statements, err, out)
	}
}

// words is the worker's command.
func (a *app) words() []string {
	name := "queue:work"
	if a.wire.Runtime == timeoutchain.Horizon {
		name = "horizon"
	}
	return append(append(slices.Clone(a.php), a.artisan, name), a.options...)
}

func (a *app) facts() judge.Facts {
	a.t.Helper()
	plan, err := inspect.For(a.wire.Runtime, a.declared, a.words())
	if err != nil {
		a.t.Fatal(err)
	}
	plan.Scripts, plan.Dir, plan.Env, plan.Limit = suite.scripts, a.dir, a.env, a.limit
	return inspect.Inspect(plan)
}

func (a *app) judge() judge.Verdict {
	a.t.Helper()
	return judge.Judge(a.wire, a.declared, a.memory, a.facts())
}
