// SPDX-License-Identifier: Apache-2.0

// Command benchfence measures how many claims and completions the fence's
// stores do in a second, against the same two statements run by the database's
// own load generator (pgbench; sysbench) in the same run. It starts the
// servers itself, and fails where a store is slower than it may be.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

type options struct {
	seconds int
	rounds  int
	least   float64
	profile string
	only    string
	through bool
	open    int
}

func main() {
	var o options
	flag.IntVar(&o.seconds, "seconds", 3, "length of one run")
	flag.IntVar(&o.rounds, "rounds", 3, "runs of each side, taken in turn; the median counts")
	flag.Float64Var(&o.least, "least", 0.8, "smallest ratio that passes")
	flag.StringVar(&o.only, "only", "", "the one database to measure")
	flag.BoolVar(&o.through, "through", false, "measure whole calls through the fence instead of its stores")
	flag.IntVar(&o.open, "open", 60, "with -through: length of the open loop in seconds")
	flag.StringVar(&o.profile, "profile", "", "file for a CPU profile of our side")
	flag.Parse()
	measure := run
	if o.through {
		measure = runThrough
	} else if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1) // as in cmd/fence
	}
	ok, err := profiled(o.profile, func() (bool, error) { return measure(context.Background(), o) })
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench-fence:", err)
		os.Exit(1)
	case !ok:
		fmt.Fprintln(os.Stderr, "bench-fence: a figure is missed")
		os.Exit(1)
	}
}

func profiled(file string, run func() (bool, error)) (bool, error) {
	if file == "" {
		return run()
	}
	f, err := os.Create(file)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return false, err
	}
	defer pprof.StopCPUProfile()
	return run()
}

// runThrough measures whole calls.
func runThrough(ctx context.Context, o options) (bool, error) {
	return eachDatabase(ctx, o, func(r *race) (bool, error) {
		ok := true
		for _, part := range []func() (bool, error){
			func() (bool, error) { return r.through(ctx, o) },
			func() (bool, error) { return r.slow(ctx, o) },
			func() (bool, error) { return r.memory(ctx) },
		} {
			good, err := part()
			if err != nil {
				return false, err
			}
			ok = ok && good
		}
		return ok, nil
	})
}

func run(ctx context.Context, o options) (bool, error) {
	fmt.Printf("%-12s %12s %14s %18s %8s %10s %9s\n", "database", "connections", "store pairs/s", "baseline", "ratio", "our µs CPU", "theirs")
	return eachDatabase(ctx, o, func(r *race) (bool, error) {
		ok := true
		for _, connections := range []int{1, 16} {
			ratio, err := r.measure(ctx, connections, o)
			if err != nil {
				return false, err
			}
			ok = ok && ratio >= o.least
		}
		return ok, nil
	})
}

// eachDatabase measures those that are asked for, one after the other.
func eachDatabase(ctx context.Context, o options, measure func(*race) (bool, error)) (bool, error) {
	all := true
	for _, d := range []database{postgreSQL, mariaDB} {
		if o.only != "" && o.only != d.name {
			continue
		}
		r, err := d.race(ctx)
		if err != nil {
			return false, err
		}
		ok, err := measure(r)
		r.server.Stop()
		if err != nil {
			return false, fmt.Errorf("%s: %w", d.name, err)
		}
		all = all && ok
	}
	return all, nil
}

// measure lets the two run in turn, each first every other time.
func (r *race) measure(ctx context.Context, connections int, o options) (float64, error) {
	sides := []struct {
		rates, cpu []float64
		run        func(ctx context.Context, connections, seconds int) (result, error)
	}{{run: r.ours}, {run: r.theirs}}
	for round := range 2 * o.rounds {
		side := &sides[(round+1)/2%2] // 0 1 1 0
		limit, cancel := context.WithTimeout(ctx, time.Duration(o.seconds)*time.Second+2*time.Minute)
		got, err := side.run(limit, connections, o.seconds)
		cancel()
		if err != nil {
			return 0, err
		}
		side.rates = append(side.rates, got.pairs)
		side.cpu = append(side.cpu, float64(got.cpu.Microseconds()))
	}
	a, b := median(sides[0].rates), median(sides[1].rates)
	fmt.Printf("%-12s %12d %14.0f %18s %8.2f %10.0f %9.0f\n", r.name, connections, a, fmt.Sprintf("%.0f (%s)", b, r.generator), a/b,
		median(sides[0].cpu), median(sides[1].cpu))
	return a / b, nil
}

func median(rates []float64) float64 {
	slices.Sort(rates)
	return rates[len(rates)/2]
}
