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
)

// kind is what this command starts.
var kind = instance.Kind{
	What:       "control plane",
	Start:      "controlplane up --background",
	Stop:       "make controlplane-down",
	Stuck:      "kill it; its parts end with it",
	Kubeconfig: func(dir string) string { return filepath.Join(dir, "kubeconfig") },
	CleanUp:    os.RemoveAll,
}

func build(ctx context.Context, args []string) error {
	paths, err := ensureAll(ctx, "build", args)
	if err != nil {
		return err
	}
	fmt.Println("All programs are in", filepath.Dir(paths[binaries.Kubectl]))
	return nil
}

func bin(ctx context.Context, args []string) error {
	paths, err := ensureAll(ctx, "bin", args)
	if err != nil {
		return err
	}
	fmt.Println(filepath.Dir(paths[binaries.Kubectl]))
	return nil
}

func ensureAll(ctx context.Context, command string, args []string) (map[string]string, error) {
	if err := instance.Parse(flag.NewFlagSet(command, flag.ContinueOnError), args); err != nil {
		return nil, err
	}
	finder, err := binaries.FromEnv(os.Stderr)
	if err != nil {
		return nil, err
	}
	return finder.Ensure(ctx, binaries.All()...)
}
