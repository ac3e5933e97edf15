// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/queueworker/operator/hack/internal/lasting"
)

// firstProcess is the first process of the node's namespaces, seen from outside.
type firstProcess struct {
	cmd     *exec.Cmd
	logFile string
	control io.WriteCloser // orders; its end asks the node to end
	report  *bufio.Reader
	telling sync.Mutex
	answers chan string
	failed  chan error
	done    chan struct{} // closed when the process, and with it every other of the node, is gone
}

// settings travel to the inside.
type settings struct {
	Dir      string            `json:"dir"`
	Cgroup   string            `json:"cgroup"`
	Port     int               `json:"port"` // of the API server, on this machine and inside alike
	Programs map[string]string `json:"programs"`
}

// The file descriptors that the inside gets: where we tell it to go on, what to do and to end, where it tells us how it goes, and a socket
// that listens on this machine's loopback interface for the API server.
const (
	controlFD = 3 + iota
	reportFD
	listenerFD
)

// ready is the first line of a report, unless it says why not.
const ready = "ready"

func startFirst(dir string, programs map[string]string) (*firstProcess, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }() // the inside has its own copy
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	s := settings{Dir: dir, Cgroup: CgroupName(dir), Port: listener.Addr().(*net.TCPAddr).Port, Programs: programs}
	return s.startFirst(socket)
}

func (s settings) startFirst(socket *os.File) (*firstProcess, error) {
	controlReader, controlWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = controlReader.Close() }()
	reportReader, reportWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reportWriter.Close() }()
	log, err := os.OpenFile(filepath.Join(s.Dir, "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()

	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"queueworker-node", s.Dir}
	cmd.Env = append(os.Environ(), roleEnv+"="+roleInit, settingsEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{controlReader, reportWriter, socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Setsid:     true, // Ctrl-C on the terminal reaches us alone
	}
	if err := lasting.Start(cmd); err != nil {
		return nil, fmt.Errorf("starting the node's first process: %w", err)
	}
	f := &firstProcess{
		cmd: cmd, logFile: log.Name(), control: controlWriter, report: bufio.NewReader(reportReader),
		answers: make(chan string, 1), failed: make(chan error, 1), done: make(chan struct{}),
	}
	go func() {
		_ = cmd.Wait()
		close(f.done)
	}()
	// It waits for this byte, so that all it starts is in its cgroups.
	if err := joinCgroups(s.Cgroup, cmd.Process.Pid); err != nil {
		return f, fmt.Errorf("joining cgroups: %w", err)
	}
	_, err = controlWriter.Write([]byte("\n"))
	return f, err
}

// waitReady returns when the node works.
func (f *firstProcess) waitReady(ctx context.Context) error {
	first := make(chan error, 1)
	go func() {
		line, err := f.report.ReadString('\n')
		switch {
		case line == ready+"\n":
			first <- nil
			f.follow()
		case line == "":
			first <- fmt.Errorf("the node's first process ended without a word (%w); its log: %s", err, f.log())
		default:
			rest, _ := io.ReadAll(f.report)
			first <- errors.New(strings.TrimSpace(line + string(rest)))
		}
	}()
	select {
	case err := <-first:
		return err
	case <-ctx.Done():
		return fmt.Errorf("interrupted while the node started: %w", ctx.Err())
	}
}

func (f *firstProcess) log() string {
	text, err := os.ReadFile(f.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// follow passes on what the inside answers, and what it says at its end.
func (f *firstProcess) follow() {
	var text string
	for {
		line, err := f.report.ReadString('\n')
		if said, ok := strings.CutPrefix(line, obeyed); ok {
			f.answers <- said
			continue
		}
		text += line
		if err != nil {
			break
		}
	}
	if text != "" {
		f.failed <- errors.New(strings.TrimSpace(text))
	}
}

// kill returns when every process of the node is gone: the kernel ends them with the first one, and then lets that go.
func (f *firstProcess) kill() {
	if f == nil {
		return
	}
	_ = f.cmd.Process.Kill() // fails only when it has ended already
	<-f.done
	_ = f.control.Close()
}
