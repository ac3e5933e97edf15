// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// readOnly runs what follows as another user with a directory it cannot write.
func readOnly(dir string) []string {
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" &&
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"`, dir}
}

func TestReadOnlyRootAndAnyUser(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	open := openDir(t)
	database := filepath.Join(open, "shop.sqlite")
	a.dispatch(t, "Sleeps", facts("s", "seconds", 2))
	if err := os.WriteFile(database, []byte(read(a.database)), 0o666); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(database, 0o666)
	message := filepath.Join(open, "termination-log")
	_ = os.WriteFile(message, nil, 0o666)
	_ = os.Chmod(message, 0o666)
	qw := filepath.Join(open, "qw")
	_ = os.Mkdir(qw, 0o777)
	_ = os.Chmod(qw, 0o777)
	// The init container may run as yet another user.
	copying := exec.Command("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", suite.agent, "copy", "--dir", qw)
	if out, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("copy: %v\n%s", err, out)
	}
	journal := filepath.Join(open, "journal")
	w := a.start(t, plan{
		around: readOnly(a.dir), dir: workdir.Dir(qw), message: message, program: filepath.Join(qw, "agent"),
		env: []string{"DB_DATABASE=" + database, "JOURNAL_FILE=" + journal, "CACHE_DRIVER=array"},
	})
	a.journal = journal
	a.await(t, "start", "s")
	if w.drain(t); w.left(t).Outcome != termination.Drained {
		t.Errorf("message %+v", w.left(t))
	}
	w.stop(t)
	a.wholeSeconds(t, "s", 2)
}

func TestCopy(t *testing.T) {
	t.Parallel()
	open := openDir(t)
	copied := filepath.Join(open, "agent")
	for range 2 { // over an old one, too
		if out, err := exec.Command(suite.agent, "copy", "--dir", open).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if !bytes.Equal([]byte(read(copied)), []byte(read(suite.agent))) {
		t.Error("the copy differs")
	}
	if info, _ := os.Stat(copied); info.Mode() != 0o555 {
		t.Errorf("mode %s", info.Mode())
	}
	if entries, _ := os.ReadDir(open); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	out, err := exec.Command(suite.agent, "copy", "--dir", "/proc").CombinedOutput()
	if err == nil || len(out) == 0 {
		t.Error("a directory that cannot be written was no error")
	}
}

// A volume outlives its container: an old gate would keep the worker idle for
// ever, an old state would speak for the new process, or for one that is not
// ours at all.
func TestFilesOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	bystander := exec.Command("sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	pid := bystander.Process.Pid
	run := filepath.Join(a.dir, "qw", "run")
	if err := os.MkdirAll(run, 0o777); err != nil {
		t.Fatal(err)
	}
	stale := fmt.Sprintf(`{"v":1,"pid":%d,"start":0,"phase":"job","mask":true,"clock":1,"job":{"uuid":"old","class":"Old"}}`, pid)
	stale = fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(stale)), stale)
	for name, text := range map[string]string{"gate": "old", "agent.sock": "", fmt.Sprintf("w.%d.state", pid): stale} {
		if err := os.WriteFile(filepath.Join(run, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.dispatch(t, "Short", facts("s"))
	w := a.start(t, plan{})
	a.await(t, "end", "s")
	// Written while we run, it is a lie.
	if err := os.WriteFile(filepath.Join(run, fmt.Sprintf("w.%d.state", pid)), []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	if message, took := w.drain(t); message.Outcome != termination.Drained || took > 20*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
	if !proc.Alive(pid, 0) {
		t.Error("a process that is not ours was killed")
	}
}

// No place for the message is no reason to disturb a job.
func TestTerminationMessageCannotBeWritten(t *testing.T) {
	for name, path := range map[string]string{"full": "/dev/full", "directory": os.TempDir(), "missing": "/nonexistent/log"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onSQLite)
			a.dispatch(t, "Sleeps", facts("s", "seconds", 2))
			w := a.start(t, plan{message: path})
			a.await(t, "start", "s")
			if message, _ := w.drain(t); message.Outcome != termination.Drained {
				t.Errorf("outcome %+v", message)
			}
			w.stop(t)
			a.wholeSeconds(t, "s", 2)
		})
	}
}

