// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/lint"
	"github.com/queueworker/operator/internal/timelineview"
)

type timelineFlags struct {
	output   string
	name     string
	graceCap graceCap
}

func newTimeline() *cobra.Command {
	flags := timelineFlags{}
	command := &cobra.Command{
		Use:   "timeline FILE | -",
		Short: "Draw the timeout chain of the QueueWorkers in a file",
		Long: `Draw the timeout chain of the QueueWorkers in a file.

One bar per link, all from 0 and to one scale: how long HTTP calls, a job, its
reservation, the drain and the grace can last, how far they are apart, and what
happens when each of them ends. Broken chains are drawn, too. A picture (svg)
shows one QueueWorker.

Exit code: 0 drawn, 2 an input that cannot be read.`,
		Example: `  kubectl queueworker timeline payments.yaml
  kubectl queueworker timeline payments.yaml -o svg > payments.svg
  kubectl get queueworkers -o yaml | kubectl queueworker timeline --name payments -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, files []string) error { return runTimeline(command, flags, files) },
	}
	command.Flags().StringVarP(&flags.output, "output", "o", "text", "output format: text or svg")
	command.Flags().StringVar(&flags.name, "name", "", "draw only the QueueWorker of this name, or namespace/name")
	flags.graceCap.register(command)
	return command
}

func runTimeline(command *cobra.Command, flags timelineFlags, files []string) error {
	if flags.output != "text" && flags.output != "svg" {
		return fmt.Errorf("--output is %q: expected text or svg", flags.output)
	}
	limit, err := flags.graceCap.seconds()
	if err != nil {
		return err
	}
	inputs, err := readAll(command.InOrStdin(), files)
	if err != nil {
		return err
	}
	faults := lint.Report{Inputs: inputs}.Faults()
	printFaults(command.ErrOrStderr(), faults)
	drawings := drawingsOf(inputs, flags.name, limit)
	if len(drawings) > 0 {
		if err := draw(command.OutOrStdout(), flags.output, drawings); err != nil {
			return err
		}
	}
	switch {
	case len(faults) > 0:
		return errUnreadable
	case len(drawings) == 0 && flags.name != "":
		return fmt.Errorf("%s holds no QueueWorker named %s", files[0], flags.name)
	case len(drawings) == 0:
		return fmt.Errorf("%s holds no QueueWorker", files[0])
	}
	return nil
}

func drawingsOf(inputs []lint.Input, name string, graceCap int64) []timelineview.Drawing {
	var drawings []timelineview.Drawing
	for i := range inputs {
		for j := range inputs[i].Objects {
			o := &inputs[i].Objects[j]
			if o.Worker() == nil || (name != "" && name != o.Name && name != o.Namespace+"/"+o.Name) {
				continue
			}
			drawings = append(drawings, timelineview.New(o.Worker(), chainsource.Options{GraceCap: graceCap}))
		}
	}
	return drawings
}

func draw(w io.Writer, output string, drawings []timelineview.Drawing) error {
	if output == "svg" {
		if len(drawings) > 1 {
			return fmt.Errorf("a picture shows one QueueWorker, found %d: name one with --name %s", len(drawings), drawings[0].Name)
		}
		return drawings[0].SVG(w)
	}
	for i, d := range drawings {
		if i > 0 {
			fmt.Fprint(w, "\n\n")
		}
		if err := d.Text(w, styleOf(w)); err != nil {
			return err
		}
	}
	return nil
}
