// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/queueworker/operator/internal/agent/inspect"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// What becomes of an image that contradicts the declaration.
const (
	enforce = "Enforce" // the worker does not start
	warn    = "Warn"    // it is told, and the worker starts
)

// Exit codes of the preflight besides 0 and exitUsage.
const (
	exitRefused  = 1  // only a change of image or declaration helps
	exitUnjudged = 75 // it could not be finished, another try may
)

type preflightFlags struct {
	dir, policy, log string
	limit            time.Duration
	command          []string // the worker's
}

func parsePreflight(args []string) (preflightFlags, error) {
	var f preflightFlags
	flags := flag.NewFlagSet("agent preflight", flag.ContinueOnError)
	flags.StringVar(&f.dir, "dir", workdir.Default, "the shared `directory`")
	flags.StringVar(&f.policy, "policy", enforce, "Enforce, or Warn to end with 0 whatever is found")
	flags.StringVar(&f.log, "termination-log", termination.DefaultPath, "the `file` in which the kubelet looks for the termination message")
	flags.DurationVar(&f.limit, "timeout", inspect.DefaultLimit, "how long each PHP process may take")
	err := flags.Parse(args)
	f.command = flags.Args()
	return f, err
}

func preflightCommand(args []string) int {
	f, err := parsePreflight(args)
	if err != nil {
		return exitUsage
	}
	verdict, err := f.judge()
	if err != nil {
		return fail("preflight", err)
	}
	verdict.Print(os.Stderr)
	if err := termination.WriteText(f.log, []byte(verdict.Brief(termination.MaxBytes))); err != nil {
		fmt.Fprintln(os.Stderr, "agent preflight:", err)
	}
	return f.exitCode(verdict.Outcome)
}

func (f preflightFlags) exitCode(outcome preflight.Outcome) int {
	switch {
	case outcome == preflight.Passed || f.policy == warn:
		return 0
	case outcome == preflight.Unjudged:
		return exitUnjudged
	default:
		return exitRefused
	}
}

// judge inspects the image for the worker command that is given.
func (f preflightFlags) judge() (preflight.Verdict, error) {
	if f.policy != enforce && f.policy != warn {
		return preflight.Verdict{}, fmt.Errorf("--policy is %q, known are %s and %s", f.policy, enforce, warn)
	}
	if f.limit <= 0 {
		return preflight.Verdict{}, fmt.Errorf("--timeout is %s: PHP would have no time", f.limit)
	}
	wire, err := timeoutchain.DecodeWire(os.Getenv(timeoutchain.WireEnv))
	if err != nil {
		return preflight.Verdict{}, err
	}
	declared, err := preflight.DecodeDeclared(os.Getenv(preflight.DeclaredEnv))
	if err != nil {
		return preflight.Verdict{}, err
	}
	memory, err := memoryLimit(os.Getenv(preflight.MemoryLimitEnv))
	if err != nil {
		return preflight.Verdict{}, err
	}
	if wire.Runtime == timeoutchain.Generic {
		return preflight.Verdict{Outcome: preflight.Passed}, nil // nothing is known about such a worker
	}
	plan, err := inspect.For(wire.Runtime, declared, f.command)
	if err != nil {
		return preflight.Verdict{}, err
	}
	plan.Scripts, plan.Env, plan.Limit = filepath.Join(workdir.Dir(f.dir).PHP(), "preflight"), os.Environ(), f.limit
	if err := inspect.Install(plan.Scripts); err != nil {
		return preflight.Verdict{}, err
	}
	return preflight.Judge(wire, declared, memory, inspect.Inspect(plan)), nil
}

func memoryLimit(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	bytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil || bytes < 0 {
		return 0, fmt.Errorf("%s is %q, wanted a number of bytes", preflight.MemoryLimitEnv, text)
	}
	return bytes, nil
}
