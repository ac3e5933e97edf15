// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/kubeapi"
	"github.com/queueworker/operator/internal/agent/watch"
	"github.com/queueworker/operator/internal/monitor"
)

// cluster is the one object that a watcher knows, without a cluster.
type cluster struct {
	sync.Mutex
	object kubeapi.Object
	writes []monitor.Status
}

func (c *cluster) Get(context.Context) (kubeapi.Object, error) {
	c.Lock()
	defer c.Unlock()
	return c.object, nil
}

func (c *cluster) Apply(_ context.Context, status monitor.Status, condition monitor.Condition) error {
	c.Lock()
	defer c.Unlock()
	c.writes = append(c.writes, status)
	c.object.Status.QueueState, c.object.Status.Conditions = &status, []monitor.Condition{condition}
	return nil
}

// watched is an application with a watcher of its queues.
type watched struct {
	*app
	*watch.Watcher
	cluster *cluster
	log     lockedBuffer
}

func (a *app) watch(t *testing.T, queues ...string) *watched {
	t.Helper()
	config := monitor.Config{
		Version: 1, Namespace: "shop", Name: "payments", Runtime: "Laravel", Connection: a.connection, Queues: queues,
		IntervalSeconds: 1, StuckAfterSeconds: 3, RetryAfterSeconds: 90, MetricsAddress: ":1",
	}
	script, err := watch.For(config, []string{"php8.2", "artisan", "queue:work", a.connection})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{app: a, cluster: &cluster{}}
	script.Scripts, script.Dir, script.Env, script.Output = filepath.Join(a.dir, "monitor"), a.dir, a.env, &w.log
	if err := watch.Install(script.Scripts); err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	w.cluster.object.Spec.Replicas, w.cluster.object.Status.ReadyReplicas = &one, 1
	w.Watcher = &watch.Watcher{Config: config, Script: script, API: w.cluster, Log: &w.log}
	t.Cleanup(script.Close)
	return w
}

// look is one look, and the status that it leaves.
func (w *watched) look(t *testing.T) monitor.Status {
	t.Helper()
	w.Once(context.Background())
	w.cluster.Lock()
	defer w.cluster.Unlock()
	if w.cluster.object.Status.QueueState == nil {
		t.Fatalf("no status was written: %s", w.log.text())
	}
	return *w.cluster.object.Status.QueueState
}

// metrics are the samples by their full names.
func (w *watched) metrics(t *testing.T) map[string]string {
	t.Helper()
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return samples(t, recorder.Body)
}

func samples(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			found[line[:at]] = line[at+1:]
		}
	}
	return found
}

// want compares the numbers of one queue.
func (w *watched) want(t *testing.T, queue string, numbers map[string]int) {
	t.Helper()
	w.look(t)
	found := w.metrics(t)
	for status, n := range numbers {
		name := fmt.Sprintf(`queueworker_queue_jobs{queueworker="payments",queue="%s",status="%s"}`, queue, status)
		if status == "depth" {
			name = fmt.Sprintf(`queueworker_queue_depth{queueworker="payments",queue="%s"}`, queue)
		}
		if found[name] != fmt.Sprint(n) {
			t.Errorf("%s is %q, wanted %d", name, found[name], n)
		}
	}
	if t.Failed() {
		t.Logf("%v\n%s", found, w.log.text())
	}
}

// move puts the first ready job of Redis into another of its sets.
func (a *app) move(t *testing.T, set string, in time.Duration) {
	t.Helper()
	const script = "local job = redis.call('lpop', KEYS[1]) redis.call('zadd', KEYS[2], ARGV[1], job) return 1"
	key := a.prefix + "queues:default"
	a.redis(t, "EVAL", script, "2", key, key+":"+set, fmt.Sprint(time.Now().Add(in).Unix()))
}

