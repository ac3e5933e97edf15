// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/test/fence/servers"
)

// database is what differs between the two.
type database struct {
	name  string
	start func(settings ...string) (*servers.Server, error)
	open  func(ctx context.Context, dsn string, connections int) (opened, error)

	generator string // the database's own load generator
	script    func(texts map[fence.Op]string) string
	command   func(port int, script string, connections, seconds int) []string
	rate      func(output []byte) (float64, error)
}

// opened is a store, how to close it, and its statements.
type opened struct {
	fence.Store
	io.Closer
	texts map[fence.Op]string
}

// race is a database that runs, and the script of its generator.
type race struct {
	database
	server *servers.Server
	script string
}

func (d database) race(ctx context.Context) (*race, error) {
	server, err := d.start()
	if err != nil {
		return nil, err
	}
	r := &race{d, server, filepath.Join(server.Dir, "pairs")}
	s, err := d.open(ctx, server.DSN, 1)
	if err == nil {
		err = os.WriteFile(r.script, []byte(d.script(s.texts)), 0o644)
		_ = s.Close()
	}
	if err != nil {
		server.Stop()
		return nil, err
	}
	return r, nil
}

// result is how fast one side was, and the processor time that its client (not
// the server) took for a pair.
type result struct {
	pairs float64 // a second
	cpu   time.Duration
}

// connecting is how long the store runs before it is measured, so that all
// connections are there: the generators leave connecting out of their rates.
const connecting = 300 * time.Millisecond

// ours measures the store.
func (r *race) ours(ctx context.Context, connections, seconds int) (result, error) {
	s, err := r.open(ctx, r.server.DSN, connections)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = s.Close() }()
	if _, err := pairs(ctx, s, connections, connecting); err != nil {
		return result{}, err
	}
	before := ownCPU()
	rate, err := pairs(ctx, s, connections, time.Duration(seconds)*time.Second)
	return result{rate, each(ownCPU()-before, rate, seconds)}, err
}

// theirs measures the generator.
func (r *race) theirs(ctx context.Context, connections, seconds int) (result, error) {
	args := r.command(r.server.Port, r.script, connections, seconds)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("%s: %w\n%s", r.generator, err, bytes.TrimSpace(output))
	}
	rate, err := r.rate(output)
	if err != nil {
		return result{}, fmt.Errorf("%s printed no rate:\n%s", r.generator, bytes.TrimSpace(output))
	}
	return result{rate, each(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), rate, seconds)}, nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails on bad arguments only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func each(total time.Duration, rate float64, seconds int) time.Duration {
	return time.Duration(float64(total) / (rate * float64(seconds)))
}

func numberIn(output []byte, pattern *regexp.Regexp) (float64, error) {
	found := pattern.FindSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("no %s", pattern)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
