// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/freeport"
	"github.com/queueworker/operator/test/fence/servers"
)

var redises = struct {
	sync.Mutex
	ports map[string]string
}{ports: map[string]string{}}

// redis starts one real Redis for each kind of settings.
func redis(t *testing.T, kind string) string {
	t.Helper()
	redises.Lock()
	defer redises.Unlock()
	if port, ok := redises.ports[kind]; ok {
		return port
	}
	port := freePort(t)
	words := []string{"--bind", "127.0.0.1", "--port", port, "--dir", suite.dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}
	switch kind {
	case "cluster":
		words = append(words, "--cluster-enabled", "yes", "--cluster-config-file", "nodes-"+port+".conf", "--cluster-port", freePort(t))
	case "allkeys-lru unlimited":
		words = append(words, "--maxmemory-policy", "allkeys-lru")
	default:
		words = append(words, "--maxmemory-policy", kind, "--maxmemory", "50mb")
	}
	cmd := exec.Command("redis-server", words...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	suite.closers = append(suite.closers, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if exec.Command("redis-cli", "-p", port, "ping").Run() == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("redis-server does not answer on port %s", port)
		}
	}
	redises.ports[kind] = port
	return port
}

// database is a server of test/fence/servers, started at its first use.
type database struct {
	once   sync.Once
	start  func(...string) (*servers.Server, error)
	server *servers.Server
	err    error
}

var (
	mariaDB  = &database{start: servers.MariaDB}
	postgres = &database{start: servers.Postgres}
)

func (d *database) port(t *testing.T) string {
	t.Helper()
	d.once.Do(func() {
		if d.server, d.err = d.start(); d.err != nil {
			return
		}
		suite.closers = append(suite.closers, d.server.Stop)
	})
	if d.err != nil {
		t.Fatal(d.err)
	}
	return strconv.Itoa(d.server.Port)
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
