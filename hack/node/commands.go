// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/internal/instance"
	"github.com/queueworker/operator/hack/node/node"
)

// kind is what this command starts.
var kind = instance.Kind{
	What:       "node",
	Prefix:     "node.",
	Start:      "make node-up",
	Stop:       "make node-down",
	Stuck:      "kill it and repeat",
	Kubeconfig: node.Kubeconfig,
	CleanUp:    node.Clean,
}

func build(ctx context.Context, args []string) error {
	if err := instance.Parse(flag.NewFlagSet("build", flag.ContinueOnError), args); err != nil {
		return err
	}
	finder, err := binaries.FromEnv(os.Stderr)
	if err != nil {
		return err
	}
	paths, err := finder.Ensure(ctx, binaries.Node()...)
	if err != nil {
		return err
	}
	fmt.Println("All programs are in", filepath.Dir(paths[binaries.Kubectl]))
	return nil
}
