// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/freeport"
	"github.com/queueworker/operator/internal/managerconfig"
)

const configHeader = "apiVersion: config.queueworker.dev/v1alpha1\nkind: ManagerConfig\n"

func TestFlagsWinOverTheFile(t *testing.T) {
	file := writeConfig(t, configHeader+`
namespace: from-file
caps: {gracePeriodSeconds: 120}
webhook: {bindAddress: ":1001", failurePolicy: Fail}
logging: {level: debug}
`)
	code, stdout, stderr := runManager(t, "--print-config", "--config", file,
		"--namespace", "from-flag", "--watch-namespaces", "shop,crm", "--webhook-bind-address", ":1002",
		"--webhook-url", "https://localhost:1002", "--metrics-bind-address", "0", "--health-bind-address", ":1003",
		"--leader-elect=false", "--log-format", "console", "--grace-cap-seconds", "240",
		"--agent-image", "registry.example/operator:1")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	got, err := managerconfig.Decode([]byte(stdout)) // what is printed can be used as a file
	if err != nil {
		t.Fatal(err)
	}
	for field, pair := range map[string][2]any{
		"namespace":            {got.Namespace, "from-flag"},
		"watchNamespaces":      {strings.Join(got.WatchNamespaces, " "), "shop crm"},
		"caps":                 {got.Caps.GracePeriodSeconds, int64(240)},
		"agent.image":          {got.Agent.Image, "registry.example/operator:1"},
		"webhook.bindAddress":  {got.Webhook.BindAddress, ":1002"},
		"webhook.url":          {got.Webhook.URL, "https://localhost:1002"},
		"metrics.bindAddress":  {got.Metrics.BindAddress, "0"},
		"health.bindAddress":   {got.Health.BindAddress, ":1003"},
		"leaderElection":       {got.LeaderElection.Enabled, false},
		"logging.format":       {got.Logging.Format, "console"},
		"file, failurePolicy":  {got.Webhook.FailurePolicy, "Fail"},
		"file, logging.level":  {got.Logging.Level, "debug"},
		"default, serviceName": {got.Webhook.ServiceName, "queueworker-operator-webhook"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", field, pair[0], pair[1])
		}
	}
}

// Every override must be reachable: a flag that sets nothing is a trap.
func TestEveryFlagSetsSomething(t *testing.T) {
	values := map[string]string{"watch-namespaces": "shop", "grace-cap-seconds": "77", "leader-elect": "false"}
	for _, o := range overrides {
		value := values[o.name]
		if value == "" {
			value = "another"
		}
		apply, err := o.parse(value)
		if err != nil {
			t.Errorf("--%s %s: %v", o.name, value, err)
			continue
		}
		config, before := managerconfig.Default(), managerconfig.Default()
		apply(&config)
		if reflect.DeepEqual(config, before) {
			t.Errorf("--%s %s changes nothing", o.name, value)
		}
	}
}

func TestBadInputIsOneLine(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	twoFaults := writeConfig(t, configHeader+"webhook: {port: 1}\ncap: 3\n")
	invalid := writeConfig(t, configHeader+"logging: {level: loud}\ncaps: {gracePeriodSeconds: 0}\n")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown flag":  {[]string{"--bogus"}, []string{"unknown flag: --bogus"}},
		"argument":      {[]string{"run"}, []string{`unexpected argument "run"`, "--help"}},
		"number":        {[]string{"--grace-cap-seconds", "10m"}, []string{"--grace-cap-seconds", `"10m" is not a whole number of seconds`}},
		"truth":         {[]string{"--leader-elect", "maybe"}, []string{"--leader-elect", `"maybe" is neither true nor false`}},
		"no file":       {[]string{"--config", missing}, []string{"--config", missing, "no such file"}},
		"unknown field": {[]string{"--config", twoFaults}, []string{twoFaults, `"webhook.port"`, `"cap"`}},
		"invalid field": {[]string{"--config", invalid}, []string{invalid, `logging.level: Unsupported value: "loud"`, "caps.gracePeriodSeconds: Invalid value: 0"}},
		"invalid flag":  {[]string{"--log-level", "loud"}, []string{`flags: logging.level: Unsupported value: "loud": supported values: "debug", "info", "error"`}},
		"no cluster":    {nil, []string{"no cluster: pass --kubeconfig FILE"}},
		"no kubeconfig": {[]string{"--kubeconfig", missing}, []string{"--kubeconfig", missing, "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			args := append([]string{"--webhook-bind-address", freeAddress(t), "--metrics-bind-address", "0", "--health-bind-address", freeAddress(t)}, c.args...)
			code, _, stderr := runManager(t, args...)
			if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "manager: ") {
				t.Errorf("exit %d and\n%s\nwant exit 1 and one line", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("got %s\nwant …%s…", stderr, want)
				}
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	code, stdout, stderr := runManager(t, "--help")
	if code != 0 || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	for _, o := range overrides {
		if !strings.Contains(stdout, "--"+o.name) {
			t.Errorf("--%s is missing", o.name)
		}
	}
}

func runManager(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.TakeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
