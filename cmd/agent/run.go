// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/queueworker/operator/internal/agent/entry"
	"github.com/queueworker/operator/internal/agent/supervise"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// How much is known about the worker.
const (
	full        = "Full"        // our entry tells what it does
	signalsOnly = "SignalsOnly" // nothing: it is only signalled
)

// metricsEnv is the address at which metrics are served; unset = nowhere. The
// entry reads it too, and tells nothing where nobody asks.
const metricsEnv = "QUEUEWORKER_METRICS"

// runFlags are the flags of run, and what follows them.
type runFlags struct {
	dir, supervision, beforeStop, log string
	command                           []string
}

func parseRun(args []string) (runFlags, error) {
	var given runFlags
	flags := flag.NewFlagSet("agent run", flag.ContinueOnError)
	flags.StringVar(&given.dir, "dir", workdir.Default, "the shared `directory`")
	flags.StringVar(&given.supervision, "supervision", full, "Full, or SignalsOnly to start the command as it is and only signal it")
	flags.StringVar(&given.beforeStop, "before-stop", "", "a command to run before the worker is asked to stop, as a `JSON` list of words")
	flags.StringVar(&given.log, "termination-log", termination.DefaultPath, "the `file` in which the kubelet looks for the termination message")
	err := flags.Parse(args)
	given.command = flags.Args()
	return given, err
}

func runCommand(args []string) int {
	given, err := parseRun(args)
	if err != nil {
		return exitUsage
	}
	config := supervise.Config{
		Dir: workdir.Dir(given.dir), Command: given.command, TerminationLog: given.log, Log: os.Stderr,
	}
	if err := complete(&config, given.supervision, given.beforeStop); err != nil {
		return fail("run", err)
	}
	return supervise.Run(config)
}

// complete fills in what follows from the flags and the environment.
func complete(config *supervise.Config, supervision, beforeStop string) error {
	var err error
	if len(config.Command) == 0 {
		return errors.New(`no command: give the worker's after "--"`)
	}
	if config.Wire, err = timeoutchain.DecodeWire(os.Getenv(timeoutchain.WireEnv)); err != nil {
		return err
	}
	if config.BeforeStop, err = words(beforeStop, config.Wire); err != nil {
		return err
	}
	config.Env, config.Metrics = os.Environ(), os.Getenv(metricsEnv)
	switch supervision {
	case full:
		return track(config)
	case signalsOnly:
		return nil
	default:
		return fmt.Errorf("--supervision is %q, known are %s and %s", supervision, full, signalsOnly)
	}
}

// track brings our PHP into the worker, where the worker is one that can take
// it.
func track(config *supervise.Config) error {
	if config.Wire.Runtime == timeoutchain.Generic {
		return nil
	}
	command, env, err := entry.Wrap(config.Dir, config.Wire.Runtime, config.Command, os.Getenv)
	if err != nil {
		return err
	}
	config.Command, config.Env = command, override(config.Env, env)
	config.Tracked = true
	config.Master = config.Wire.Runtime == timeoutchain.Horizon
	return entry.Install(config.Dir, entry.Files())
}

// override replaces variables: with two of one name, C programs see the first.
func override(env, with []string) []string {
	for _, variable := range with {
		name, _, _ := strings.Cut(variable, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	}
	return append(env, with...)
}

// words reads the beforeStop command. Without seconds of its own it would take
// the job's, so it must have some.
func words(beforeStop string, wire timeoutchain.Wire) ([]string, error) {
	if beforeStop == "" {
		return nil, nil
	}
	var command []string
	if err := json.Unmarshal([]byte(beforeStop), &command); err != nil {
		return nil, fmt.Errorf(`--before-stop is %s, wanted a JSON list of words such as ["php","artisan","down"]: %w`, beforeStop, err)
	}
	if len(command) == 0 || command[0] == "" {
		return nil, errors.New("--before-stop names no program")
	}
	if wire.BeforeStopSeconds == 0 {
		return nil, fmt.Errorf("--before-stop is given, but beforeStop in %s is 0: it would have no time", timeoutchain.WireEnv)
	}
	return command, nil
}
