// SPDX-License-Identifier: Apache-2.0

// Command kubectl-queueworker is a kubectl plugin that judges QueueWorkers
// without a cluster and draws their timeout chains.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes, the same for every command.
const (
	exitClean      = 0
	exitFindings   = 1
	exitUnreadable = 2 // also a wrong flag: nothing was judged
)

// errFindings and errUnreadable end a command whose output already says why.
var (
	errFindings   = errors.New("findings that block")
	errUnreadable = errors.New("input that cannot be read")
)

func main() {
	os.Exit(run(newCommand()))
}

func run(command *cobra.Command) int {
	switch err := command.Execute(); {
	case err == nil:
		return exitClean
	case errors.Is(err, errFindings):
		return exitFindings
	case errors.Is(err, errUnreadable):
		return exitUnreadable
	default:
		fmt.Fprintln(command.ErrOrStderr(), "Error:", err)
		return exitUnreadable
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "kubectl-queueworker",
		Short: "Judge QueueWorkers and draw their timeout chains, without a cluster",
		Long: `Judge QueueWorkers and draw their timeout chains, without a cluster.

The rules are those of admission: HTTP call < job < reservation < grace.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl queueworker"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	command.SetHelpCommand(&cobra.Command{Hidden: true})
	command.AddCommand(newLint(), newTimeline(), newPreflight(), newFence(), newVersion())
	return command
}
