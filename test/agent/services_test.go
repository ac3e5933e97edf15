// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/freeport"
	"github.com/queueworker/operator/test/fence/servers"
)

// redisPort starts the Redis of all tests at its first use.
var redisPort = sync.OnceValues(func() (string, error) {
	port, err := takePort()
	if err != nil {
		return "", err
	}
	dir, credential, err := home("redis")
	if err != nil {
		return "", err
	}
	err = serve(credential, port, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	return port, err
})

// mariaPort starts the MariaDB of all tests at its first use.
var mariaPort = sync.OnceValues(func() (string, error) {
	port, err := takePort()
	if err != nil {
		return "", err
	}
	dir, credential, err := home("mysql")
	if err != nil {
		return "", err
	}
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--skip-test-db", "--auth-root-authentication-method=normal")
	install.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	err = serve(credential, port, "mariadbd", "--no-defaults", "--datadir="+data, "--socket="+socket,
		"--bind-address=127.0.0.1", "--port="+port, "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2")
	if err == nil {
		err = answers("unix", socket) // it comes after the port
	}
	if err != nil {
		return "", err
	}
	grant := "CREATE USER shop@'127.0.0.1'; GRANT ALL ON *.* TO shop@'127.0.0.1'"
	if out, err := exec.Command("mariadb", "--no-defaults", "-uroot", "-S", socket, "-e", grant).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mariadb: %w\n%s", err, out)
	}
	return port, nil
})

// postgresPort starts the PostgreSQL of all tests at its first use.
var postgresPort = sync.OnceValues(func() (string, error) {
	server, err := servers.Postgres("fsync=off")
	if err != nil {
		return "", err
	}
	suite.closers = append(suite.closers, server.Stop)
	return strconv.Itoa(server.Port), nil
})

// beanstalkdPort starts the beanstalkd of all tests at its first use.
var beanstalkdPort = sync.OnceValues(func() (string, error) {
	port, err := takePort()
	if err != nil {
		return "", err
	}
	_, credential, err := home("beanstalkd")
	if err != nil {
		return "", err
	}
	return port, serve(credential, port, "beanstalkd", "-l", "127.0.0.1", "-p", port)
})

func takePort() (string, error) {
	port, err := freeport.Take()
	return strconv.Itoa(port), err
}

// home makes a directory that belongs to the service's own user.
func home(name string) (string, *syscall.Credential, error) {
	account, err := user.Lookup(name)
	if err != nil {
		return "", nil, err
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	dir := filepath.Join(suite.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

// serve starts a server and waits until it answers. It ends with the tests.
func serve(credential *syscall.Credential, port string, words ...string) error {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	suite.closers = append(suite.closers, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := answers("tcp", "127.0.0.1:"+port); err != nil {
		return fmt.Errorf("%s: %w", words[0], err)
	}
	return nil
}

// answers waits until somebody listens.
func answers(network, address string) error {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial(network, address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("no answer: %w", err)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