// The numbers against the truth, at rest.
func TestMonitorCountsRedis(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	w := a.watch(t)
	w.want(t, "default", map[string]int{"ready": 0, "delayed": 0, "due": 0, "reserved": 0, "expired": 0, "depth": 0})
	a.dispatch(t, "Short", facts("n"), "--times=15")
	for _, to := range []struct {
		set   string
		in    time.Duration
		times int
	}{{"delayed", time.Hour, 2}, {"delayed", -time.Minute, 3}, {"reserved", time.Hour, 4}, {"reserved", -time.Minute, 1}} {
		for range to.times {
			a.move(t, to.set, to.in)
		}
	}
	w.want(t, "default", map[string]int{"ready": 5, "delayed": 2, "due": 3, "reserved": 4, "expired": 1, "depth": 13})
	// A key of a wrong kind loses its own number, and no other.
	a.redis(t, "SET", a.prefix+"queues:low:delayed", "x")
	a.redis(t, "RPUSH", a.prefix+"queues:low", "not JSON")
	low := a.watch(t, "low", "default")
	low.want(t, "low", map[string]int{"ready": 1, "reserved": 0, "expired": 0, "depth": 1})
	low.want(t, "default", map[string]int{"ready": 5})
	for name := range low.metrics(t) {
		if strings.Contains(name, `"low",status="d`) {
			t.Errorf("%s cannot be known", name)
		}
	}
	if s := low.look(t); s.Delayed != nil || *s.Ready != 6 {
		t.Errorf("%+v", s)
	}
}

func TestMonitorCountsDatabase(t *testing.T) {
	for _, queue := range []string{onMariaDB, onPostgreSQL} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			countsDatabase(t, newApp(t, queue))
		})
	}
}

func countsDatabase(t *testing.T, a *app) {
	t.Helper()
	w := a.watch(t)
	w.want(t, "default", map[string]int{"ready": 0, "delayed": 0, "reserved": 0, "expired": 0, "depth": 0})
	a.dispatch(t, "Short", facts("n"), "--times=15")
	a.dispatch(t, "Short", facts("n"), "--times=3", "--queue=other")
	now := time.Now().Unix()
	for _, change := range []string{
		fmt.Sprintf("available_at = %d WHERE id <= 2", now+3600),
		fmt.Sprintf("reserved_at = %d, attempts = 1 WHERE id BETWEEN 3 AND 6", now-30),
		fmt.Sprintf("reserved_at = %d, attempts = 1 WHERE id = 7", now-120),
		fmt.Sprintf("available_at = %d WHERE id = 12", now-500),
	} {
		a.change(t, "UPDATE jobs SET "+change)
	}
	w.want(t, "default", map[string]int{"ready": 8, "delayed": 2, "reserved": 4, "expired": 1, "depth": 13})
	if s := w.look(t); s.OldestSeconds == nil || *s.OldestSeconds < 500 || *s.OldestSeconds > 560 {
		t.Errorf("the oldest has waited for %v s, wanted 500", s.OldestSeconds)
	}
	for name := range w.metrics(t) {
		if strings.Contains(name, `status="due"`) {
			t.Errorf("%s: this driver has no such jobs", name)
		}
	}
}

// Under load every look must lie between what was done before it and after it.
func TestMonitorUnderLoad(t *testing.T) {
	for _, queue := range []string{onRedis, onMariaDB} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			const jobs = 400
			a.dispatch(t, "Short", facts("n"), fmt.Sprintf("--times=%d", jobs))
			w := a.watch(t)
			w.look(t)
			worker := a.start(t, plan{work: []string{"--sleep=0"}})
			looks := 0
			for a.count(t, "end", "") < jobs {
				most := jobs - a.count(t, "end", "")
				w.look(t)
				// One may have ended whose row is about to go.
				least := jobs - a.count(t, "start", "") - 1
				found := w.metrics(t)[`queueworker_queue_depth{queueworker="payments",queue="default"}`]
				var depth int
				if _, err := fmt.Sscan(found, &depth); err != nil || depth < least || depth > most+1 {
					t.Fatalf("depth %q, the truth is between %d and %d", found, least, most+1)
				}
				looks++
				time.Sleep(20 * time.Millisecond)
			}
			eventually(t, patience, "an empty queue", func() bool { s := w.look(t); return s.State == monitor.Empty && *s.Depth == 0 })
			t.Logf("%d looks under load", looks)
			if looks < 3 {
				t.Errorf("only %d looks: the load was over too soon", looks)
			}
			worker.drain(t)
			worker.stop(t)
		})
	}
}

