// SPDX-License-Identifier: Apache-2.0

// Package selfcopy puts the running program where another container will start
// it.
package selfcopy

import (
	"fmt"
	"os"

	"github.com/queueworker/operator/internal/agent/workdir"
)

// executable is readable and executable by every user, writable by none: the
// worker may run as another user than the one who copied.
const executable = 0o555

// Copy writes the program to a path. A reader sees no program or a whole one,
// also when the copy is repeated.
func Copy(path string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the running program: %w", err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("read the running program: %w", err)
	}
	if err := workdir.WriteFile(path, program, executable); err != nil {
		return fmt.Errorf("write the program to %s: %w", path, err)
	}
	return nil
}
