// SPDX-License-Identifier: Apache-2.0

// Package servers starts real database servers for tests, from the
// system's own packages, on loopback and in temporary folders.
package servers

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // for sql.Open
	"github.com/jackc/pgx/v5"

	"github.com/queueworker/operator/internal/freeport"
)

// ErrMissing is the whole message of a test that finds no server.
var ErrMissing = errors.New("no PostgreSQL or MariaDB server here: apt-get install postgresql mariadb-server")

// Server is one running server.
type Server struct {
	Port int
	Dir  string
	DSN  string // of the user fence

	hold io.Closer // the server ends when this closes, even if we crash
	cmd  *exec.Cmd
	log  string
}

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	_ = s.hold.Close()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.Dir)
}

// Postgres starts PostgreSQL with the superuser "fence" and no password, and
// waits until it answers. Settings are name=value.
func Postgres(settings ...string) (*Server, error) {
	bin, err := newest("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return nil, err
	}
	s, account, err := prepare("postgres")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.Dir, "data")
	initdb := exec.Command(filepath.Join(filepath.Dir(bin), "initdb"), "-D", data, "-U", "fence", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if err := run(initdb, account); err != nil {
		return nil, err
	}
	args := []string{bin, "-D", data, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=150"}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	s.DSN = fmt.Sprintf("postgres://fence@%s/postgres?sslmode=disable", s.Addr())
	return s.started(args, account, "INT", func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.DSN)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// MariaDB starts MariaDB with the all-powerful user "fence" and no password,
// and a database "fence", and waits until it answers. Settings are server
// options without the dashes.
func MariaDB(settings ...string) (*Server, error) {
	bin, err := newest("/usr/sbin/mariadbd")
	if err != nil {
		return nil, err
	}
	s, account, err := prepare("mysql")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.Dir, "data")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--skip-test-db", "--auth-root-authentication-method=normal")
	if err := run(install, account); err != nil {
		return nil, err
	}
	users := filepath.Join(s.Dir, "users.sql")
	text := "CREATE DATABASE IF NOT EXISTS fence;\nCREATE USER IF NOT EXISTS fence@'%';\nGRANT ALL ON *.* TO fence@'%' WITH GRANT OPTION;\n"
	if err := os.WriteFile(users, []byte(text), 0o644); err != nil {
		return nil, err
	}
	args := []string{bin, "--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(s.Port), "--bind-address=127.0.0.1",
		"--skip-name-resolve", "--socket=" + filepath.Join(s.Dir, "s"), "--pid-file=" + filepath.Join(s.Dir, "pid"), "--init-file=" + users, "--max-connections=150"}
	for _, setting := range settings {
		args = append(args, "--"+setting)
	}
	s.DSN = fmt.Sprintf("fence@tcp(%s)/fence", s.Addr())
	db, err := sql.Open("mysql", s.DSN)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	return s.started(args, account, "TERM", db.PingContext)
}

func newest(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", ErrMissing
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}

// prepare makes a folder that belongs to the account the server runs under:
// root is what both servers refuse.
func prepare(accountName string) (*Server, *syscall.Credential, error) {
	dir, err := os.MkdirTemp("", "fence-")
	if err != nil {
		return nil, nil, err
	}
	port, err := freeport.Take()
	if err != nil {
		return nil, nil, err
	}
	s := &Server{Port: port, Dir: dir, log: filepath.Join(dir, "log")}
	if os.Geteuid() != 0 {
		return s, nil, nil
	}
	account, err := user.Lookup(accountName)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%w)", ErrMissing, err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	return s, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

func run(cmd *exec.Cmd, account *syscall.Credential) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &output, &output, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, output.String())
	}
	return nil
}

// start runs the server under a shell that stops it when our end of the pipe
// closes, so that not even a killed test leaves it or its folder behind.
func (s *Server) start(args []string, account *syscall.Credential, signal string) error {
	const watch = `"$@" <&- >"$FENCE_LOG" 2>&1 & server=$!; read -r _; kill -"$FENCE_SIGNAL" $server; wait $server; rm -rf "$FENCE_DIR"`
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", watch, "sh"}, args...)...)
	s.cmd.Env = append(os.Environ(), "FENCE_LOG="+s.log, "FENCE_DIR="+s.Dir, "FENCE_SIGNAL="+signal)
	s.cmd.Dir = "/"
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account, Setpgid: true}
	pipe, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.hold = pipe
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	return nil
}

// started is the server once ping works.
func (s *Server) started(args []string, account *syscall.Credential, signal string, ping func(context.Context) error) (*Server, error) {
	if err := s.start(args, account, signal); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for {
		err := ping(limit)
		if err == nil {
			return s, nil
		}
		select {
		case <-limit.Done():
			log, _ := os.ReadFile(s.log)
			s.Stop()
			return nil, fmt.Errorf("the server does not answer: %w\n%s", err, strings.TrimSpace(string(log)))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
