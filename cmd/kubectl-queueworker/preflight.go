// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/inspect"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/lint"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

type preflightFlags struct {
	lintFlags
	app     string
	php     string
	name    string
	timeout time.Duration
}

func newPreflight() *cobra.Command {
	flags := preflightFlags{}
	command := &cobra.Command{
		Use:   "preflight FILE | -",
		Short: "Compare an application with the QueueWorkers in a file, as a pod would before its worker starts",
		Long: `Compare an application with the QueueWorkers in a file, as a pod would before
its worker starts.

The application is started by a PHP of this machine, with the environment of
this process and over it the values of the worker's env, $(NAME) expanded;
nothing is written. What cannot be seen here is not verified and does not block:
a server that is not reached, or a variable that comes from a ConfigMap or a
Secret and that this process does not have. The file itself is judged by lint.
preflight.policy is for the cluster: here an error blocks whatever it says.

Exit code: 0 nothing blocks, 1 findings that block, 2 a file that cannot be read
or an application that could not be judged.`,
		Example: `  kubectl queueworker preflight --app shop payments.yaml
  helm template . | kubectl queueworker preflight --name payments -o json -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, files []string) error { return runPreflight(command, flags, files) },
	}
	command.Flags().StringVar(&flags.app, "app", ".", "folder of the application, the worker's working directory")
	command.Flags().StringVar(&flags.php, "php", "", "the PHP to use instead of worker.php")
	command.Flags().StringVar(&flags.name, "name", "", "judge only the QueueWorker of this name, or namespace/name")
	command.Flags().DurationVar(&flags.timeout, "timeout", inspect.DefaultLimit, "how long each PHP process may take")
	flags.registerReport(command)
	return command
}

func runPreflight(command *cobra.Command, flags preflightFlags, files []string) error {
	if err := flags.validate(); err != nil {
		return err
	}
	if info, err := os.Stat(flags.app); err != nil || !info.IsDir() {
		return fmt.Errorf("--app is %q: there is no such folder", flags.app)
	}
	inputs, err := readAll(command.InOrStdin(), files)
	if err != nil {
		return err
	}
	inputs = lint.Named(inputs, flags.name, flags.namespace)
	report := lint.Report{Inputs: inputs}
	if c := report.Counts(); c.Workers == 0 && c.Faults == 0 {
		return fmt.Errorf("%s holds no QueueWorker%s", files[0], named(flags.name))
	}
	unjudged, err := flags.inspectAll(inputs)
	if err != nil {
		return err
	}
	if err := flags.print(command, report); err != nil {
		return err
	}
	if unjudged {
		return errUnreadable
	}
	return verdict(report.Counts(), flags.strict)
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " named " + name
}

// inspectAll adds to each QueueWorker what the application says to it.
func (f preflightFlags) inspectAll(inputs []lint.Input) (unjudged bool, err error) {
	scripts, err := os.MkdirTemp("", "queueworker-preflight")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scripts)
	if err := inspect.Install(scripts); err != nil {
		return false, err
	}
	for i := range inputs {
		for j := range inputs[i].Objects {
			object := &inputs[i].Objects[j]
			if object.Worker() == nil || object.Worker().Spec.EffectiveRuntime() == v1alpha1.RuntimeGeneric {
				continue
			}
			judged, err := f.judge(object.Worker(), scripts)
			if err != nil {
				return false, err
			}
			unjudged = unjudged || judged.Outcome == preflight.Unjudged
			add(object, judged)
		}
	}
	return unjudged, nil
}

func (f preflightFlags) judge(qw *v1alpha1.QueueWorker, scripts string) (preflight.Verdict, error) {
	chain, declared := chainsource.FromQueueWorker(qw, chainsource.Options{}), chainsource.Declared(qw)
	env := chainsource.WorkerEnvironment(qw, os.Environ())
	plan, err := inspect.For(chain.Runtime, declared, env.Expand(f.command(qw)))
	if err != nil {
		return preflight.Verdict{}, err
	}
	plan.Scripts, plan.Dir, plan.Env, plan.Limit = scripts, f.app, append(os.Environ(), env.Set...), f.timeout
	facts := inspect.Inspect(plan)
	facts.UnseenEnv = env.Unseen
	return preflight.Judge(chain.ToWire(), declared, chain.Pod.MemoryLimitBytes.N(), facts), nil
}

// command is as much of the worker's command as decides what it reads.
func (f preflightFlags) command(qw *v1alpha1.QueueWorker) []string {
	worker, name := qw.Spec.EffectiveWorker(), "queue:work"
	if qw.Spec.EffectiveRuntime() == v1alpha1.RuntimeHorizon {
		name = "horizon"
	}
	if f.php != "" {
		worker.PHP = f.php
	}
	return append([]string{worker.PHP, worker.Artisan, name}, worker.ExtraArgs...)
}

func add(object *lint.Object, judged preflight.Verdict) {
	for _, finding := range judged.Findings {
		link := finding.Link
		if link == "" {
			link = timeoutchain.LinkTemplate
		}
		object.Add(lint.Finding{
			Rule: finding.Rule, Severity: finding.Severity, Field: chainsource.Path(object.Worker(), link).String(),
			Message: finding.Text(), Fix: finding.Fix,
		})
	}
}
