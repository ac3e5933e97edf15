// SPDX-License-Identifier: Apache-2.0

//go:build linux

// The monitor watches the queues of one QueueWorker from a pod of its own, in
// the application's own image. It is no part of the agent: speaking TLS makes it
// half as large again, and every worker's pod would carry that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/queueworker/operator/internal/agent/kubeapi"
	"github.com/queueworker/operator/internal/agent/selfcopy"
	"github.com/queueworker/operator/internal/agent/watch"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/monitor"
)

// version is set by the linker.
var version = "dev"

// exitUsage is the code for a command line or an environment that makes no
// sense.
const exitUsage = 64

const usage = `usage: monitor COMMAND [flags]

  copy      write this program to the shared directory
  run       watch the queues of the worker whose command follows "--"
  version   print the version

"monitor COMMAND -h" lists a command's flags.
`

func main() {
	runtime.GOMAXPROCS(1) // one busy thread is enough
	os.Exit(dispatch(os.Args[1:]))
}

func dispatch(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	switch command, rest := args[0], args[1:]; command {
	case "copy":
		return copyCommand(rest)
	case "run":
		return runCommand(rest)
	case "version":
		fmt.Println(version)
		return 0
	default:
		fmt.Fprintf(os.Stderr, "monitor: unknown command %q\n\n%s", command, usage)
		return exitUsage
	}
}

func copyCommand(args []string) int {
	flags := flag.NewFlagSet("monitor copy", flag.ContinueOnError)
	dir := flags.String("dir", workdir.Default, "the shared `directory`")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if err := selfcopy.Copy(workdir.Dir(*dir).Monitor()); err != nil {
		fmt.Fprintln(os.Stderr, "monitor copy:", err)
		return 1
	}
	return 0
}

// runFlags are the flags of run, and what follows them.
type runFlags struct {
	dir, account string
	command      []string // the worker's
}

func parseRun(args []string) (runFlags, error) {
	var f runFlags
	flags := flag.NewFlagSet("monitor run", flag.ContinueOnError)
	flags.StringVar(&f.dir, "dir", workdir.Default, "the shared `directory`")
	flags.StringVar(&f.account, "service-account", kubeapi.ServiceAccountDir, "the `directory` of token and authority; empty = tell no cluster")
	err := flags.Parse(args)
	f.command = flags.Args()
	return f, err
}

func runCommand(args []string) int {
	f, err := parseRun(args)
	if err != nil {
		return exitUsage
	}
	watcher, err := f.watcher()
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitor run:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, watcher); err != nil {
		fmt.Fprintln(os.Stderr, "monitor run:", err)
		return 1
	}
	return 0
}

func (f runFlags) watcher() (*watch.Watcher, error) {
	config, err := monitor.DecodeConfig(os.Getenv(monitor.ConfigEnv))
	if err != nil {
		return nil, err
	}
	script, err := watch.For(config, f.command)
	if err != nil {
		return nil, err
	}
	script.Scripts, script.Env, script.Output = filepath.Join(workdir.Dir(f.dir).PHP(), "monitor"), os.Environ(), os.Stderr
	if err := watch.Install(script.Scripts); err != nil {
		return nil, err
	}
	w := &watch.Watcher{Config: config, Script: script, Log: os.Stderr}
	if f.account != "" {
		api, err := kubeapi.New(os.Getenv, f.account, config.Namespace, config.Name)
		if err != nil {
			return nil, err
		}
		w.API = api
	}
	return w, nil
}

// serve watches, and answers who asks, until the context ends.
func serve(ctx context.Context, w *watch.Watcher) error {
	listener, err := net.Listen("tcp", w.Config.MetricsAddress)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: w.Handler(), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	select {
	case err = <-failed:
	case <-ended:
	}
	_ = server.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
