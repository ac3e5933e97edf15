// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// silent is a server that accepts and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String()
}

// short is a chain whose watchdog bites at 8 s, J + C + 5, and whose reservation
// ends so long after that a loaded machine does not change the order.
func short(w *timeoutchain.Wire) {
	w.JobSeconds, w.RetryAfterSeconds, w.CallSeconds, w.WatchdogSeconds = 2, 16, 1, 8
}

// PHP's own limit waits for the call to return. The watchdog does not, and the
// job is dead before the queue hands it out again.
func TestStuckJobIsEndedBeforeItsRedelivery(t *testing.T) {
	for name, c := range map[string]struct {
		queue, class string
		drain        bool
	}{
		"curl":                {onRedis, "Curls", false},
		"socket":              {onSQLite, "ReadsSocket", false},
		"socket, in a drain":  {onRedis, "ReadsSocket", true},
		"mariadb, in a drain": {onMariaDB, "Curls", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, c.queue, "DB_QUEUE_RETRY_AFTER=16", "REDIS_QUEUE_RETRY_AFTER=16")
			address := silent(t)
			a.dispatch(t, c.class, facts("stuck", "url", "http://"+address, "address", "tcp://"+address, "timeout", 2, "tries", 5))
			w := a.start(t, plan{wire: short})
			a.await(t, "start", "stuck")
			uuid := w.awaitPhase(t, workerstate.Job).Job.UUID
			other := exec.Command("php8.2", "artisan", "queue:work", "--sleep=0.1", "--max-jobs=1", "--timeout=1")
			other.Dir, other.Env = a.dir, a.env
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
			if c.drain {
				w.signal(t, syscall.SIGTERM)
			}
			message := w.wantOutcome(t, termination.Overran, 70)
			if message.Job == nil || message.Job.UUID != uuid || message.Job.Class != `App\Jobs\`+c.class {
				t.Errorf("message %+v, wanted job %s", message, uuid)
			}
			if message.Job != nil && message.Job.AgeSeconds < 8 {
				t.Errorf("killed at age %.3f s, allowed are 8 s", message.Job.AgeSeconds)
			}
			first := a.notes(t)[0].time()
			eventually(t, patience, "the redelivery", func() bool { return a.count(t, "start", "stuck") == 2 })
			second := a.notes(t)[1].time()
			t.Logf("killed at %s, handed out again at %s", w.endedAt.Sub(first), second.Sub(first))
			if second.Before(w.endedAt) {
				t.Errorf("the second run began %s before the first was dead", w.endedAt.Sub(second))
			}
		})
	}
}

// A worker that ignores the stop signal but obeys the gate holds no job.
func TestDeafIdleWorkerIsKilled(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "IgnoresSignals", facts("deaf"))
	w := a.start(t, plan{})
	a.await(t, "end", "deaf")
	message, took := w.drain(t)
	if message.Outcome != termination.Drained || took < 4*time.Second || took > 20*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
	a.nothingLeft(t)
}

// What a dead worker left behind must not run beside the job's next delivery.
func TestLeftoversAreKilled(t *testing.T) {
	for name, c := range map[string]struct {
		die   int
		first bool
		want  termination.Outcome
	}{
		"killed, process 1":  {9, true, termination.Killed},
		"killed, subreaper":  {9, false, termination.Killed},
		"drained, process 1": {0, true, termination.Drained},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onSQLite)
			file := a.dir + "/child"
			// The child runs for a time that no other process has.
			seconds := strings.TrimPrefix(a.dir, suite.dir+"/a") + "77"
			a.dispatch(t, "Forks", facts("f", "seconds", seconds, "pidFile", file, "thenDie", c.die))
			w := a.start(t, plan{first: c.first})
			awaitFile(t, file)
			if c.die == 0 {
				a.await(t, "end", "f")
				eventually(t, patience, "a child of the job", func() bool { return running(t, "sleep "+seconds) })
				w.signal(t, syscall.SIGTERM)
			}
			w.wait(t, patience)
			if running(t, "sleep "+seconds) {
				t.Error("the child of the job outlived the container's worker")
			}
			if message := w.left(t); message.Outcome != c.want {
				t.Errorf("message %+v", message)
			}
		})
	}
}

// A recycle, too, leaves nothing behind, and orphans that end by themselves are
// collected.
func TestOrphansAreCollected(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	file := a.dir + "/child"
	a.dispatch(t, "Forks", facts("f", "seconds", 1, "pidFile", file))
	w := a.start(t, plan{first: true, work: []string{"--max-jobs=2"}})
	a.await(t, "end", "f")
	time.Sleep(1500 * time.Millisecond)
	a.dispatch(t, "Forks", facts("g", "seconds", 54321, "pidFile", file))
	a.await(t, "end", "g")
	eventually(t, patience, "second worker", func() bool { return strings.Contains(w.output.text(), "started again") })
	w.awaitPhase(t, workerstate.Loop)
	if running(t, "sleep 54321") {
		t.Error("a child of the recycled worker lives on")
	}
	eventually(t, patience, "no zombies", func() bool { return zombiesUnder(w.pid) == 0 })
	w.signal(t, syscall.SIGTERM)
	w.wantOutcome(t, termination.Drained, 0)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Long", facts("l", "seconds", 5))
	w := a.start(t, plan{})
	w.awaitPhase(t, workerstate.Job)
	if out, exit, took := w.client("probe", "--timeout=30s"); exit != 0 || took > 20*time.Second {
		t.Errorf("in a job: %d after %s: %s", exit, took, out)
	}
	a.await(t, "end", "l")
	if out, exit, _ := w.client("probe", "--timeout=30s"); exit != 0 {
		t.Errorf("idle: %d: %s", exit, out)
	}
	w.signal(t, syscall.SIGSTOP)
	if out, exit, took := w.client("probe", "--timeout=1s"); exit == 0 || took > 20*time.Second {
		t.Errorf("a frozen supervisor: %d after %s: %s", exit, took, out)
	}
	w.signal(t, syscall.SIGCONT)
	if out, exit, _ := w.client("probe", "--timeout=30s"); exit != 0 {
		t.Errorf("thawed: %d: %s", exit, out)
	}
	w.drain(t)
	w.stop(t)
	if out, exit, _ := w.client("probe"); exit == 0 {
		t.Errorf("without a supervisor: %d: %s", exit, out)
	}
}

// A provider that counts effects: one job, one effect, however it is drained.
func TestChargeHappensOnce(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	effects := make(chan string, 100)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for end := time.Now().Add(patience); !exists(workdir.Dir(filepath.Join(a.dir, "qw")).Gate()) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond) // the charge is under way until the drain is
		}
		effects <- r.Header.Get("Idempotency-Key")
	}))
	defer provider.Close()
	for _, order := range []string{"o1", "o2", "o3"} {
		a.dispatch(t, "Charges", facts(order, "order", order, "url", provider.URL))
	}
	for i := range 3 {
		w := a.start(t, plan{})
		eventually(t, patience, "a charge under way", func() bool { return a.count(t, "start", "") == i+1 })
		w.signal(t, syscall.SIGTERM)
		w.wantOutcome(t, termination.Drained, 0)
	}
	close(effects)
	seen := map[string]int{}
	for order := range effects {
		seen[order]++
	}
	if len(seen) != 3 || seen["o1"] != 1 || seen["o2"] != 1 || seen["o3"] != 1 {
		t.Errorf("effects at the provider: %v", seen)
	}
	a.nothingLeft(t)
}
