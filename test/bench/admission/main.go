// SPDX-License-Identifier: Apache-2.0

// The command admission measures what admission costs: the same QueueWorkers
// are created with the webhook and the CRD's rules, with the rules only, and
// with neither, in turns against one API server. It fails when a target is
// missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/test/bench/measure"
)

// options are the profile of a run.
type options struct{ creates, block, clients int }

func main() {
	var o options
	flag.IntVar(&o.creates, "creates", 3000, "creates per arm, at least")
	flag.IntVar(&o.block, "block", 250, "creates in a row before the next arm's turn")
	flag.IntVar(&o.clients, "clients", 10, "clients that create at the same time")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // of an ended watch, for one; what matters comes as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-admission:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.creates < 1 || o.block < 1 || o.clients < 1 {
		return errors.New("-creates, -block and -clients must be at least 1")
	}
	fmt.Println("Machine:", measure.Machine())
	verdicts := &measure.Verdicts{Out: os.Stdout}
	validation := benchmarkValidation()
	lab, err := measure.NewLab(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Cluster.Stop()) }()
	manager, err := startStandby(ctx, lab)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Stop()) }()

	b, err := newBench(ctx, lab, o)
	if err != nil {
		return err
	}
	if err := b.run(ctx); err != nil {
		return err
	}
	fmt.Println("Machine:", measure.Machine())
	b.print()
	printValidation(validation)
	b.judge(verdicts)
	judgeValidation(verdicts, validation)
	return verdicts.Err()
}
