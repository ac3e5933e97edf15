// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// boots is how long artisan needs to start here, at worst, until so many jobs
// were started: measured beside them, since other people's load comes and goes.
func (a *app) boots(t *testing.T, jobs int) time.Duration {
	t.Helper()
	var longest time.Duration
	eventually(t, time.Duration(jobs)*30*time.Second, "all jobs started", func() bool {
		begin := time.Now()
		a.artisan(t, "env")
		longest = max(longest, time.Since(begin))
		return a.count(t, "start", "") == jobs
	})
	return longest
}

// Every way in which a worker stops itself is followed by a fresh one, within
// the same container and within a second beyond PHP's own start.
func TestRecyclesWithoutAGap(t *testing.T) {
	for name, c := range map[string]struct {
		class string
		facts []any
		work  []string
	}{
		"max-jobs": {"Short", nil, []string{"--max-jobs=1"}},
		"max-time": {"Long", []any{"seconds", 1.2}, []string{"--max-time=1"}},
		"memory":   {"EatsMemory", []any{"megabytes", 80}, []string{"--memory=64"}},
		"timeout":  {"Long", []any{"seconds", 30, "tries", 1, "timeout", 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onSQLite)
			jobs := times(4, 20)
			a.dispatch(t, c.class, facts("r", c.facts...), fmt.Sprintf("--times=%d", jobs))
			w := a.start(t, plan{work: append(c.work, "--sleep=0")})
			boot := a.boots(t, jobs)
			w.checkGaps(t, c.class == "Long" && name == "timeout", boot)
			w.drain(t)
			w.stop(t)
		})
	}
}

// checkGaps compares each start with the end of the job before, which for a job
// that its own limit killed is a second after its start. Other people's load may
// stretch some gaps; a delay of ours would be in all of them.
func (w *worker) checkGaps(t *testing.T, killed bool, boot time.Duration) {
	t.Helper()
	var last time.Time
	var gaps []time.Duration
	pids := map[int]bool{}
	for _, n := range w.app.notes(t) {
		if n.Event == "start" {
			if !last.IsZero() {
				gaps = append(gaps, n.time().Sub(last))
			}
			pids[n.PID] = true
		}
		last = n.time()
		if killed {
			last = last.Add(time.Second)
		}
	}
	slices.Sort(gaps)
	t.Logf("gaps %v, boot %s", gaps, boot)
	if gaps[0] > boot+time.Second {
		t.Errorf("no gap is shorter than %s, while a boot takes %s", gaps[0], boot)
	}
	if len(pids) < times(4, 20) {
		t.Errorf("%d processes ran the jobs, wanted one for each", len(pids))
	}
	select {
	case <-w.ended:
		t.Errorf("the container ended with %d", w.exit)
	default:
	}
}

// Horizon's horizon:terminate, by a stand-in: the master ends its workers and
// then, up to a second after the last of them, itself.
func TestMasterThatTerminatesIsStartedAgain(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	w := a.start(t, plan{
		command: []string{"php8.2", "artisan", "horizon", "--processes=1"},
		wire:    func(w *timeoutchain.Wire) { w.Runtime = timeoutchain.Horizon },
	})
	first := w.awaitPhase(t, workerstate.Loop)
	master, ok := proc.Read(first.PID)
	if !ok {
		t.Fatalf("worker %d is gone", first.PID)
	}
	if master, ok = proc.Read(master.Parent); !ok {
		t.Fatalf("the master of worker %d is gone", first.PID)
	}
	if err := proc.Signal(master, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "another worker", func() bool {
		states := w.states()
		return len(states) == 1 && states[0].PID != first.PID
	})
	a.dispatch(t, "Short", facts("after"))
	a.await(t, "end", "after")
	w.drain(t)
	w.stop(t)
}

func TestStopBetweenTwoRecycles(t *testing.T) {
	t.Parallel()
	for i := range times(4, 20) {
		a := newApp(t, onSQLite)
		a.dispatch(t, "Short", facts("r"), "--times=30")
		w := a.start(t, plan{work: []string{"--max-jobs=1"}})
		a.await(t, "end", "r-0")
		time.Sleep(time.Duration(i*37) * time.Millisecond)
		w.signal(t, syscall.SIGTERM)
		w.wantOutcome(t, termination.Drained, 0)
		if started, ended, c := a.count(t, "start", ""), a.count(t, "end", ""), a.counts(t); started != ended || c.Reserved != 0 || started+c.Waiting != 30 {
			t.Errorf("%d started, %d ended, tables %+v", started, ended, c)
		}
	}
}

