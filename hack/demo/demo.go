// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
)

// pause is the time between two looks at something that is awaited.
const pause = 300 * time.Millisecond

// demo runs commands, shows them, and checks what is said about them.
type demo struct {
	ctx     context.Context
	root    string // of the repository
	cluster *cluster.Cluster
	manager *operator.Manager // that runs now
	titles  int
	checked int
}

func newDemo(ctx context.Context) (*demo, error) {
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the repository: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	if _, err := os.Stat(filepath.Join(root, "config", "samples")); err != nil {
		return nil, errors.New("run this from the repository: make demo")
	}
	return &demo{ctx: ctx, root: root}, nil
}

// title begins a step.
func (d *demo) title(text string) {
	d.titles++
	fmt.Printf("\n=== %d. %s\n\n", d.titles, text)
}

// say prints a line.
func (d *demo) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// check is a claim: it is printed when it is true and ends the demo when not.
func (d *demo) check(holds bool, claim string) error {
	if !holds {
		return fmt.Errorf("this is not true: %s", claim)
	}
	d.checked++
	d.say("  [true] %s", claim)
	return nil
}

// show prints a command, runs it in the repository and prints its output. It
// fails if the command does.
func (d *demo) show(command string) (string, error) {
	output, err := d.showAny(command)
	if err != nil {
		return output, fmt.Errorf("%s: %w", command, err)
	}
	return output, nil
}

// showRefused is show for a command that must fail.
func (d *demo) showRefused(command string) (string, error) {
	output, err := d.showAny(command)
	var exit *exec.ExitError
	if err == nil {
		return output, fmt.Errorf("%s: was expected to be refused", command)
	}
	if d.ctx.Err() != nil || !errors.As(err, &exit) {
		return output, fmt.Errorf("%s: %w", command, err)
	}
	return output, nil
}

func (d *demo) showAny(command string) (string, error) {
	d.say("$ %s", command)
	output, err := d.quiet(command)
	fmt.Print(output)
	if output != "" && !strings.HasSuffix(output, "\n") {
		fmt.Println()
	}
	return output, err
}

// quiet runs a command as it would be typed and returns what it prints.
func (d *demo) quiet(command string) (string, error) {
	cmd := exec.CommandContext(d.ctx, "/bin/sh", "-c", command)
	cmd.Dir = d.root
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+d.cluster.KubeconfigPath(),
		"PATH="+filepath.Dir(d.cluster.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the shell and what it runs, to end both
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

// until waits for something to become true.
func (d *demo) until(what string, timeout time.Duration, holds func() (bool, error)) error {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		done, err := holds()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		select {
		case <-d.ctx.Done():
			return context.Cause(d.ctx)
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("this did not become true within %s: %s", timeout, what)
}
