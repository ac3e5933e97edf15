// SPDX-License-Identifier: Apache-2.0

// The command demo shows the operator at work on a real control plane, prints
// every command that it runs, checks what it says, and leaves nothing behind:
// go run ./hack/demo
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/queueworker/operator/hack/controlplane/cluster"
)

const (
	// drainTime is how long a simulated worker takes to finish its job.
	drainTime = 8 * time.Second
	// limit ends a demo that hangs. The programs of the control plane are built
	// before it starts to count.
	limit = 10 * time.Minute
)

func main() {
	// The kernel ends the operator when the thread that started it ends. This
	// keeps it the main thread, which ends last.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted:
		fmt.Println("\nInterrupted. Everything is cleaned up.")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	start := time.Now()
	d, err := newDemo(ctx)
	if err != nil {
		return err
	}
	d.title("Start a control plane: etcd, kube-apiserver, kube-controller-manager, and a simulated node")
	d.say("Workers are simulated: each takes %s to finish its job when it is asked to stop.", drainTime)
	if d.cluster, err = cluster.Start(ctx, cluster.Options{Nodes: 1, TerminatingFor: drainTime, Log: os.Stdout}); err != nil {
		return err
	}
	defer func() {
		d.say("")
		d.say("Cleaning up.")
		err = errors.Join(err, d.stopOperator(), d.cluster.Stop())
	}()
	var cancel context.CancelFunc
	d.ctx, cancel = context.WithTimeout(ctx, limit)
	defer cancel()
	for _, step := range []func() error{
		d.install, d.startOperator, d.applyGood, d.refuseBroken, d.refuseShared,
		d.operatorDown, d.operatorBack, d.rollOut, d.deleteAll,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	d.say("")
	d.say("%d claims checked, all true, in %s.", d.checked, time.Since(start).Round(time.Second))
	return nil
}
