// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// neededSpace is what a fresh control plane writes (130 MB) with some room for tests.
const neededSpace = 256 << 20

// checkSpace names a full disk before etcd dies of it with a stack trace.
func checkSpace(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return err
	}
	if free := stat.Bavail * uint64(stat.Frsize); free < neededSpace { //nolint:gosec // a size is not negative
		return noSpace(dir, fmt.Sprintf("%d MB", free>>20))
	}
	return nil
}

// explain tells what to do about a disk that became full on the way.
func explain(err error, dir string) error {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "no space left on device") {
		return noSpace(dir, "nothing")
	}
	return err
}

func noSpace(dir, left string) error {
	return fmt.Errorf("%s has %s left, a control plane needs %d MB: free some, or set TMPDIR (for `controlplane up`, QW_CACHE_DIR) to a larger disk",
		filepath.Dir(dir), left, neededSpace>>20)
}
