// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// suite is what all tests share.
var suite struct {
	dir      string // removed at the end
	agent    string // the program under test
	template string // the application, its caches and tables made
	closers  []func()
}

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (int, error) {
	if err := requirements(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "qwa")
	if err != nil {
		return 1, err
	}
	suite.dir = dir
	defer os.RemoveAll(dir)
	defer func() {
		for _, stop := range suite.closers {
			stop()
		}
	}()
	// Workers of other users must get in.
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	if suite.agent, err = build("agent", "../../cmd/agent"); err != nil {
		return 1, err
	}
	if err := makeTemplate(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// requirements fails with the one command that helps.
func requirements() error {
	needs := []struct{ check, pkg string }{
		{"php8.2 -v", "php8.2-cli"},
		{"php8.2 -r exit((int)!extension_loaded('pdo_sqlite'));", "php8.2-sqlite3"},
		{"php8.2 -r exit((int)!extension_loaded('pdo_mysql'));", "php8.2-mysql"},
		{"php8.2 -r exit((int)!extension_loaded('redis'));", "php8.2-redis"},
		{"php8.2 -r exit((int)!extension_loaded('curl'));", "php8.2-curl"},
		{"test -f /usr/share/php/Illuminate/Foundation/Application.php", "php-laravel-framework"},
		{"redis-server --version", "redis-server"},
		{"mariadbd --version", "mariadb-server"},
		{"php8.2 -r exit((int)!extension_loaded('pdo_pgsql'));", "php8.2-pgsql"},
		{"sh -c ls /usr/lib/postgresql/*/bin/postgres", "postgresql"},
		{"beanstalkd -v", "beanstalkd"},
		{"test -f /usr/share/php/Pheanstalk/autoload.php", "php-pda-pheanstalk"},
		{"unshare --version", "util-linux"},
	}
	var missing []string
	for _, need := range needs {
		words := strings.SplitN(need.check, " ", 3)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if exec.CommandContext(ctx, words[0], words[1:]...).Run() != nil {
			missing = append(missing, need.pkg)
		}
		cancel()
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("these tests start processes as several users and in namespaces of their own: run them as root")
	}
	if len(missing) > 0 {
		return fmt.Errorf("real software is missing: apt-get install -y --no-install-recommends %s", strings.Join(missing, " "))
	}
	return nil
}

func build(name, pkg string) (string, error) {
	program := filepath.Join(suite.dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

// full says whether the long profile was asked for.
func full() bool { return os.Getenv("QW_AGENT_TESTS") == "full" }

// times is a count that the short profile keeps small.
func times(short, long int) int {
	if full() {
		return long
	}
	return short
}

// patience is how long anything may take that has no limit of its own: the
// machine may be shared.
const patience = time.Minute

// eventually waits for a fact, and says what was waited for when it never comes.
func eventually(t *testing.T, within time.Duration, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !fact(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s still not: %s", within, what)
		}
	}
}
