// SPDX-License-Identifier: Apache-2.0

// Command mutate breaks a package in one place at a time and checks that its
// tests notice. Every comparison, logical operator, number and severity is
// changed; a change that no test notices is a survivor, and a survivor that
// equivalent.txt does not explain fails the run.
//
// The tests are compiled once, with a switch at each place; only constants are
// compiled one by one. The tree is never touched.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
)

func main() {
	dir := flag.String("dir", "internal/timeoutchain", "the package to break")
	every := flag.Int("every", 1, "try every n-th mutant only")
	workers := flag.Int("workers", 2, "mutants tried at the same time")
	only := flag.String("only", "", "try mutants that match this regular expression only, such as fix.go")
	list := flag.Bool("list", false, "list the mutants and stop")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, options{*dir, *every, *workers, *only, *list})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	dir     string
	every   int
	workers int
	only    string
	list    bool
}

func run(ctx context.Context, o options) error {
	source, err := readSource(o.dir)
	if err != nil {
		return err
	}
	mutants, err := o.sample(source.mutants)
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range mutants {
			fmt.Println(m)
		}
		return nil
	}
	explained, err := readEquivalent(filepath.Join("hack", "mutate", "equivalent.txt"))
	if err != nil {
		return err
	}
	lab, err := newLab(ctx, source)
	if err != nil {
		return err
	}
	defer lab.close()
	survivors := lab.try(ctx, o.workers, mutants)
	if err := ctx.Err(); err != nil {
		return err
	}
	return report(survivors, explained, len(mutants))
}

// sample picks the mutants that are asked for.
func (o options) sample(mutants []mutant) ([]mutant, error) {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var picked []mutant
	for i := 0; i < len(mutants); i += max(o.every, 1) {
		if wanted.MatchString(mutants[i].String()) {
			picked = append(picked, mutants[i])
		}
	}
	return picked, nil
}

// try runs the tests against each mutant and returns those that passed.
func (l *lab) try(ctx context.Context, workers int, mutants []mutant) []mutant {
	var (
		mu        sync.Mutex
		wg        sync.WaitGroup
		survivors []mutant
		tried     int
		queue     = make(chan mutant)
		start     = time.Now()
	)
	for range max(workers, 1) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for m := range queue {
				killed := l.killed(ctx, m)
				mu.Lock()
				tried++
				if !killed {
					survivors = append(survivors, m)
					fmt.Println("survived ", m)
				}
				if tried%50 == 0 {
					fmt.Printf("%4d of %d tried, %d survived, %s\n", tried, len(mutants), len(survivors), time.Since(start).Round(time.Second))
				}
				mu.Unlock()
			}
		}()
	}
	for _, m := range mutants {
		if ctx.Err() != nil {
			break
		}
		queue <- m
	}
	close(queue)
	wg.Wait()
	sort.Slice(survivors, func(i, j int) bool { return survivors[i].String() < survivors[j].String() })
	return survivors
}

func report(survivors []mutant, explained map[string]string, tried int) error {
	var unexplained int
	for _, m := range survivors {
		reason, ok := explained[m.key()]
		if !ok {
			unexplained++
			reason = "NOT EXPLAINED"
		}
		fmt.Printf("survived  %s\n          %s\n", m, reason)
	}
	fmt.Printf("%d mutants, %d killed, %d survived, %d of them unexplained\n",
		tried, tried-len(survivors), len(survivors), unexplained)
	if unexplained > 0 {
		return fmt.Errorf("%d survivors: write the test that kills them, or explain them in hack/mutate/equivalent.txt", unexplained)
	}
	return nil
}

// readEquivalent reads the explained survivors: a line "file: change" followed
// by an indented reason.
func readEquivalent(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	explained := map[string]string{}
	var key string
	for n, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "  "):
			if key == "" {
				return nil, fmt.Errorf("%s:%d: a reason without a mutant", path, n+1)
			}
			explained[key] = strings.TrimSpace(explained[key] + " " + strings.TrimSpace(line))
		default:
			key = strings.TrimSpace(line)
			explained[key] = ""
		}
	}
	return explained, nil
}
