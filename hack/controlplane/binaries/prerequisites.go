// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// minFree is what one link step needs at least, far below what a build from cold caches takes.
const minFree = 1 << 30

// checkPrerequisites names what a build would later fail of, in one line.
func (f Finder) checkPrerequisites(ctx context.Context) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("go is not in PATH: install the Go version that go.mod names, or set KUBEBUILDER_ASSETS to a folder with the programs")
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for _, folder := range []string{f.Cache, strings.TrimSpace(string(out))} {
		var stat unix.Statfs_t
		// A folder that does not exist yet is found out by go build itself.
		if unix.Statfs(folder, &stat) != nil {
			continue
		}
		if free := stat.Bavail * uint64(stat.Frsize); free < minFree { //nolint:gosec // a size is not negative
			return fmt.Errorf("%s has %d MB left, building needs 9 GB from cold caches: free some, or set QW_CACHE_DIR and GOCACHE to a larger disk", folder, free>>20)
		}
	}
	return nil
}

// explain turns the commonest failure of a build into something to do.
func explain(err error, cache string) error {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("no space left while building into %s: free some, or set QW_CACHE_DIR, GOCACHE and GOTMPDIR to a larger disk", cache)
	}
	return err
}
