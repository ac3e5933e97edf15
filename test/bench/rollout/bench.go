// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
	"github.com/queueworker/operator/test/bench/measure"
)

// trailing is how long the last counters of a status may lag behind.
const trailing = 5 * time.Second

// bench holds the control plane and what was measured.
type bench struct {
	options options
	lab     *measure.Lab
	audit   *audit
	clients []client.Client // of those who create QueueWorkers
	floor   bareClient

	ofManager []cost
	ofFloor   []time.Duration
	quiet     quiet
	growth    []cost
}

// cost is what one run took of the manager.
type cost struct {
	objects    int
	took, cpu  time.Duration
	reconciles float64
	writes     writes
	rss        float64 // MiB, once settled
	peak       float64 // MiB, a restart included where there was one
}

func (c *cost) rate() float64 { return float64(c.objects) / c.took.Seconds() }

func newBench(ctx context.Context, o options) (*bench, error) {
	audit, err := newAudit()
	if err != nil {
		return nil, err
	}
	lab, err := measure.NewLab(ctx, cluster.Options{Nodes: 1, ExtraAPIServerArgs: audit.apiServerArgs()})
	if err != nil {
		return nil, errors.Join(err, audit.remove())
	}
	b := &bench{options: o, lab: lab, audit: audit, floor: bareClient{client: lab.Client, workers: o.floor}}
	for range o.clients {
		config := lab.Cluster.RESTConfig()
		config.Dial = (&net.Dialer{}).DialContext // a transport is shared by equal configurations
		c, err := client.New(config, client.Options{Scheme: lab.Client.Scheme()})
		if err != nil {
			return nil, errors.Join(err, b.stop())
		}
		b.clients = append(b.clients, c)
	}
	if err := lab.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

func (b *bench) stop() error { return errors.Join(b.lab.Cluster.Stop(), b.audit.remove()) }

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// warmUp opens connections and shows the bare client what to write.
func (b *bench) warmUp(ctx context.Context) error {
	const count = 50
	run, err := b.runManager(ctx, count, func(**measure.Manager, *cost) error {
		var list v1alpha1.QueueWorkerList
		if err := b.lab.Client.List(ctx, &list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return err
		}
		b.floor.status, b.floor.name = list.Items[0].Status, list.Items[0].Name
		return nil
	})
	if err != nil {
		return err
	}
	b.floor.writes = max(1, run.writes.total(statuses)/count) // rounded in the bare client's favour
	return nil
}

// alternate runs the manager and the bare client in turns, each first as often
// as the other.
func (b *bench) alternate(ctx context.Context) error {
	manager := func() error {
		run, err := b.runManager(ctx, b.options.objects, nil)
		b.ofManager = append(b.ofManager, run)
		return err
	}
	floor := func() error {
		took, err := b.runFloor(ctx, b.options.objects)
		b.ofFloor = append(b.ofFloor, took)
		return err
	}
	for pair := range b.options.pairs {
		first, second := manager, floor
		if pair%2 == 1 {
			first, second = floor, manager
		}
		for _, run := range []func() error{first, second} {
			if err := run(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) runFloor(ctx context.Context, count int) (time.Duration, error) {
	if err := errors.Join(clean(ctx, b.lab.Client), b.lab.RegisterWebhook(ctx, false)); err != nil {
		return 0, err
	}
	took, err := b.floor.run(ctx, b.clients, count)
	if err != nil {
		return 0, fmt.Errorf("the bare client: %w", err)
	}
	progress("the bare client: %d QueueWorkers in %s", count, took.Round(time.Millisecond))
	return took, nil
}

// runManager starts the manager, creates QueueWorkers and waits until they are
// settled. Then, if there is one, comes the rest of the run, which may replace
// the manager.
func (b *bench) runManager(ctx context.Context, count int, rest func(**measure.Manager, *cost) error) (result cost, err error) {
	if err := errors.Join(clean(ctx, b.lab.Client), b.lab.RegisterWebhook(ctx, true)); err != nil {
		return cost{}, err
	}
	manager, err := b.startManager(ctx)
	if err != nil {
		return cost{}, err
	}
	defer func() { err = errors.Join(err, manager.Stop()) }() // the one that runs by then
	if _, err := b.audit.next(); err != nil {                 // what was before
		return cost{}, err
	}
	settling, err := watchSettling(ctx, b.lab.Client, count)
	if err != nil {
		return cost{}, err
	}
	idle, began := manager.CPU(), time.Now()
	if err := createWorkers(ctx, b.clients, count, func(*v1alpha1.QueueWorker) {}); err != nil {
		return cost{}, err
	}
	if err := settling.wait(ctx); err != nil {
		return cost{}, err
	}
	run := cost{objects: count, took: time.Since(began)}
	progress("the manager: %d QueueWorkers in %s", count, run.took.Round(time.Millisecond))
	time.Sleep(trailing)
	run.cpu = manager.CPU() - idle
	run.rss, run.peak = manager.Memory()
	if run.reconciles, err = manager.Reconciles(ctx); err != nil {
		return run, err
	}
	entries, err := b.audit.next()
	if err != nil {
		return run, err
	}
	run.writes = countWrites(entries, operator.User)
	if rest != nil {
		err = rest(&manager, &run)
	}
	return run, err
}

// startManager returns once the manager leads.
func (b *bench) startManager(ctx context.Context) (*measure.Manager, error) {
	manager, err := b.lab.StartManager(ctx)
	if err != nil {
		return nil, err
	}
	for {
		lease := &coordinationv1.Lease{}
		err := b.lab.Client.Get(ctx, client.ObjectKey{Namespace: operator.Namespace, Name: operator.Name}, lease)
		if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			return manager, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, errors.Join(err, manager.Stop())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// restart replaces the manager and waits until the new one has looked at every
// QueueWorker.
func (b *bench) restart(ctx context.Context, manager **measure.Manager, run *cost) error {
	if err := (*manager).Stop(); err != nil {
		return err
	}
	next, err := b.startManager(ctx)
	if err != nil {
		return err
	}
	*manager = next
	if err := b.waitForReconciles(ctx, next, float64(run.objects)); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	_, peak := next.Memory()
	run.peak = max(run.peak, peak)
	return nil
}

func (b *bench) waitForReconciles(ctx context.Context, manager *measure.Manager, wanted float64) error {
	const limit = 5 * time.Minute
	deadline := time.Now().Add(limit)
	for {
		seen, err := manager.Reconciles(ctx)
		if err != nil || seen >= wanted {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%.0f reconciles in %s, %.0f were expected", seen, limit, wanted)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
