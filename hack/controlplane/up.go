// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/internal/background"
	"github.com/queueworker/operator/hack/internal/instance"
)

type upFlags struct {
	name       string
	background bool
	detached   bool // set by ourselves: this is the process in the background
	options    cluster.Options
}

func up(ctx context.Context, args []string) error {
	f, err := parseUp(args)
	if err != nil {
		return err
	}
	if f.options.Dir, err = kind.Dir(f.name); err != nil {
		return err
	}
	if f.detached {
		return upDetached(ctx, f.options)
	}
	if err := kind.CheckFree(f.options.Dir); err != nil {
		return err
	}
	finder, err := binaries.FromEnv(os.Stderr)
	if err != nil {
		return err
	}
	programs, err := finder.Ensure(ctx, binaries.All()...)
	if err != nil {
		return err
	}
	if !f.background {
		ctx = background.EndWithParent(ctx) // for one that outlives its starter there is --background
	}
	start := time.Now()
	stopHint := "Stop it with Ctrl-C."
	var running *cluster.Cluster
	if f.background {
		stopHint = "Stop it with: make controlplane-down"
		err = background.Start(ctx, "control plane", append([]string{"up", "--detached"}, args...))
	} else {
		running, err = cluster.Start(ctx, f.options)
	}
	if err != nil {
		return err
	}
	announce(f.options, programs, time.Since(start), stopHint)
	if f.background {
		return nil
	}
	return instance.Wait(ctx, running)
}

func parseUp(args []string) (upFlags, error) {
	var f upFlags
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	name := kind.NameFlag(flags)
	flags.BoolVar(&f.background, "background", false, "return once it is ready and leave it running")
	flags.BoolVar(&f.detached, "detached", false, "for internal use")
	flags.IntVar(&f.options.Nodes, "nodes", 1, "number of simulated nodes; 0: pods stay Pending")
	flags.DurationVar(&f.options.TerminatingFor, "terminating-for", 0, "how long a deleted pod stays Terminating")
	flags.IntVar(&f.options.Port, "port", 0, "port of the API server; 0 picks a free one")
	err := instance.Parse(flags, args)
	f.name = *name
	return f, err
}

func announce(options cluster.Options, programs map[string]string, took time.Duration, stopHint string) {
	kubeconfig := kind.Kubeconfig(options.Dir)
	_, _ = fmt.Fprintf(os.Stderr, "The control plane is up after %.1f s, with %d simulated node(s). %s\n  export KUBECONFIG=%s\n  export PATH=%s:$PATH\n",
		took.Seconds(), options.Nodes, stopHint, kubeconfig, filepath.Dir(programs[binaries.Kubectl]))
	fmt.Println(kubeconfig)
}

func upDetached(ctx context.Context, options cluster.Options) error {
	tell := background.Telling()
	options.Log = io.Discard // the programs are there already
	running, err := cluster.Start(ctx, options)
	tell(err)
	if err != nil {
		return err
	}
	return instance.Wait(ctx, running)
}
