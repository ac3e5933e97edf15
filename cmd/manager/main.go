// SPDX-License-Identifier: Apache-2.0

// The command manager is the operator: the controller, the webhook and their
// endpoints in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/internal/managerconfig"
)

// version is set by the linker.
var version = "dev"

// gcPercent is how much the heap may grow between two collections, in percent
// of what is in use; Go's own default is 100. Most of the heap is the cache,
// which lies still: collecting more often costs little and saves a third of
// the memory. GOGC in the environment wins.
const gcPercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx := ctrl.SetupSignalHandler() // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 after an orderly stop, 1 after any error, which
// is told in one line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := execute(ctx, args, stdout, stderr)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintln(stderr, "manager: "+oneLine(err))
	return 1
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags, err := parseFlags(args, stdout)
	if err != nil {
		return err
	}
	if flags.version {
		_, err := fmt.Fprintln(stdout, version)
		return err
	}
	config, err := loadConfig(flags)
	if err != nil {
		return err
	}
	if flags.printConfig {
		text, err := yaml.Marshal(config)
		if err != nil {
			return err
		}
		_, err = stdout.Write(text)
		return err
	}
	setUpLogging(config.Logging, stderr)
	return serve(ctx, config, flags.kubeconfig)
}

// loadConfig is the file's configuration, or the defaults without one, with the
// flags laid over it.
func loadConfig(flags *flags) (*managerconfig.Config, error) {
	config := managerconfig.Default()
	source := "flags"
	if flags.configFile != "" {
		source = flags.configFile
		file, err := os.ReadFile(flags.configFile)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		if config, err = managerconfig.Decode(file); err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
	}
	for _, override := range flags.overrides {
		override(&config)
	}
	if errs := managerconfig.Validate(&config); len(errs) > 0 {
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		return nil, fmt.Errorf("%s: %s", source, strings.Join(texts, "; "))
	}
	return &config, nil
}

func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
