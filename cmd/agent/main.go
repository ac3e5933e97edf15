// SPDX-License-Identifier: Apache-2.0

//go:build linux

// The agent runs beside, around and in front of one queue worker in its pod. It
// is copied into the application's own image, so it depends on nothing there.
package main

import (
	"fmt"
	"os"
	"runtime"
)

// version is set by the linker.
var version = "dev"

// exitUsage is the code for a command line or an environment that makes no
// sense.
const exitUsage = 64

const usage = `usage: agent COMMAND [flags]

  copy      write this program to the shared directory
  run       start the worker command that follows "--" and drain it when asked to
  preflight compare the application in this image with the declared chain
  drain     ask run to drain and wait until the worker is gone (the preStop hook)
  probe     say whether the worker is alive (the liveness probe)
  version   print the version

"agent COMMAND -h" lists a command's flags.
`

func main() {
	// One busy thread is enough, and others would count as processes.
	runtime.GOMAXPROCS(1)
	os.Exit(dispatch(os.Args[1:]))
}

func dispatch(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	switch command, rest := args[0], args[1:]; command {
	case "copy":
		return copyCommand(rest)
	case "run":
		return runCommand(rest)
	case "preflight":
		return preflightCommand(rest)
	case "drain":
		return drainCommand(rest)
	case "probe":
		return probeCommand(rest)
	case "version":
		fmt.Println(version)
		return 0
	default:
		fmt.Fprintf(os.Stderr, "agent: unknown command %q\n\n%s", command, usage)
		return exitUsage
	}
}

// fail reports why a command line cannot be followed.
func fail(command string, err error) int {
	fmt.Fprintf(os.Stderr, "agent %s: %v\n", command, err)
	return exitUsage
}
