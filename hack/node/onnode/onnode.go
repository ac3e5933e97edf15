// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package onnode runs tests that share one real node.
package onnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/queueworker/operator/hack/node/node"
)

// Main is a package's TestMain: it starts what the tests share, runs them, stops it and ends the process. stop is called however
// start ended, after an interrupt too, and may be called twice.
func Main(m *testing.M, start func(context.Context) error, stop func() error) {
	if node.Inside() {
		return
	}
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, m, start, stop)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M, start func(context.Context) error, stop func() error) (code int, err error) {
	defer func() { err = errors.Join(err, stop()) }()
	if err := start(ctx); err != nil {
		return 1, err
	}
	// A test has no other way to hear of an interrupt: it would wait for what cannot come any more.
	uninterrupted := context.AfterFunc(ctx, func() {
		_ = stop()
		os.Exit(1)
	})
	defer uninterrupted() // the context is also over once all is done
	return m.Run(), nil
}
