// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/queueworker/operator/test/bench/measure"
)

func (b *bench) print() {
	fmt.Printf("\nCreating QueueWorkers, %d clients without a rate limit, turns of %d in the order ABCCBA:\n\n", b.options.clients, b.options.block)
	fmt.Printf("%-15s %7s %10s %10s %10s %10s   %s\n", "arm", "creates", "median", "p90", "p99", "creates/s", "medians of the turns")
	for i := range arms {
		r := &b.results[i]
		fmt.Printf("%-15s %7d %10s %10s %10s %10.0f   %s to %s\n", arms[i].name, len(r.latencies), measure.Milliseconds(r.at(50)),
			measure.Milliseconds(r.at(90)), measure.Milliseconds(r.at(99)), r.rate(), measure.Milliseconds(slices.Min(r.blocks)), measure.Milliseconds(slices.Max(r.blocks)))
	}
	fmt.Println()
	b.printRatio(0, 1)
	b.printRatio(1, 2)
}

func (b *bench) printRatio(of, to int) {
	x, y := &b.results[of], &b.results[to]
	ratio := func(p int) float64 { return float64(x.at(p)) / float64(y.at(p)) }
	fmt.Printf("%s / %s: median %.2f, p90 %.2f, p99 %.2f, creates/s %.2f\n", arms[of].name, arms[to].name,
		ratio(50), ratio(90), ratio(99), x.rate()/y.rate())
}

func (b *bench) judge(v *measure.Verdicts) {
	with, without := &b.results[0], &b.results[1]
	added := with.at(50) - without.at(50)
	v.AtMost("the webhook adds at the median", float64(added)/float64(time.Millisecond), 5, "ms")
	v.AtMost("p99 with the webhook over p99 with CEL only", float64(with.at(99))/float64(without.at(99)), 1.3, "")
}

func (r *result) at(p int) time.Duration { return measure.Percentile(r.latencies, p) }
func (r *result) rate() float64          { return float64(len(r.latencies)) / r.busy.Seconds() }
