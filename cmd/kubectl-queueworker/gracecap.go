// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// graceCap is the flag that says what a platform grants.
type graceCap struct{ value int64 }

func (g *graceCap) register(command *cobra.Command) {
	command.Flags().Int64Var(&g.value, "grace-cap", timeoutchain.DefaultGraceCap,
		"longest termination grace, in seconds, that your platform grants when a node is reclaimed")
}

func (g graceCap) seconds() (int64, error) {
	if g.value < 1 || g.value > timeoutchain.MaxSeconds {
		return 0, fmt.Errorf("--grace-cap is %d: expected 1 to %d seconds", g.value, timeoutchain.MaxSeconds)
	}
	return g.value, nil
}