// gate is a port that leads to a server, to nobody, or into silence.
type gate struct {
	port, to string
	frozen   sync.RWMutex // while it is locked, nothing passes on open connections
	mu       sync.Mutex
	listener net.Listener
	silent   bool
	conns    []net.Conn
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	g := &gate{port: must[string](t)(takePort()), to: to}
	g.open(t)
	t.Cleanup(g.shut)
	return g
}

func (g *gate) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:"+g.port)
	if err != nil {
		t.Fatal(err)
	}
	g.listener = listener
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns = append(g.conns, in)
			silent := g.silent
			g.mu.Unlock()
			if silent {
				continue
			}
			out, err := net.Dial("tcp", "127.0.0.1:"+g.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, out)
			g.mu.Unlock()
			go g.pass(out, in)
			go g.pass(in, out)
		}
	}()
}

func (g *gate) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		g.frozen.RLock()
		_, failed := to.Write(buffer[:n])
		g.frozen.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

func (g *gate) shut() {
	_ = g.listener.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.conns = nil
}

// A server that is away is Unknown since then, with no number at all; back, it
// has its numbers again, from the same script.
func TestMonitorServerAway(t *testing.T) {
	for queue, port := range map[string]func() (string, error){onRedis: redisPort, onMariaDB: mariaPort, onPostgreSQL: postgresPort} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			a.dispatch(t, "Short", facts("n"), "--times=3")
			g := newGate(t, must[string](t)(port()))
			a.env = append(a.env, "REDIS_PORT="+g.port)
			if queue != onRedis {
				a.env = append(a.env, "DB_PORT="+g.port)
			}
			w := a.watch(t)
			w.Script.Env = dedupe(a.env)
			before := w.look(t)
			if before.State != monitor.Busy || *before.Depth != 3 {
				t.Fatalf("%+v\n%s", before, w.log.text())
			}
			for _, silent := range []bool{false, true} {
				g.mu.Lock()
				g.silent = silent
				g.mu.Unlock()
				g.shut()
				if silent {
					g.open(t)
				}
				began := time.Now().Truncate(time.Second)
				away := w.look(t)
				again := w.look(t)
				if away.State != monitor.Unknown || away.Since.Before(began) || !again.Since.Equal(away.Since) || again.Depth != nil || again.Ready != nil || again.OldestSeconds != nil {
					t.Fatalf("silent %t: %+v", silent, again)
				}
				if !strings.Contains(away.Message, "default") || !strings.Contains(away.Message, "Exception (") {
					t.Errorf("silent %t: the reason is %q", silent, away.Message)
				}
				for name, value := range w.metrics(t) {
					if strings.HasPrefix(name, "queueworker_queue_") && !strings.HasPrefix(name, "queueworker_queue_state") || strings.HasPrefix(name, "queueworker_monitor_up") && value != "0" {
						t.Errorf("silent %t: %s %s", silent, name, value)
					}
				}
				t.Logf("silent %t: %s", silent, away.Message)
				g.mu.Lock()
				g.silent = false
				g.mu.Unlock()
				g.shut()
				g.open(t)
				if back := w.look(t); back.State != monitor.Busy || *back.Depth != 3 {
					t.Fatalf("silent %t: back, and %+v\n%s", silent, back, w.log.text())
				}
			}
			t.Logf("%s", w.log.text())
			if len(w.Script.Restarts) > 0 {
				t.Errorf("the script was started again: %v", w.Script.Restarts)
			}
		})
	}
}

