// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/queueworker/operator/internal/managerconfig"
)

// flags are the command line. An override is laid over the configuration file.
type flags struct {
	configFile, kubeconfig string
	printConfig, version   bool
	overrides              []func(*managerconfig.Config)
}

// override is a flag that replaces one field of the configuration.
type override struct {
	name, usage string
	parse       func(value string) (func(*managerconfig.Config), error)
}

var overrides = []override{
	{"namespace", "the operator's own `namespace`; default: the pod's, outside a cluster " + defaultNamespace,
		text(func(c *managerconfig.Config) *string { return &c.Namespace })},
	{"watch-namespaces", "comma-separated `namespaces` to handle; default: all", namespaces},
	{"grace-cap-seconds", "the longest grace, in `seconds`, that the platform honours", graceCap},
	{"agent-image", "`image` of the agent that is added to each worker pod; default: " + agentImage + " of the manager's version",
		text(func(c *managerconfig.Config) *string { return &c.Agent.Image })},
	{"webhook-bind-address", "`address` of the webhook", text(func(c *managerconfig.Config) *string { return &c.Webhook.BindAddress })},
	{"webhook-url", "`URL` under which the API server reaches a manager outside the cluster, such as https://localhost:9443",
		text(func(c *managerconfig.Config) *string { return &c.Webhook.URL })},
	{"metrics-bind-address", "`address` of the metrics; 0 turns them off", text(func(c *managerconfig.Config) *string { return &c.Metrics.BindAddress })},
	{"health-bind-address", "`address` of /healthz and /readyz", text(func(c *managerconfig.Config) *string { return &c.Health.BindAddress })},
	{"leader-elect", "`true` or false: let one of several replicas act", leaderElect},
	{"log-format", "`json` or console", text(func(c *managerconfig.Config) *string { return &c.Logging.Format })},
	{"log-level", "debug, `info` or error", text(func(c *managerconfig.Config) *string { return &c.Logging.Level })},
}

func parseFlags(args []string, stdout io.Writer) (*flags, error) {
	parsed := &flags{}
	set := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	set.SortFlags = false
	set.SetOutput(stdout)
	set.Usage = func() {
		_, _ = fmt.Fprintf(stdout, "Runs the queueworker operator. Flags win over the configuration file.\n\n%s", set.FlagUsages())
	}
	set.StringVar(&parsed.configFile, "config", "", "configuration `file`; default: none, every field has a default")
	set.StringVar(&parsed.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster; default: the cluster that the pod runs in")
	set.BoolVar(&parsed.printConfig, "print-config", false, "print the effective configuration and exit")
	set.BoolVar(&parsed.version, "version", false, "print the version and exit")
	for _, o := range overrides {
		set.Func(o.name, o.usage, func(value string) error {
			apply, err := o.parse(value)
			if err == nil {
				parsed.overrides = append(parsed.overrides, apply)
			}
			return err
		})
	}
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; --help lists the flags", set.Arg(0))
	}
	return parsed, nil
}

func text(of func(*managerconfig.Config) *string) func(string) (func(*managerconfig.Config), error) {
	return func(value string) (func(*managerconfig.Config), error) {
		return func(c *managerconfig.Config) { *of(c) = value }, nil
	}
}

func namespaces(value string) (func(*managerconfig.Config), error) {
	list := []string{}
	if value != "" {
		list = strings.Split(value, ",")
	}
	return func(c *managerconfig.Config) { c.WatchNamespaces = list }, nil
}

func graceCap(value string) (func(*managerconfig.Config), error) {
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number of seconds", value)
	}
	return func(c *managerconfig.Config) { c.Caps.GracePeriodSeconds = seconds }, nil
}

func leaderElect(value string) (func(*managerconfig.Config), error) {
	enabled, err := strconv.ParseBool(value)
	if err != nil {
		return nil, fmt.Errorf("%q is neither true nor false", value)
	}
	return func(c *managerconfig.Config) { c.LeaderElection.Enabled = enabled }, nil
}
