// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/internal/background"
	"github.com/queueworker/operator/hack/internal/instance"
	"github.com/queueworker/operator/hack/node/image"
	"github.com/queueworker/operator/hack/node/node"
)

type upFlags struct {
	name       string
	background bool
	detached   bool // set by ourselves: this is the process in the background
	images     bool
}

func up(ctx context.Context, args []string) error {
	f, err := parseUp(args)
	if err != nil {
		return err
	}
	dir, err := kind.Dir(f.name)
	if err != nil {
		return err
	}
	if f.detached {
		return f.upDetached(ctx, dir)
	}
	programs, err := f.prepare(ctx, dir)
	if err != nil {
		return err
	}
	start := time.Now()
	stopHint := "Stop it with: make node-down"
	var running *node.Node
	if f.background {
		err = background.Start(ctx, "node", append([]string{"up", "--detached"}, args...))
	} else {
		stopHint = "Stop it with Ctrl-C."
		ctx = background.EndWithParent(ctx) // for one that outlives its starter there is --background
		running, err = f.start(ctx, dir, os.Stderr)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(os.Stderr, "The node is Ready after %.1f s. %s\n  export KUBECONFIG=%s\n  export PATH=%s:$PATH\n",
		time.Since(start).Seconds(), stopHint, kind.Kubeconfig(dir), filepath.Dir(programs[binaries.Kubectl]))
	fmt.Println(kind.Kubeconfig(dir))
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
	flags.BoolVar(&f.images, "images", false, "load the images of the operator and of the tests")
	err := instance.Parse(flags, args)
	f.name = *name
	return f, err
}

// prepare finds out what is missing, and builds the programs, before anything is started.
func (f upFlags) prepare(ctx context.Context, dir string) (map[string]string, error) {
	var more []string
	if f.images {
		more = image.Missing()
	}
	if err := node.Requirements(more...); err != nil {
		return nil, err
	}
	if err := kind.CheckFree(dir); err != nil {
		return nil, err
	}
	finder, err := binaries.FromEnv(os.Stderr)
	if err != nil {
		return nil, err
	}
	return finder.Ensure(ctx, binaries.Node()...)
}

func (f upFlags) start(ctx context.Context, dir string, log io.Writer) (*node.Node, error) {
	running, err := node.Start(ctx, node.Options{Dir: dir, Log: log})
	if err != nil {
		return nil, err
	}
	if f.images {
		if err := load(ctx, running, log); err != nil {
			return nil, errors.Join(err, running.Stop())
		}
	}
	return running, nil
}

func load(ctx context.Context, running *node.Node, log io.Writer) (err error) {
	builder, err := image.NewBuilder(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builder.Close()) }()
	images, err := builder.All(ctx)
	if err != nil {
		return err
	}
	return running.Load(ctx, images...)
}

func (f upFlags) upDetached(ctx context.Context, dir string) error {
	tell := background.Telling()
	running, err := f.start(ctx, dir, io.Discard)
	tell(err)
	if err != nil {
		return err
	}
	return instance.Wait(ctx, running)
}