// A server that hangs with a connection open is told within the time that the
// manual gives, whatever its client does.
func TestMonitorServerHangs(t *testing.T) {
	for queue, port := range map[string]func() (string, error){onRedis: redisPort, onMariaDB: mariaPort, onPostgreSQL: postgresPort, onBeanstalkd: beanstalkdPort} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue)
			g := newGate(t, must[string](t)(port()))
			a.env = dedupe(append(a.env, "REDIS_PORT="+g.port, "DB_PORT="+g.port, "BEANSTALKD_PORT="+g.port))
			w := a.watch(t)
			if s := w.look(t); s.State != monitor.Empty {
				t.Fatalf("%+v\n%s", s, w.log.text())
			}
			g.frozen.Lock()
			began := time.Now()
			s := w.look(t)
			took := time.Since(began)
			g.frozen.Unlock()
			if s.State != monitor.Unknown || s.Depth != nil || took > 30*time.Second {
				t.Errorf("after %s: %+v\n%s", took, s, w.log.text())
			}
			t.Logf("%s: %s", took, s.Message)
			if s := w.look(t); s.State != monitor.Empty {
				t.Errorf("back, and %+v\n%s", s, w.log.text())
			}
		})
	}
}

// A server that hangs from the last moment on at which it is asked still leaves
// the time to say so, and what hung before costs no answer.
func TestMonitorServerHangsLate(t *testing.T) {
	for what, c := range map[string]struct {
		hangs bool // the queue's server, after what hung before was given up
		want  monitor.State
		says  string
	}{
		"one after the other": {true, monitor.Unknown, "Exception"},
		"one and no other":    {false, monitor.Empty, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onMariaDB)
			g := newGate(t, must[string](t)(mariaPort()))
			a.env = dedupe(append(a.env, "DB_PORT="+g.port))
			file, slow := filepath.Join(a.dir, "bootstrap", "app.php"), filepath.Join(a.dir, "slow")
			text := strings.Replace(string(must[[]byte](t)(os.ReadFile(file))), "new Illuminate\\Foundation\\Application(dirname(__DIR__))",
				"new class(dirname(__DIR__)) extends Illuminate\\Foundation\\Application { public function isDownForMaintenance() {"+
					" usleep(1e6 * (float) @file_get_contents('"+slow+"')); return false; } }", 1)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			w := a.watch(t)
			if s := w.look(t); s.State != monitor.Empty {
				t.Fatalf("%+v\n%s", s, w.log.text())
			}
			if err := os.WriteFile(slow, []byte("5.3"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.hangs {
				g.frozen.Lock()
				defer g.frozen.Unlock()
			}
			began := time.Now()
			s := w.look(t)
			if took := time.Since(began); s.State != c.want || !strings.Contains(s.Message, c.says) || took < 5*time.Second || len(w.Script.Restarts) > 0 || (s.Failed == nil) != c.hangs {
				t.Errorf("after %s, with %v: %+v\n%s", took, w.Script.Restarts, s, w.log.text())
			}
			t.Logf("%s", s.Message)
		})
	}
}

// dedupe keeps the last value of each variable.
func dedupe(env []string) []string {
	last := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		last[name] = value
	}
	var list []string
	for name, value := range last {
		list = append(list, name+"="+value)
	}
	return list
}

// leaks is a job whose name, payload and exception hold what must not be told.
const leaks = `<?php

namespace App\Jobs;

class Leaks extends Job
{
    public $secret = '';

    public $shown = '';

    public function displayName()
    {
        return $this->shown ?: static::class;
    }

    protected function run(): void
    {
        throw new \DomainException("card {$this->secret} was refused");
    }
}
`

