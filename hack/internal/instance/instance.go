// SPDX-License-Identifier: Apache-2.0

// Package instance is the part that two commands share: each starts something under a name, which keeps everything in one folder
// while it runs and is found there by the next command.
package instance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// stopTimeout is how long [Kind.Down] waits. Stopping takes a second or two.
const stopTimeout = time.Minute

// Kind is what a command starts.
type Kind struct {
	What   string // such as "control plane"
	Prefix string // of the names of folders, so that two kinds can have one name
	Start  string // the command that starts one
	Stop   string // the command that stops it
	Stuck  string // what to do about one that does not stop
	// Kubeconfig is the path of the kubeconfig of the one in a folder.
	Kubeconfig func(dir string) string
	// CleanUp removes what is left in the folder of one that does not run.
	CleanUp func(dir string) error
}

// Commands are the commands of a program, by name.
type Commands map[string]func(ctx context.Context, args []string) error

// Main runs the command that the arguments name, until it ends or a signal ends it, and then ends the process.
func Main(program, usage string, commands Commands) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], usage, commands)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, program+":", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, usage string, commands Commands) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage)
		return nil
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
	return command(ctx, args[1:])
}

// Parse parses the arguments of a command that takes flags only.
func Parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes flags only, not %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// NameFlag adds the flag --name.
func (k Kind) NameFlag(flags *flag.FlagSet) *string {
	return flags.String("name", "default", "name of the "+k.What+", for more than one at a time")
}

// Dir is where the one with this name keeps everything while it runs.
func (k Kind) Dir(name string) (string, error) {
	if name == "" || filepath.Base(name) != name || name == "." || name == ".." {
		return "", fmt.Errorf("--name %q: use letters, digits and dashes", name)
	}
	finder, err := binaries.FromEnv(os.Stderr)
	if err != nil {
		return "", err
	}
	return filepath.Join(finder.Cache, "run", k.Prefix+name), nil
}

// Down stops the one that is named and waits until nothing of it is left, or cleans up after one that crashed.
func (k Kind) Down(_ context.Context, args []string) error {
	dir, pid, err := k.named("down", args)
	if err != nil {
		return err
	}
	if pid == 0 {
		return k.cleanUp(dir)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping process %d: %w", pid, err)
	}
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			fmt.Printf("The %s is stopped; nothing of it is left.\n", k.What)
			return nil
		}
	}
	return fmt.Errorf("process %d is still stopping after %s: look at it, then %s", pid, stopTimeout, k.Stuck)
}

func (k Kind) cleanUp(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		fmt.Printf("No %s is running.\n", k.What)
		return nil
	}
	if err := k.CleanUp(dir); err != nil {
		return err
	}
	fmt.Printf("No %s is running. What one that crashed had left is removed.\n", k.What)
	return nil
}

// CheckFree cleans up after one that died in this folder, and refuses when one lives.
func (k Kind) CheckFree(dir string) error {
	pid, err := cluster.Owner(dir)
	if err != nil {
		return err
	}
	if pid != 0 {
		return fmt.Errorf("a %s named %s is running already (process %d): use it, stop it with %s, or choose another --name",
			k.What, strings.TrimPrefix(filepath.Base(dir), k.Prefix), pid, k.Stop)
	}
	return k.CleanUp(dir)
}

// Status says whether the one that is named runs, and where its kubeconfig is.
func (k Kind) Status(_ context.Context, args []string) error {
	dir, pid, err := k.named("status", args)
	if err != nil {
		return err
	}
	if pid == 0 {
		return fmt.Errorf("no %s is running: start one with %s", k.What, k.Start)
	}
	fmt.Printf("running, process %d\nexport KUBECONFIG=%s\n", pid, k.Kubeconfig(dir))
	return nil
}

// named is the folder and the process of the one that the arguments name; process 0 does not run.
func (k Kind) named(command string, args []string) (dir string, pid int, err error) {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	name := k.NameFlag(flags)
	if err := Parse(flags, args); err != nil {
		return "", 0, err
	}
	if dir, err = k.Dir(*name); err != nil {
		return "", 0, err
	}
	pid, err = cluster.Owner(dir)
	return dir, pid, err
}

// Running is what a command has started.
type Running interface {
	Failed() <-chan error
	Stop() error
}

// Wait returns after a signal, or when a part of it has died; both ways nothing is left.
func Wait(ctx context.Context, running Running) error {
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-running.Failed():
	}
	return errors.Join(failure, running.Stop())
}