// An end that the worker did not announce is a crash whatever its code: on this
// framework an error that cannot be logged ends with 0.
func TestCrashesAreNoRecycles(t *testing.T) {
	t.Run("exit 0 in a job", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite)
		a.dispatch(t, "Exits", facts("x", "code", 0))
		w := a.start(t, plan{})
		message := w.wantOutcome(t, termination.Crashed, 70)
		if message.ExitCode != 0 || message.Job == nil || message.Job.Class != `App\Jobs\Exits` {
			t.Errorf("message %+v", message)
		}
	})
	t.Run("unwritable log", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite, "LOG_CHANNEL=single")
		if err := os.Mkdir(a.dir+"/storage/logs/laravel.log", 0o755); err != nil {
			t.Fatal(err)
		}
		plain := exec.Command("php8.2", "artisan", "queue:work", "nosuch")
		plain.Dir, plain.Env = a.dir, a.env
		_ = plain.Run()
		w := a.start(t, plan{command: []string{"php8.2", "artisan", "queue:work", "nosuch"}})
		message := w.wantOutcome(t, termination.Crashed, 70)
		if message.ExitCode != plain.ProcessState.ExitCode() {
			t.Errorf("the worker's own code is %d with us and %d without", message.ExitCode, plain.ProcessState.ExitCode())
		}
		t.Logf("plain artisan ends with %d", plain.ProcessState.ExitCode())
	})
	t.Run("no such program", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite)
		w := a.start(t, plan{command: []string{"php9", "artisan", "queue:work"}})
		if message := w.wantOutcome(t, termination.Crashed, 70); !strings.Contains(message.Reason, "php9") {
			t.Errorf("message %+v", message)
		}
	})
}

// A worker that stops cleanly again and again without a job is no recycle.
func TestSpinningEnds(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	w := a.start(t, plan{command: []string{"php8.2", "artisan", "queue:work", "--stop-when-empty", "--sleep=0"}})
	w.wantOutcome(t, termination.Crashed, 70)
	if n := strings.Count(w.output.text(), "started again"); n < 4 {
		t.Errorf("it was started again %d times, wanted 4 or, where a boot takes 5 s, more", n)
	}
}

func TestOutsideKillIsNamed(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Long", facts("k", "seconds", 20))
	w := a.start(t, plan{})
	a.await(t, "start", "k")
	state := w.awaitPhase(t, workerstate.Job)
	_ = proc.Signal(proc.Process{PID: state.PID, Start: state.Start}, syscall.SIGKILL)
	message := w.wantOutcome(t, termination.Killed, 137)
	if message.ExitCode != 137 || message.Job == nil || message.Job.Class != `App\Jobs\Long` || message.Job.UUID != state.Job.UUID {
		t.Errorf("message %+v", message)
	}
}

func TestKillInADrainIsNamed(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Long", facts("k", "seconds", 30))
	w := a.start(t, plan{})
	a.await(t, "start", "k")
	state := w.awaitPhase(t, workerstate.Job)
	w.signal(t, syscall.SIGTERM)
	eventually(t, patience, "the closed gate", func() bool { return exists(w.dir.Gate()) })
	_ = proc.Signal(proc.Process{PID: state.PID, Start: state.Start}, syscall.SIGKILL)
	message := w.wantOutcome(t, termination.Killed, 137)
	if message.DrainAt == "" || message.Job == nil || message.Job.UUID != state.Job.UUID {
		t.Errorf("message %+v", message)
	}
}

// A job's own time limit is a clean end, told apart by the worker's last words
// and not by its code, which is that of a kill.
func TestOwnTimeoutInADrain(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Long", facts("k", "seconds", 60, "timeout", 2))
	w := a.start(t, plan{})
	a.await(t, "start", "k")
	message, took := w.drain(t)
	if message.Outcome != termination.Drained || message.ExitCode != 137 || message.Reason == "" || took > 25*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
}

// A container with few processes left: the agent, its worker and a hook fit into
// two dozen threads.
func TestFewProcessesAreEnough(t *testing.T) {
	t.Parallel()
	group := "/sys/fs/cgroup/pids/qw-agent-test-" + fmt.Sprint(os.Getpid())
	if exists("/sys/fs/cgroup/cgroup.controllers") || os.Mkdir(group, 0o755) != nil {
		t.Skip("needs a writable group of processes of version 1")
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	if err := os.WriteFile(group+"/pids.max", []byte("24"), 0o644); err != nil {
		t.Fatal(err)
	}
	join := []string{"sh", "-c", `echo $$ > ` + group + `/cgroup.procs && exec "$@"`, "sh"}
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("s", "seconds", 2))
	w := a.start(t, plan{around: join})
	a.await(t, "start", "s")
	hook := exec.Command(join[0], append(join[1:], suite.agent, "drain", "--dir", string(w.dir))...)
	hook.Env = w.env
	if out, err := hook.CombinedOutput(); err != nil || !contains(string(out), `"Drained"`) {
		t.Errorf("the hook: %v\n%s", err, out)
	}
	t.Logf("at most %s of 24", strings.TrimSpace(read(group+"/pids.current")))
	w.stop(t)
	a.wholeSeconds(t, "s", 2)
}

func TestMemoryKillIsNamed(t *testing.T) {
	group := "/sys/fs/cgroup/memory/qw-agent-test-" + fmt.Sprint(os.Getpid())
	if exists("/sys/fs/cgroup/cgroup.controllers") || os.Mkdir(group, 0o755) != nil {
		t.Skip("needs a writable memory group of version 1")
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	for file, value := range map[string]string{"memory.limit_in_bytes": "100000000", "memory.swappiness": "0"} {
		if err := os.WriteFile(group+"/"+file, []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := newApp(t, onSQLite)
	a.dispatch(t, "EatsMemory", facts("m", "megabytes", 400))
	join := []string{"sh", "-c", `echo $$ > ` + group + `/cgroup.procs && exec "$@"`, "sh"}
	w := a.start(t, plan{around: join})
	message := w.wantOutcome(t, termination.OOMKilled, 137)
	if message.Job == nil || message.Job.Class != `App\Jobs\EatsMemory` {
		t.Errorf("message %+v", message)
	}
}
