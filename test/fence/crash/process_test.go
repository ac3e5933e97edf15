// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/queueworker/operator/test/fence/servers"
)

// sidecar is one place for a fence: its way to the database and, most of the
// time, a process. It belongs to one run at a time.
type sidecar struct {
	id     string
	config string
	points string
	way    *servers.Proxy

	mu     sync.Mutex
	cmd    *exec.Cmd
	url    string
	starts int // how often a process was started
}

// newSidecar writes the configuration; no process runs yet.
func newSidecar(h *harness, db *database, id, config string) (*sidecar, error) {
	way, err := servers.NewProxy(db.server.Addr())
	if err != nil {
		return nil, err
	}
	s := &sidecar{id: id, points: h.points.URL, way: way, config: filepath.Join(h.dir, "fence-"+id+".yaml")}
	through := strings.Replace(db.server.DSN, strconv.Itoa(db.server.Port), strconv.Itoa(way.Port()), 1)
	return s, errors.Join(os.WriteFile(filepath.Join(h.dir, "dsn-"+id), []byte(through), 0o600), os.WriteFile(s.config, []byte(config), 0o600))
}

// serve starts a process if none runs, and returns its URL.
func (s *sidecar) serve(binary string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return s.url, nil
	}
	cmd := exec.Command(binary, "-config", s.config)
	s.starts++
	cmd.Env = append(os.Environ(), fmt.Sprintf("FENCE_POINTS=%s/%s/%d", s.points, s.id, s.starts))
	output, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	lines := bufio.NewScanner(output)
	var log strings.Builder
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "the fence serves" {
			s.cmd, s.url = cmd, "http://"+line.Address
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return s.url, nil
		}
		log.WriteString(lines.Text() + "\n")
	}
	return "", fmt.Errorf("the fence ended before it served: %w\n%s", cmd.Wait(), log.String())
}

// lives says whether this start's process is the one that runs: what a killed
// one has said last may be heard late.
func (s *sidecar) lives(start string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil && start == strconv.Itoa(s.starts)
}

// kill is SIGKILL.
func (s *sidecar) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd, s.url = nil, ""
}
