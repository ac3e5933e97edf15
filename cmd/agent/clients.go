// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/queueworker/operator/internal/agent/hook"
	"github.com/queueworker/operator/internal/agent/selfcopy"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func copyCommand(args []string) int {
	flags := flag.NewFlagSet("agent copy", flag.ContinueOnError)
	dir := flags.String("dir", workdir.Default, "the shared `directory`")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if err := selfcopy.Copy(workdir.Dir(*dir).Agent()); err != nil {
		fmt.Fprintln(os.Stderr, "agent copy:", err)
		return 1
	}
	return 0
}

// supervisorPatience is how long the hook waits for a supervisor that is just
// starting.
const supervisorPatience = time.Second

// drainCommand ends with 0 whenever nothing more can be gained by waiting: the
// kubelet then sends its signal, and a failed hook would only add an event.
func drainCommand(args []string) int {
	flags := flag.NewFlagSet("agent drain", flag.ContinueOnError)
	dir := flags.String("dir", workdir.Default, "the shared `directory`")
	budget := flags.Duration("timeout", 0, "how long to wait; 0 = the grace in "+timeoutchain.WireEnv)
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if *budget <= 0 {
		wire, err := timeoutchain.DecodeWire(os.Getenv(timeoutchain.WireEnv))
		if err != nil {
			return fail("drain", err)
		}
		*budget = time.Duration(wire.GraceSeconds) * time.Second
	}
	answer, err := hook.Ask(workdir.Dir(*dir).Socket(), hook.Drain, supervisorPatience, time.Now().Add(*budget))
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent drain:", err)
		return 0
	}
	fmt.Println(answer)
	return 0
}

func probeCommand(args []string) int {
	flags := flag.NewFlagSet("agent probe", flag.ContinueOnError)
	dir := flags.String("dir", workdir.Default, "the shared `directory`")
	limit := flags.Duration("timeout", 5*time.Second, "how long the supervisor may take to answer")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	answer, err := hook.Ask(workdir.Dir(*dir).Socket(), hook.Probe, 0, time.Now().Add(*limit))
	if err == nil && answer != hook.Healthy {
		err = errors.New(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent probe:", err)
		return 1
	}
	return 0
}
