// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/queueworker/operator/hack/internal/lasting"
)

// process is a running component.
type process struct {
	name    string
	cmd     *exec.Cmd
	logFile string
	killed  atomic.Bool   // by us
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; read after done
}

func startProcess(name, path string, args []string, logsDir string) (*process, error) {
	if err := os.MkdirAll(logsDir, 0o700); err != nil {
		return nil, err
	}
	logFile := filepath.Join(logsDir, name+".log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy

	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// Ctrl-C on the terminal reaches us alone, and we end things in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := lasting.Start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, logFile: logFile, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process and returns when it is gone.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	<-p.done
}

// waitUntil asks until the answer is nil, the process ends, or the time is up.
func (p *process) waitUntil(ctx context.Context, ready func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNotReady)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.endedError()
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errNotReady) {
				return fmt.Errorf("%s is not ready after %s: %w; its last words: %s", p.name, startTimeout, err, p.lastWords())
			}
			return fmt.Errorf("interrupted while %s started", p.name)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var errNotReady = errors.New("not ready in time")

func (p *process) endedError() error {
	return fmt.Errorf("%s ended by itself (%w): %s", p.name, p.err, p.lastWords())
}

// lastWords is the line of the log that says what the program died of: the last one, unless that is part of a stack trace.
func (p *process) lastWords() string {
	content, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "panic:") || strings.Contains(line, `"level":"fatal"`) {
			return line
		}
	}
	return lines[len(lines)-1]
}
