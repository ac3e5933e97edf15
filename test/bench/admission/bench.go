// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/config/samples"
	"github.com/queueworker/operator/test/bench/measure"
)

const (
	namespace = "bench"
	// warmUp is how many creates of each turn, per client, are not counted: the
	// API server compiles the rules and opens connections anew.
	warmUp = 5
)

// bench measures the arms in turns.
type bench struct {
	lab     *measure.Lab
	options options
	clients []client.Client
	object  *v1alpha1.QueueWorker // what is created
	results []result              // of each arm

	prober        client.Client
	warnings      *atomic.Int32
	risky, broken *v1alpha1.QueueWorker
}

// result is what was measured of one arm.
type result struct {
	latencies []time.Duration
	blocks    []time.Duration // the median of each turn
	busy      time.Duration   // wall time of all turns
}

func newBench(ctx context.Context, lab *measure.Lab, o options) (*bench, error) {
	b := &bench{lab: lab, options: o, results: make([]result, len(arms)), warnings: &atomic.Int32{}}
	var errs [3]error
	b.object, errs[0] = sample("payments")
	b.risky, errs[1] = sample("warned/http-timeout-missing")
	b.broken, errs[2] = sample("invalid/job-not-below-retry-after")
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for range o.clients {
		c, err := newClient(lab, nil)
		if err != nil {
			return nil, err
		}
		b.clients = append(b.clients, c)
	}
	var err error
	b.prober, err = newClient(lab, b)
	if err != nil {
		return nil, err
	}
	return b, lab.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// newClient has a connection of its own and no rate limit.
func newClient(lab *measure.Lab, warnings rest.WarningHandler) (client.Client, error) {
	config := lab.Cluster.RESTConfig()
	config.Dial = (&net.Dialer{}).DialContext // a transport is shared by equal configurations
	config.WarningHandler = warnings
	if warnings == nil {
		config.WarningHandler = rest.NoWarnings{}
	}
	return client.New(config, client.Options{Scheme: lab.Client.Scheme()})
}

// HandleWarningHeader counts what the prober is told.
func (b *bench) HandleWarningHeader(int, string, string) { b.warnings.Add(1) }

// sample is a file of config/samples as an object of the benchmark's namespace.
func sample(path string) (*v1alpha1.QueueWorker, error) {
	for _, folder := range []string{samples.Valid, samples.Warned, samples.Invalid} {
		all, err := samples.Load(folder)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.Path == path+".yaml" {
				qw, _ := s.Judged()
				qw.Namespace = namespace
				return qw, nil
			}
		}
	}
	return nil, fmt.Errorf("no sample %s", path)
}

// run takes turns until every arm has its creates.
func (b *bench) run(ctx context.Context) error {
	for round := 0; round*2*b.options.block < b.options.creates; round++ {
		fmt.Fprintf(os.Stderr, "%d of %d creates per arm\n", round*2*b.options.block, b.options.creates)
		for _, i := range order {
			if err := b.turn(ctx, i); err != nil {
				return fmt.Errorf("%s: %w", arms[i].name, err)
			}
		}
	}
	return nil
}

// turn measures one arm once. It begins and ends without any QueueWorker.
func (b *bench) turn(ctx context.Context, i int) error {
	if err := b.enter(ctx, arms[i]); err != nil {
		return err
	}
	if _, _, err := b.create(ctx, "warm", warmUp*len(b.clients)); err != nil {
		return err
	}
	latencies, took, err := b.create(ctx, "worker", b.options.block)
	if err != nil {
		return err
	}
	r := &b.results[i]
	r.busy += took
	r.blocks = append(r.blocks, measure.Median(latencies))
	r.latencies = append(r.latencies, latencies...)
	return b.clean(ctx)
}

// create makes that many QueueWorkers, every client one after the other.
func (b *bench) create(ctx context.Context, prefix string, count int) (latencies []time.Duration, took time.Duration, err error) {
	latencies = make([]time.Duration, count)
	errs := make([]error, len(b.clients))
	var next atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for i, c := range b.clients {
		group.Go(func() {
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= count {
					return
				}
				object := b.object.DeepCopy()
				object.Name = fmt.Sprintf("%s-%d", prefix, n)
				start := time.Now()
				errs[i] = c.Create(ctx, object)
				latencies[n] = time.Since(start)
			}
		})
	}
	group.Wait()
	return latencies, time.Since(began), errors.Join(errs...)
}

func (b *bench) clean(ctx context.Context) error {
	if err := b.lab.Client.DeleteAllOf(ctx, &v1alpha1.QueueWorker{}, client.InNamespace(namespace)); err != nil {
		return err
	}
	for {
		var left v1alpha1.QueueWorkerList
		if err := b.lab.Client.List(ctx, &left, client.InNamespace(namespace)); err != nil || len(left.Items) == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
