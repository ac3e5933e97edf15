// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The queues that tests run on.
const (
	onSQLite     = "sqlite"
	onMariaDB    = "mariadb"
	onPostgreSQL = "postgresql"
	onRedis      = "redis"
	onBeanstalkd = "beanstalkd"
)

// app is one copy of the application with a queue of its own.
type app struct {
	dir        string
	env        []string
	connection string
	database   string // of SQLite
	prefix     string // of Redis
	journal    string
}

var apps atomic.Int32

// makeTemplate makes the application once, so that each test copies files only.
func makeTemplate() error {
	suite.template = filepath.Join(suite.dir, "template")
	if err := os.CopyFS(suite.template, os.DirFS("../e2e/app")); err != nil {
		return err
	}
	database := filepath.Join(suite.template, "shop.sqlite")
	if err := os.WriteFile(database, nil, 0o666); err != nil {
		return err
	}
	cmd := exec.Command("php8.2", "artisan", "app:schema")
	cmd.Dir, cmd.Env = suite.template, append(baseEnv(), "DB_DATABASE="+database)
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

func newApp(t *testing.T, queue string, env ...string) *app {
	t.Helper()
	name := fmt.Sprintf("a%d", apps.Add(1))
	a := &app{dir: filepath.Join(suite.dir, name), connection: "database"}
	if err := os.CopyFS(a.dir, os.DirFS(suite.template)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(a.dir) })
	a.database = filepath.Join(a.dir, "shop.sqlite")
	a.journal = filepath.Join(a.dir, "journal")
	a.env = append(baseEnv(), "JOURNAL_FILE="+a.journal, "CACHE_DRIVER=file")
	switch queue {
	case onSQLite:
		a.env = append(a.env, "QUEUE_CONNECTION=database", "DB_DATABASE="+a.database)
	case onMariaDB:
		a.env = append(a.env, "QUEUE_CONNECTION=database", "DB_CONNECTION=mysql", "DB_USERNAME=shop", "DB_DATABASE="+name,
			"DB_PORT="+must[string](t)(mariaPort()))
		a.sql(t, "CREATE DATABASE "+name)
		a.env = append(a.env, env...)
		a.artisan(t, "app:schema")
		return a
	case onPostgreSQL:
		a.postgres(t, "postgres", "CREATE DATABASE "+name)
		a.env = append(a.env, "QUEUE_CONNECTION=database", "DB_CONNECTION=pgsql", "DB_USERNAME=fence", "DB_DATABASE="+name,
			"DB_PORT="+must[string](t)(postgresPort()))
		a.env = append(a.env, env...)
		a.artisan(t, "app:schema")
		return a
	case onBeanstalkd:
		a.connection = "beanstalkd"
		a.env = append(a.env, "QUEUE_CONNECTION=beanstalkd", "DB_DATABASE="+a.database, "BEANSTALKD_QUEUE="+name,
			"BEANSTALKD_PORT="+must[string](t)(beanstalkdPort()))
	case onRedis:
		a.connection, a.prefix = "redis", name+"_"
		a.env = append(a.env, "QUEUE_CONNECTION=redis", "DB_DATABASE="+a.database, "REDIS_PREFIX="+a.prefix,
			"REDIS_PORT="+must[string](t)(redisPort()))
	}
	a.env = append(a.env, env...)
	return a
}

// artisan runs one command of the application and returns what it prints.
func (a *app) artisan(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.Command("php8.2", append([]string{"artisan"}, words...)...)
	cmd.Dir, cmd.Env = a.dir, a.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("artisan %v: %v\n%s", words, err, out)
	}
	return string(out)
}

// sql runs one statement on MariaDB, through PHP.
func (a *app) sql(t *testing.T, statement string) {
	t.Helper()
	code := fmt.Sprintf(`(new PDO("mysql:host=127.0.0.1;port=%s", "shop", ""))->exec(%q);`, must[string](t)(mariaPort()), statement)
	if out, err := exec.Command("php8.2", "-r", code).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", statement, err, out)
	}
}

// postgres runs one statement on PostgreSQL.
func (a *app) postgres(t *testing.T, database, statement string) {
	t.Helper()
	out, err := exec.Command("psql", "-X", "-h", "127.0.0.1", "-p", must[string](t)(postgresPort()), "-U", "fence", "-d", database, "-c", statement).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", statement, err, out)
	}
}

// change runs one statement in the application's own database.
func (a *app) change(t *testing.T, statement string) {
	t.Helper()
	name := filepath.Base(a.dir)
	if slices.Contains(a.env, "DB_CONNECTION=pgsql") {
		a.postgres(t, name, statement)
		return
	}
	a.sql(t, "USE "+name+"; "+statement)
}

