// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/hack/operator"
	"github.com/queueworker/operator/test/bench/measure"
)

// quiet is what happened while nothing was to do.
type quiet struct {
	lasted   time.Duration
	resynced float64 // reconciles of the resync
	writes   writes
	run      cost
}

// settle lets a settled manager run on, makes it look at every QueueWorker
// again, restarts it, and counts its writes.
func (b *bench) settle(ctx context.Context) error {
	run, err := b.runManager(ctx, b.options.objects, func(manager **measure.Manager, run *cost) error {
		began, half := time.Now(), b.options.settled/2
		if err := b.resync(ctx, *manager, run); err != nil {
			return err
		}
		progress("settled: resynced")
		if err := wait(ctx, half-time.Since(began)); err != nil {
			return err
		}
		if err := b.restart(ctx, manager, run); err != nil {
			return err
		}
		progress("settled: restarted")
		if err := wait(ctx, b.options.settled-time.Since(began)); err != nil {
			return err
		}
		entries, err := b.audit.next()
		b.quiet.lasted, b.quiet.writes = time.Since(began), countWrites(entries, operator.User)
		now, peak := (*manager).Memory()
		run.rss, run.peak = max(run.rss, now), max(run.peak, peak)
		return err
	})
	b.quiet.run = run
	return err
}

// resync brings every Deployment before the manager again, as a resync of its
// cache does: a stranger adds a label. (An annotation would be a change of the
// Deployment, whose controller then has to look at it.)
func (b *bench) resync(ctx context.Context, manager *measure.Manager, run *cost) error {
	before, err := manager.Reconciles(ctx)
	if err != nil {
		return err
	}
	note := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"stranger.example/seen":"true"}}}`))
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	if err := b.lab.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(list.Items) != run.objects {
		return fmt.Errorf("%d Deployments of %d QueueWorkers", len(list.Items), run.objects)
	}
	for i := range list.Items {
		if err := b.lab.Client.Patch(ctx, &list.Items[i], note); err != nil {
			return err
		}
	}
	if err := b.waitForReconciles(ctx, manager, before+float64(run.objects)); err != nil {
		return fmt.Errorf("after a resync: %w", err)
	}
	after, err := manager.Reconciles(ctx)
	b.quiet.resynced = after - before
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// grow measures the manager at the other sizes, each with a restart.
func (b *bench) grow(ctx context.Context) error {
	b.growth = append(b.growth, b.quiet.run)
	for _, size := range b.options.growth {
		run, err := b.runManager(ctx, size, func(manager **measure.Manager, run *cost) error {
			if err := b.restart(ctx, manager, run); err != nil {
				return err
			}
			time.Sleep(trailing)
			now, peak := (*manager).Memory()
			run.rss, run.peak = max(run.rss, now), max(run.peak, peak)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%d QueueWorkers: %w", size, err)
		}
		progress("%d QueueWorkers: CPU %s, RSS %.0f MiB, peak %.0f MiB", size, run.cpu, run.rss, run.peak)
		b.growth = append(b.growth, run)
	}
	return nil
}
