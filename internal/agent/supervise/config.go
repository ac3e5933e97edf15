// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package supervise runs a worker command as the first process of a container:
// it starts and restarts it, watches its jobs, drains it when it is told to stop
// and says how it all ended. It reacts to one event at a time; what it decides
// comes from the pure packages beside it.
package supervise

import (
	"io"
	"time"

	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const (
	idlePoll  = time.Second           // how often the watchdog looks
	drainPoll = 50 * time.Millisecond // how soon the end of a job is noticed in a drain

	// linger is how long the supervisor outlives its worker after the hook
	// asked for the drain: leaving before the kubelet's own signal would fail
	// the hook that runs in the same container.
	linger = 10 * time.Second

	// partingLimit is how long after its last worker a master may end and still be
	// judged by what that one said. Horizon's supervisor and its master each look
	// once a second whether what they started is gone: two seconds, and the rest
	// for the ends of two PHP processes. A later end has another cause.
	partingLimit = 5 * time.Second

	// leftoverLimit is how long processes may take to die of SIGKILL.
	leftoverLimit = 2 * time.Second
)

// Config is what `agent run` was told.
type Config struct {
	Dir     workdir.Dir
	Command []string // the worker's, our PHP already in it
	Env     []string // the worker's
	Wire    timeoutchain.Wire

	Tracked bool // workers keep state files and obey the gate
	Master  bool // the command starts and stops workers of its own, as Horizon does

	BeforeStop     []string // run before the worker is asked to stop; empty = nothing
	Metrics        string   // the address to serve metrics at; empty = none
	TerminationLog string   // where the kubelet looks for the message
	Log            io.Writer

	// BeforeSignal runs between reading a worker's state and signalling it.
	// Tests stall there, as a throttled container does. May be nil.
	BeforeSignal func()
}