// dispatch queues one job.
func (a *app) dispatch(t *testing.T, class string, facts map[string]any, words ...string) {
	t.Helper()
	text, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	a.artisan(t, append([]string{"app:dispatch", class, string(text)}, words...)...)
}

// maintenance does what artisan down does, at once.
func (a *app) maintenance(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, "storage/framework/down"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// park queues a job where no worker looks, so that release is a matter of
// milliseconds.
func (a *app) park(t *testing.T, class string, facts map[string]any) {
	t.Helper()
	a.dispatch(t, class, facts, "--queue=parked")
}

func (a *app) release(t *testing.T) {
	t.Helper()
	a.redis(t, "LMOVE", a.prefix+"queues:parked", a.prefix+"queues:default", "LEFT", "RIGHT")
	a.redis(t, "RPUSH", a.prefix+"queues:default:notify", "1")
}

// reservedFor is how many seconds from now the reserved job is handed out again.
func (a *app) reservedFor(t *testing.T) int {
	t.Helper()
	fields := strings.Fields(a.redis(t, "ZRANGE", a.prefix+"queues:default:reserved", "-1", "-1", "WITHSCORES"))
	if len(fields) == 0 {
		return 0
	}
	at, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatalf("reserved until %q", fields)
	}
	return at - int(time.Now().Unix())
}

func (a *app) redis(t *testing.T, words ...string) string {
	t.Helper()
	port := must[string](t)(redisPort())
	out, err := exec.Command("redis-cli", append([]string{"-p", port}, words...)...).CombinedOutput()
	if err != nil || strings.HasPrefix(string(out), "ERR") {
		t.Fatalf("redis-cli %v: %v\n%s", words, err, out)
	}
	return string(out)
}

type counts struct{ Failed, Waiting, Reserved int }

func (a *app) counts(t *testing.T) counts {
	t.Helper()
	var c counts
	if out := a.artisan(t, "app:counts"); json.Unmarshal([]byte(out), &c) != nil {
		t.Fatalf("app:counts printed %q", out)
	}
	return c
}

// note is one line of the jobs' journal.
type note struct {
	Event, Class, Name string
	At                 float64
	PID, Attempt       int
}

func (n note) time() time.Time { return time.Unix(0, int64(n.At*1e9)) }

func (a *app) notes(t *testing.T) []note {
	t.Helper()
	text, err := os.ReadFile(a.journal)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var notes []note
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var n note
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &n); err != nil {
			t.Fatalf("journal line %q: %v", line, err)
		}
		notes = append(notes, n)
	}
	return notes
}

// count is how often a job said this of itself; an empty name is any job.
func (a *app) count(t *testing.T, event, name string) int {
	t.Helper()
	n := 0
	for _, note := range a.notes(t) {
		if note.Event == event && (name == "" || note.Name == name) {
			n++
		}
	}
	return n
}

func (a *app) await(t *testing.T, event, name string) {
	t.Helper()
	eventually(t, patience, event+" of job "+name, func() bool { return a.count(t, event, name) > 0 })
}

// ran returns how long the one run of a job took; any other number of runs
// fails the test.
func (a *app) ran(t *testing.T, name string) time.Duration {
	t.Helper()
	var start, end []note
	for _, n := range a.notes(t) {
		if n.Name != name {
			continue
		}
		if n.Event == "start" {
			start = append(start, n)
		} else {
			end = append(end, n)
		}
	}
	if len(start) != 1 || len(end) != 1 {
		t.Fatalf("job %s started %d times and ended %d times, wanted one run", name, len(start), len(end))
	}
	return end[0].time().Sub(start[0].time())
}

// wholeSeconds asserts that a job's wait of so many seconds was not cut short.
// PHP's sleep may wake up to a millisecond early.
func (a *app) wholeSeconds(t *testing.T, name string, seconds int) {
	t.Helper()
	if ran := a.ran(t, name); ran < time.Duration(seconds)*time.Second-5*time.Millisecond {
		t.Errorf("job %s was cut to %s of its %d s", name, ran, seconds)
	}
}

// nothingLeft asserts that the queue is empty and nothing failed.
func (a *app) nothingLeft(t *testing.T) {
	t.Helper()
	if c := a.counts(t); c.Failed != 0 || c.Waiting != 0 || c.Reserved != 0 {
		t.Errorf("the queue's tables say %+v, wanted all zero", c)
	}
}

func facts(name string, more ...any) map[string]any {
	m := map[string]any{"name": name}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}
