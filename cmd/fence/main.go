// SPDX-License-Identifier: Apache-2.0

// The fence stands between an application and a provider and lets each
// operation happen at most once. It runs beside the worker, on loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/sidecar"
)

// version is set by the linker.
var version = "dev"

// threads is how many threads run the fence's code at once. It waits far more
// than it computes, and each wait that ends on another thread costs both: one
// thread answers sooner, for half the processor time. GOMAXPROCS in the
// environment wins.
const threads = 1

// memoryLimit is where garbage is collected more eagerly, in bytes. A thousand
// calls at once leave much of it, and the sidecar has 128 MiB. GOMEMLIMIT in the
// environment wins.
const memoryLimit = 64 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(threads)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 after an orderly stop, 64 for a command line or
// a configuration that makes no sense, 1 after any other error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fence", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", "/etc/queueworker/fence.yaml", "the configuration file")
	check := flags.Bool("check", false, "read the configuration, say what follows from it, and end")
	printVersion := flags.Bool("version", false, "print the version")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 64
	}
	if *printVersion {
		_, _ = fmt.Fprintln(stdout, version)
		return 0
	}
	config, err := load(*file)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "fence: %s: %v\n", *file, err)
		return 64
	}
	if *check {
		describe(config, stdout)
		return 0
	}
	if err := serve(ctx, config, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "fence: %v\n", err)
		return 1
	}
	return 0
}

func load(file string) (*fenceconfig.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return fenceconfig.Decode(text)
}

// describe shows the times that the sidecar derives.
func describe(c *fenceconfig.Config, w io.Writer) {
	for i, p := range c.Declared() {
		t := p.Times
		_, _ = fmt.Fprintf(w, "%s: %s; reply %s, lease %s, quiet after %s", p.Scope, c.Providers[i].Kind(), t.ProviderTimeout, t.Lease(), t.Quiet())
		if p.Keyed() {
			_, _ = fmt.Fprintf(w, ", same key sent again for %s", t.KeyLife-t.Margin())
		}
		_, _ = fmt.Fprintln(w)
	}
}

func serve(ctx context.Context, config *fenceconfig.Config, stderr io.Writer) error {
	dsn := config.Store.DSNFile
	if config.Store.Driver != fenceconfig.DriverSQLite {
		text, err := os.ReadFile(dsn)
		if err != nil {
			return fmt.Errorf("store.dsnFile: %w", err)
		}
		dsn = strings.TrimSpace(string(text))
	}
	owner, err := os.Hostname()
	if err != nil {
		return err
	}
	s := &sidecar.Sidecar{
		Config: config, DSN: dsn, Owner: owner, Clock: fence.SystemClock{},
		Log: slog.New(slog.NewJSONHandler(stderr, nil)),
	}
	return s.Run(ctx)
}
