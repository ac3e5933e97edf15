// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// plan is how a worker is started; the zero plan is an ordinary one.
type plan struct {
	work    []string                 // options of queue:work
	command []string                 // instead of queue:work
	flags   []string                 // of agent run
	wire    func(*timeoutchain.Wire) // changes the chain
	env     []string
	around  []string // words before the agent's
	first   bool     // as process 1 of a namespace
	program string   // another agent
	message string   // another termination message file
	dir     workdir.Dir
}

// worker is one `agent run` and what is under it.
type worker struct {
	app     *app
	dir     workdir.Dir
	message string
	env     []string
	cmd     *exec.Cmd
	pid     int // the agent's
	ended   chan struct{}
	exit    int
	endedAt time.Time
	output  lockedBuffer
}

type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.String()
}

func (a *app) chain(change func(*timeoutchain.Wire)) string {
	driver := timeoutchain.Database
	if a.connection == "redis" {
		driver = timeoutchain.Redis
	}
	wire := timeoutchain.Wire{
		Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, Driver: driver,
		CallSeconds: 20, JobSeconds: 30, RetryAfterSeconds: 90, GraceSeconds: 100, WatchdogSeconds: 55,
	}
	if change != nil {
		change(&wire)
	}
	return timeoutchain.WireEnv + "=" + wire.Encode()
}

func (a *app) start(t *testing.T, p plan) *worker {
	t.Helper()
	w := &worker{app: a, dir: p.dir, message: p.message, ended: make(chan struct{})}
	if w.dir == "" {
		w.dir = workdir.Dir(filepath.Join(a.dir, "qw"))
		if err := os.MkdirAll(string(w.dir), 0o777); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(string(w.dir), 0o777)
	}
	if w.message == "" {
		w.message = filepath.Join(a.dir, "termination-log")
		if err := os.WriteFile(w.message, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(w.message, 0o666)
	}
	command := p.command
	if command == nil {
		command = append([]string{"php8.2", "artisan", "queue:work", a.connection, "--sleep=1", "--timeout=30"}, p.work...)
	}
	program := p.program
	if program == "" {
		program = suite.agent
	}
	words := append([]string{}, p.around...)
	if p.first {
		words = append(words, "unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
	}
	words = append(words, program, "run", "--dir", string(w.dir), "--termination-log", w.message)
	words = append(append(append(words, p.flags...), "--"), command...)
	w.env = append(append(append([]string{}, a.env...), a.chain(p.wire)), p.env...)
	w.launch(t, words, p.first)
	return w
}

func (w *worker) launch(t *testing.T, words []string, first bool) {
	t.Helper()
	w.cmd = exec.Command(words[0], words[1:]...)
	w.cmd.Dir, w.cmd.Env = w.app.dir, w.env
	w.cmd.Stdout, w.cmd.Stderr = &w.output, &w.output
	w.cmd.WaitDelay = time.Second
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.pid = w.cmd.Process.Pid
	go func() {
		err := w.cmd.Wait()
		w.endedAt = time.Now()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			w.exit = exit.ExitCode()
		}
		close(w.ended)
	}()
	t.Cleanup(func() { w.cleanUp(t) })
	if first {
		eventually(t, patience, "agent in its namespace", func() bool {
			id := strconv.Itoa(w.cmd.Process.Pid)
			child, _ := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
			w.pid, _ = strconv.Atoi(strings.TrimSpace(string(child)))
			return w.pid > 0
		})
	}
}

func (w *worker) cleanUp(t *testing.T) {
	select {
	case <-w.ended: // its number may be another process's by now
	default:
		for _, process := range proc.Descendants(w.cmd.Process.Pid) {
			_ = proc.Signal(process, syscall.SIGKILL)
		}
		_ = w.cmd.Process.Kill()
		<-w.ended
	}
	if t.Failed() {
		t.Logf("the agent's output:\n%s", w.output.text())
	}
}

func (w *worker) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	agent, ok := proc.Read(w.pid)
	select {
	case <-w.ended:
		ok = false
	default:
	}
	if !ok {
		t.Fatalf("the agent has ended before it was sent %s", signal)
	}
	if err := proc.Signal(agent, signal); err != nil {
		t.Fatal(err)
	}
}

// states are those of live workers.
func (w *worker) states() []workerstate.State {
	states, _ := workerstate.ReadAll(w.dir.Run())
	return states
}

func (w *worker) awaitPhase(t *testing.T, phase workerstate.Phase) workerstate.State {
	t.Helper()
	var found workerstate.State
	eventually(t, patience, "a worker in phase "+string(phase), func() bool {
		for _, state := range w.states() {
			if state.Phase == phase {
				found = state
				return true
			}
		}
		return false
	})
	return found
}

// client runs the agent as the kubelet's exec does.
func (w *worker) client(words ...string) (output string, exit int, took time.Duration) {
	cmd := exec.Command(suite.agent, append([]string{words[0], "--dir", string(w.dir)}, words[1:]...)...)
	cmd.Env = w.env
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		exit = failed.ExitCode()
	}
	return strings.TrimSpace(string(out)), exit, time.Since(begin)
}

// drain runs the hook and returns what it was told, and how long the supervisor
// says that the drain took.
func (w *worker) drain(t *testing.T) (termination.Message, time.Duration) {
	t.Helper()
	out, exit, _ := w.client("drain")
	if exit != 0 {
		t.Fatalf("the hook ended with %d: %s", exit, out)
	}
	message, err := termination.Decode(out)
	if err != nil {
		t.Fatalf("the hook said %q: %v", out, err)
	}
	return message, time.Duration(message.DrainSeconds * float64(time.Second))
}

// wait returns the exit code of the container.
func (w *worker) wait(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-w.ended:
		return w.exit
	case <-time.After(within):
		t.Fatalf("the agent has not ended within %s", within)
		return -1
	}
}

// stop ends a drained container as the kubelet does.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	w.signal(t, syscall.SIGTERM)
	if code := w.wait(t, patience); code != 0 {
		t.Errorf("the container ended with %d, wanted 0", code)
	}
}

func (w *worker) left(t *testing.T) termination.Message {
	t.Helper()
	text, err := os.ReadFile(w.message)
	if err != nil {
		t.Fatal(err)
	}
	message, err := termination.Decode(string(text))
	if err != nil {
		t.Fatalf("termination message %q: %v", text, err)
	}
	return message
}

func (w *worker) wantOutcome(t *testing.T, outcome termination.Outcome, exit int) termination.Message {
	t.Helper()
	code := w.wait(t, patience)
	message := w.left(t)
	if message.Outcome != outcome || message.Provisional || code != exit {
		t.Errorf("ended with %d and %+v, wanted %d and a final %s", code, message, exit, outcome)
	}
	return message
}
