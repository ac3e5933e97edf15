// SPDX-License-Identifier: Apache-2.0

// The command rollout measures how fast and at what cost the manager brings
// QueueWorkers from their creation to settled, against a bare client that makes
// the same writes and waits on the same control plane. It fails when a target is
// missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/queueworker/operator/test/bench/measure"
)

// options are the profile of a run.
type options struct {
	objects, pairs int
	clients, floor int
	settled        time.Duration
	growth         []int
}

func main() {
	o := options{growth: []int{100, 5000}}
	flag.IntVar(&o.objects, "objects", 1000, "QueueWorkers of one run")
	flag.IntVar(&o.pairs, "pairs", 3, "runs of the manager and of the bare client, in turns")
	flag.IntVar(&o.clients, "clients", 10, "clients that create QueueWorkers at the same time")
	flag.IntVar(&o.floor, "floor-workers", 4, "workers of the bare client; the manager's default is 4 reconciles at a time")
	flag.DurationVar(&o.settled, "settled", 10*time.Minute, "how long nothing may be written once all is settled")
	flag.Func("growth", "further `sizes`, comma-separated, at which the manager's cost is measured; default 100,5000", func(text string) error {
		o.growth = nil
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
			size, err := strconv.Atoi(word)
			if err != nil || size < 1 {
				return fmt.Errorf("%q is no size", word)
			}
			o.growth = append(o.growth, size)
		}
		return nil
	})
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // of an ended watch, for one; what matters comes as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-rollout:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.objects < 1 || o.pairs < 1 || o.clients < 1 || o.floor < 1 {
		return errors.New("-objects, -pairs, -clients and -floor-workers must be at least 1")
	}
	fmt.Println("Machine:", measure.Machine())
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	verdicts := &measure.Verdicts{Out: os.Stdout}
	for _, step := range []struct {
		run   func(context.Context) error
		print func()
	}{
		{b.warmUp, func() {}},
		{b.alternate, b.printRates},
		{b.settle, b.printQuiet},
		{b.grow, b.printGrowth},
	} {
		if err := step.run(ctx); err != nil {
			return err
		}
		step.print()
	}
	fmt.Println("Machine:", measure.Machine())
	b.judge(verdicts)
	return verdicts.Err()
}
