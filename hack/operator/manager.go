// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/queueworker/operator/hack/internal/buildtags"
	"github.com/queueworker/operator/hack/internal/lasting"
	"github.com/queueworker/operator/internal/freeport"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// Build compiles the manager.
func Build(ctx context.Context, root, binary string) error {
	command := exec.CommandContext(ctx, "go", "build", "-tags", buildtags.Operator, "-o", binary, "./cmd/manager")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w\n%s", err, output)
	}
	return nil
}

// Endpoints are the addresses on which a manager listens.
type Endpoints struct{ Webhook, Metrics, Health string }

// FreeEndpoints are addresses of the loopback interface that nobody uses.
func FreeEndpoints() (e Endpoints, err error) {
	for _, address := range []*string{&e.Webhook, &e.Metrics, &e.Health} {
		if *address, err = freeport.TakeAddress(); err != nil {
			return Endpoints{}, err
		}
	}
	return e, nil
}

// Flags are the manager's. The API server reaches the webhook under localhost.
func (e Endpoints) Flags() []string {
	_, port, _ := net.SplitHostPort(e.Webhook)
	return []string{
		"--webhook-bind-address=" + e.Webhook, "--webhook-url=https://localhost:" + port,
		"--metrics-bind-address=" + e.Metrics, "--health-bind-address=" + e.Health,
	}
}

// Manager is a manager that was started.
type Manager struct {
	Endpoints

	log     string
	command *exec.Cmd
	ended   chan struct{}
}

// Start starts a manager that adds to a log file. It ends with this process at
// the latest. A flag given here wins over those of the endpoints.
func (e Endpoints) Start(binary, kubeconfig, log string, flags ...string) (*Manager, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the child has its own copy
	m := &Manager{Endpoints: e, log: log, ended: make(chan struct{})}
	m.command = exec.Command(binary, append(append([]string{"--kubeconfig=" + kubeconfig}, e.Flags()...), flags...)...)
	m.command.Stdout, m.command.Stderr = file, file
	m.command.Env = []string{}                                  // no KUBECONFIG, no proxy
	m.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches us alone, and we stop it in order
	if err := lasting.Start(m.command); err != nil {
		return nil, err
	}
	go func() {
		_ = m.command.Wait()
		close(m.ended)
	}()
	return m, nil
}

// PID is the process.
func (m *Manager) PID() int { return m.command.Process.Pid }

// Ended is closed when the process has ended.
func (m *Manager) Ended() <-chan struct{} { return m.ended }

// ExitCode is -1 for a manager that a signal killed. It has ended.
func (m *Manager) ExitCode() int { return m.command.ProcessState.ExitCode() }

// Signal tells the process; one that has ended takes no notice.
func (m *Manager) Signal(signal syscall.Signal) { _ = m.command.Process.Signal(signal) }

// Probe is the status code of a health endpoint, 0 while nobody listens.
func (m *Manager) Probe(path string) int {
	response, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + m.Health + path)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// WaitUntilReady waits for two minutes at most.
func (m *Manager) WaitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for m.Probe("/readyz") != http.StatusOK {
		select {
		case <-m.ended:
			return fmt.Errorf("the manager ended by itself; the end of its log:\n%s", m.LastWords(10))
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready: %w; the end of its log:\n%s", ctx.Err(), m.LastWords(10))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Stop ends the manager as Kubernetes would.
func (m *Manager) Stop() error {
	m.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
		if code := m.ExitCode(); code != 0 {
			return fmt.Errorf("the manager ended with %d; the end of its log:\n%s", code, m.LastWords(10))
		}
		return nil
	case <-time.After(stopTimeout):
		m.Kill()
		return errors.New("the manager did not stop within " + stopTimeout.String() + "; the end of its log:\n" + m.LastWords(10))
	}
}

// Kill ends the process at once and returns when it is dead.
func (m *Manager) Kill() {
	m.Signal(syscall.SIGKILL)
	<-m.ended
}

// LastWords are the last lines of the log.
func (m *Manager) LastWords(lines int) string {
	content, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