// Failed jobs are counted by class and by exception; what is in them stays there.
func TestMonitorFailures(t *testing.T) {
	const secret = "4111-1111-PLANTED"
	for _, queue := range []string{onRedis, onMariaDB, onPostgreSQL} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, queue, "APP_KEY_SECRET="+secret)
			if err := os.WriteFile(filepath.Join(a.dir, "app/Jobs/Leaks.php"), []byte(leaks), 0o644); err != nil {
				t.Fatal(err)
			}
			work := func() { a.artisan(t, "queue:work", "--stop-when-empty", "--tries=1", "--sleep=0") }
			a.dispatch(t, "Fails", facts(secret), "--times=2")
			work()
			w := a.watch(t)
			s := w.look(t)
			if s.Failed == nil || *s.Failed != 2 || s.Failing[0].Error != "RuntimeException" || s.Failing[0].Class != `App\Jobs\Fails` {
				t.Errorf("of the last hour: %+v", s)
			}
			a.dispatch(t, "Leaks", facts(secret, "secret", secret), "--times=5")
			a.dispatch(t, "Leaks", facts(secret, "secret", secret, "shown", "Charge of "+secret))
			a.dispatch(t, "Fails", facts(secret))
			a.dispatch(t, "Fails", facts(secret), "--queue=elsewhere")
			a.artisan(t, "queue:work", "--stop-when-empty", "--tries=1", "--sleep=0", "--queue=elsewhere,default")
			// A later script goes on where the first one ended.
			w.Script.Close()
			s = w.look(t)
			if s.Failed == nil || *s.Failed != 9 || s.Failing[0].Class != `App\Jobs\Leaks` || s.Failing[0].Count != 6 {
				t.Errorf("%+v", s)
			}
			found := w.metrics(t)
			for name, want := range map[string]string{
				`queueworker_failed_jobs_total{queueworker="payments",class="App\\Jobs\\Leaks",error="DomainException"}`:  "6",
				`queueworker_failed_jobs_total{queueworker="payments",class="App\\Jobs\\Fails",error="RuntimeException"}`: "1",
				`queueworker_failed_jobs_stored{queueworker="payments"}`:                                                  "9",
			} {
				if found[name] != want {
					t.Errorf("%s is %q, wanted %s", name, found[name], want)
				}
			}
			// What waits and what runs is not told either.
			a.dispatch(t, "Leaks", facts(secret, "secret", secret, "shown", "Refund of "+secret))
			text, err := json.Marshal(w.look(t))
			if err != nil {
				t.Fatal(err)
			}
			if all := fmt.Sprint(string(text), w.metrics(t), w.log.text()); strings.Contains(all, "PLANTED") || strings.Contains(all, "4111") {
				t.Errorf("it tells: %s", all)
			}
		})
	}
}

// Failed jobs that are retried or forgotten leave the store; those that stay are not new for it.
func TestMonitorCountsNoFailureAgain(t *testing.T) {
	t.Parallel()
	a := newApp(t, onMariaDB)
	w := a.watch(t)
	w.look(t)
	const failures = 500 // more than the script keeps in mind
	a.dispatch(t, "Fails", facts("f"), fmt.Sprint("--times=", failures))
	a.artisan(t, "queue:work", "--stop-when-empty", "--tries=1", "--sleep=0")
	counted := func() string {
		w.look(t)
		return w.metrics(t)[`queueworker_failed_jobs_total{queueworker="payments",class="App\\Jobs\\Fails",error="RuntimeException"}`]
	}
	for _, newest := range []int{failures, failures, 499, 499, 350, 350} {
		a.change(t, fmt.Sprint("DELETE FROM failed_jobs WHERE id > ", newest))
		if got := counted(); got != fmt.Sprint(failures) {
			t.Errorf("with %d left: %s", newest, got)
		}
	}
	a.dispatch(t, "Fails", facts("f"))
	a.artisan(t, "queue:work", "--stop-when-empty", "--tries=1", "--sleep=0")
	if got := counted(); got != fmt.Sprint(failures+1) {
		t.Errorf("one more: %s", got)
	}
}

// Maintenance mode is a pause, unless the workers do not care.
func TestMonitorMaintenance(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	w := a.watch(t)
	a.dispatch(t, "Short", facts("n"))
	a.maintenance(t)
	if s := w.look(t); s.State != monitor.Paused || *s.Depth != 1 || !strings.Contains(s.Message, "maintenance") {
		t.Errorf("%+v", s)
	}
	forced := a.watch(t)
	forced.Script.Options = append(forced.Script.Options, "--force")
	if s := forced.look(t); s.State != monitor.Busy {
		t.Errorf("%+v", s)
	}
}
