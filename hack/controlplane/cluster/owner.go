// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownerFile lies in the state folder and holds the pid of the process that runs the cluster, or node. That process keeps the file locked
// for as long as it lives, so a pid that now belongs to somebody else is never taken for it.
const ownerFile = "owner.pid"

// Claim writes our pid into the folder and keeps it locked until the file is closed.
func Claim(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Owner returns the pid of the living process that runs what keeps its state in this folder, or 0 when there is none.
func Owner(dir string) (int, error) {
	file, err := os.Open(filepath.Join(dir, ownerFile))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	if unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return 0, nil // nobody holds it
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}
