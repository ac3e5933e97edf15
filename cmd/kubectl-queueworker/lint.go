// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/queueworker/operator/internal/lint"
)

type lintFlags struct {
	output    string
	strict    bool
	graceCap  graceCap
	namespace string
}

func newLint() *cobra.Command {
	flags := lintFlags{}
	command := &cobra.Command{
		Use:   "lint FILE... | -",
		Short: "Judge the QueueWorkers in YAML or JSON files as admission would",
		Long: `Judge the QueueWorkers in YAML or JSON files as admission would.

A file may hold many documents and lists; objects of other kinds are passed
over. - reads the standard input. Workers that poll the same queue are judged
together across all files. Templates must be rendered first.

Exit code: 0 nothing blocks, 1 findings that block, 2 an input that cannot be
read (the other inputs are still judged).`,
		Example: `  kubectl queueworker lint payments.yaml mails.yaml
  helm template . | kubectl queueworker lint --strict -
  kubectl kustomize overlays/production | kubectl queueworker lint -o json -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error { return runLint(command, flags, files) },
	}
	flags.registerReport(command)
	flags.graceCap.register(command)
	return command
}

// registerReport registers the flags of every command that reports findings.
func (f *lintFlags) registerReport(command *cobra.Command) {
	command.Flags().StringVarP(&f.output, "output", "o", "text", "output format: text or json")
	command.Flags().BoolVar(&f.strict, "strict", false, "exit 1 for warnings, too")
	command.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "namespace of objects that name none")
}

func (f lintFlags) validate() error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output is %q: expected text or json", f.output)
	}
	return nil
}

func (f lintFlags) print(command *cobra.Command, report lint.Report) error {
	printFaults(command.ErrOrStderr(), report.Faults())
	write := func() error { return report.Text(command.OutOrStdout(), styleOf(command.OutOrStdout())) }
	if f.output == "json" {
		write = func() error { return report.JSON(command.OutOrStdout()) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("the report cannot be written: %w", err)
	}
	return nil
}

func runLint(command *cobra.Command, flags lintFlags, files []string) error {
	if err := flags.validate(); err != nil {
		return err
	}
	limit, err := flags.graceCap.seconds()
	if err != nil {
		return err
	}
	inputs, err := readAll(command.InOrStdin(), files)
	if err != nil {
		return err
	}
	report := lint.Judge(inputs, lint.Options{GraceCap: limit, Namespace: flags.namespace})
	if err := flags.print(command, report); err != nil {
		return err
	}
	return verdict(report.Counts(), flags.strict)
}

func verdict(c lint.Counts, strict bool) error {
	switch {
	case c.Faults > 0:
		return errUnreadable
	case c.Refused > 0, strict && c.Warnings > 0:
		return errFindings
	default:
		return nil
	}
}