// Without pcntl any signal kills at once, so the worker is only told when it
// has shown that it takes no more jobs.
func TestWithoutPcntl(t *testing.T) {
	command := []string{"php8.2", "-d", "disable_functions=pcntl_sigprocmask,pcntl_async_signals,pcntl_signal,pcntl_alarm",
		"artisan", "queue:work", "--sleep=1", "--timeout=30"}
	env := []string{"APP_NO_PCNTL=1"}
	t.Run("in a job", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onSQLite)
		a.dispatch(t, "Sleeps", facts("s", "seconds", 6))
		w := a.start(t, plan{command: command, env: env})
		a.await(t, "start", "s")
		if state := w.awaitPhase(t, workerstate.Job); state.Mask {
			t.Fatal("the worker says it can hold signals back")
		}
		message, _ := w.drain(t)
		if message.Outcome != termination.Drained || message.ExitCode != 143 {
			t.Errorf("message %+v", message)
		}
		w.stop(t)
		a.wholeSeconds(t, "s", 6)
		a.nothingLeft(t)
	})
	for i := range times(3, 20) {
		t.Run(fmt.Sprint("in the window, ", i), func(t *testing.T) {
			t.Parallel()
			// The supervisor waits for the end of the job before it signals, so the window ends with the gate.
			if !lateJob(t, round{plan: plan{flags: []string{"--stall=40ms"}, command: command, env: env}, untilGate: true}) {
				t.Error("the late job was cut")
			}
		})
	}
	t.Run("at any moment", func(t *testing.T) {
		t.Parallel()
		for i := range times(3, 20) {
			a := newApp(t, onSQLite)
			a.dispatch(t, "Long", facts("l", "seconds", 0.03), "--times=100")
			w := a.start(t, plan{command: command, env: env})
			a.await(t, "end", "l-0")
			time.Sleep(time.Duration(i*23) * time.Millisecond)
			w.signal(t, syscall.SIGTERM)
			w.wantOutcome(t, termination.Drained, 0)
			if started, ended, c := a.count(t, "start", ""), a.count(t, "end", ""), a.counts(t); started != ended || c.Reserved != 0 {
				t.Errorf("%d started, %d ended, tables %+v", started, ended, c)
			}
		}
	})
}

// The agent may be started with signals blocked; its worker must hear them.
func TestBlockedSignalsAreNotInherited(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	block := `pcntl_sigprocmask(SIG_BLOCK, [SIGTERM, SIGALRM]); pcntl_exec($argv[1], array_slice($argv, 2));`
	w := a.start(t, plan{
		around: []string{"php8.2", "-r", block, "--"}, command: []string{"sleep", "600"},
		wire: func(w *timeoutchain.Wire) { w.Runtime = timeoutchain.Generic },
	})
	eventually(t, patience, "the agent's socket", func() bool { return exists(w.dir.Socket()) })
	if message, took := w.drain(t); message.Outcome != termination.Drained || took > 20*time.Second {
		t.Errorf("took %s: %+v", took, message)
	}
	w.stop(t)
}

func TestWrappersAndOtherCommands(t *testing.T) {
	generic := func(w *timeoutchain.Wire) { w.Runtime = timeoutchain.Generic }
	for name, c := range map[string]struct {
		command []string
		flags   []string
		wire    func(*timeoutchain.Wire)
		class   string // a job's sleep() is cut where nothing is known about the worker
	}{
		"wrapper that execs":        {[]string{"./exec.sh", "php8.2", "artisan", "queue:work"}, nil, nil, "Sleeps"},
		"wrapper that does not":     {[]string{"./noexec.sh", "php8.2", "artisan", "queue:work"}, nil, nil, "Sleeps"},
		"signals only":              {[]string{"php8.2", "artisan", "queue:work"}, []string{"--supervision=SignalsOnly"}, nil, "Long"},
		"generic shell, no exec":    {[]string{"sh", "-c", "php8.2 artisan queue:work; true"}, nil, generic, "Long"},
		"generic shell, background": {[]string{"bash", "-c", "php8.2 artisan queue:work & wait"}, nil, generic, "Long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, onSQLite)
			writeScript(t, a.dir+"/exec.sh", "#!/bin/sh\nexec \"$@\"\n")
			writeScript(t, a.dir+"/noexec.sh", "#!/bin/sh\n\"$@\"\ncode=$?\nsleep 1\ntouch cleaned-up\nexit $code\n")
			a.dispatch(t, c.class, facts("s", "seconds", 2))
			w := a.start(t, plan{command: c.command, flags: c.flags, wire: c.wire, first: true})
			a.await(t, "start", "s")
			w.signal(t, syscall.SIGTERM)
			w.wantOutcome(t, termination.Drained, 0)
			a.wholeSeconds(t, "s", 2)
			a.nothingLeft(t)
			if name == "wrapper that does not" && !exists(a.dir+"/cleaned-up") {
				t.Error("the wrapper was not let to its end")
			}
		})
	}
}

// Neither the agent nor the worker needs a shell.
func TestNoShellInTheImage(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	a.dispatch(t, "Sleeps", facts("s", "seconds", 2))
	hide := `for shell in /usr/bin/dash /usr/bin/bash; do mount --bind /dev/null $shell; done; exec "$@"`
	w := a.start(t, plan{around: []string{"unshare", "--mount", "bash", "-c", hide, "bash"}})
	a.await(t, "start", "s")
	w.signal(t, syscall.SIGTERM)
	w.wantOutcome(t, termination.Drained, 0)
	a.wholeSeconds(t, "s", 2)
	a.nothingLeft(t)
}

// A command of which nothing is known keeps its own exit code.
func TestGenericCommandEndsByItself(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite)
	for code, words := range map[int]string{0: "exit 0", 7: "exit 7"} {
		w := a.start(t, plan{command: []string{"sh", "-c", words}, wire: func(w *timeoutchain.Wire) { w.Runtime = timeoutchain.Generic }})
		w.wantOutcome(t, termination.Crashed, code)
	}
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
