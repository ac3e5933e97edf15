// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/queueworker/operator/test/bench/measure"
)

// memoryLimits are the targets in MiB, for those sizes.
var memoryLimits = map[int]float64{1000: 150, 5000: 350}

func (b *bench) rates() (manager, floor []float64) {
	for i := range b.ofManager {
		manager = append(manager, b.ofManager[i].rate())
	}
	for _, took := range b.ofFloor {
		floor = append(floor, float64(b.options.objects)/took.Seconds())
	}
	return manager, floor
}

func (b *bench) printRates() {
	manager, floor := b.rates()
	fmt.Printf("\n%d QueueWorkers of 1 replica in one namespace, created by %d clients without a rate limit, in turns; settled per second:\n\n",
		b.options.objects, b.options.clients)
	fmt.Printf("  manager (4 reconciles at a time, webhook, events)          %s  median %.1f\n", listed(manager), measure.Median(slices.Clone(manager)))
	fmt.Printf("  bare client (%d workers, %d status writes, nothing else)    %s  median %.1f\n", b.options.floor, b.floor.writes, listed(floor), measure.Median(slices.Clone(floor)))

	fmt.Printf("\nStored writes of the manager per QueueWorker, of the API server's audit log:\n\n")
	fmt.Printf("  %-24s %8s %6s\n", "", "average", "most")
	for _, kind := range []string{deployments, statuses, events} {
		most, average := 0, 0.0
		for i := range b.ofManager {
			w := &b.ofManager[i].writes
			most = max(most, w.most(kind))
			average += float64(w.total(kind)) / float64(b.options.objects) / float64(len(b.ofManager))
		}
		if kind == events { // named after their moment, not their object
			fmt.Printf("  %-24s %8.2f\n", kind, average)
			continue
		}
		fmt.Printf("  %-24s %8.2f %6d\n", kind, average, most)
	}
}

func (b *bench) printQuiet() {
	fmt.Printf("\nSettled for %s, with a look at every QueueWorker (%.0f reconciles) and a restart: %d writes\n",
		b.quiet.lasted.Round(time.Second), b.quiet.resynced, b.quiet.writes.all())
	for kind := range b.quiet.writes.byKind {
		fmt.Printf("  %s: %d\n", kind, b.quiet.writes.total(kind))
	}
}

func listed(values []float64) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("%6.1f", v)
	}
	return strings.Join(words, " ")
}

func (b *bench) printGrowth() {
	slices.SortFunc(b.growth, func(x, y cost) int { return x.objects - y.objects })
	fmt.Printf("\nHow the manager's cost grows, a restart included:\n\n")
	fmt.Printf("%12s %10s %10s %10s %15s %10s %10s\n", "QueueWorkers", "took", "settled/s", "CPU each", "reconciles each", "RSS MiB", "peak MiB")
	for i := range b.growth {
		c := &b.growth[i]
		each := float64(c.objects)
		fmt.Printf("%12d %10s %10.1f %10s %15.1f %10.0f %10.0f\n", c.objects, c.took.Round(10*time.Millisecond), c.rate(),
			measure.Milliseconds(time.Duration(float64(c.cpu)/each)), c.reconciles/each, c.rss, c.peak)
	}
	fmt.Println()
}

func (b *bench) judge(v *measure.Verdicts) {
	manager, floor := b.rates()
	v.AtLeast("the manager's rate over the bare client's", measure.Median(manager)/measure.Median(floor), 0.7, "")
	mostDeployments, mostStatuses := 0, 0
	for i := range b.ofManager {
		w := &b.ofManager[i].writes
		mostDeployments, mostStatuses = max(mostDeployments, w.most(deployments)), max(mostStatuses, w.most(statuses))
	}
	v.AtMost("Deployment writes of any QueueWorker", float64(mostDeployments), 1, "")
	v.AtMost("status writes of any QueueWorker", float64(mostStatuses), 3, "")
	v.AtMost("writes while settled", float64(b.quiet.writes.all()), 0, "")
	for i := range b.growth {
		if limit, stated := memoryLimits[b.growth[i].objects]; stated {
			v.AtMost(fmt.Sprintf("peak memory with %d QueueWorkers", b.growth[i].objects), b.growth[i].peak, limit, "MiB")
		}
	}
}
