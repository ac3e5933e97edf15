// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package preflight breaks a real Laravel application in one place at a time
// and looks whether the preflight says so, and nothing else.
package preflight

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// suite is what all tests share.
var suite struct {
	dir      string // removed at the end
	scripts  string // the PHP files, installed
	template string // the application, its tables made
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
	dir, err := os.MkdirTemp("", "qwp")
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
	if err := os.Chmod(dir, 0o755); err != nil { // other users must get in
		return 1, err
	}
	if err := makeTemplate(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// The programs under test, built at their first use.
var (
	agent  = sync.OnceValues(func() (string, error) { return build("agent") })
	plugin = sync.OnceValues(func() (string, error) { return build("kubectl-queueworker") })
)

func build(name string) (string, error) {
	program := filepath.Join(suite.dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return program, nil
}

// requirements fails with the one command that helps.
func requirements() error {
	if os.Geteuid() != 0 {
		return errors.New("these tests start processes as several users: run them as root")
	}
	var missing []string
	for _, need := range []struct{ check, pkg string }{
		{"php8.2 -v", "php8.2-cli"},
		{"php8.2 -r exit((int)!extension_loaded('pdo_sqlite'));", "php8.2-sqlite3"},
		{"php8.2 -r exit((int)!extension_loaded('pdo_mysql'));", "php8.2-mysql"},
		{"php8.2 -r exit((int)!extension_loaded('pdo_pgsql'));", "php8.2-pgsql"},
		{"php8.2 -r exit((int)!extension_loaded('redis'));", "php8.2-redis"},
		{"test -f /usr/share/php/Illuminate/Foundation/Application.php", "php-laravel-framework"},
		{"redis-server --version", "redis-server"},
		{"mariadbd --version", "mariadb-server"},
		{"unshare --version", "util-linux"},
	} {
		words := strings.SplitN(need.check, " ", 3)
		if exec.Command(words[0], words[1:]...).Run() != nil {
			missing = append(missing, need.pkg)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("real software is missing: apt-get install -y --no-install-recommends %s", strings.Join(missing, " "))
	}
	return nil
}
