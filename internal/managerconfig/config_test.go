// SPDX-License-Identifier: Apache-2.0

package managerconfig_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/internal/managerconfig"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const header = "apiVersion: config.queueworker.dev/v1alpha1\nkind: ManagerConfig\n"

// The defaults are a promise to whoever leaves a field out.
func TestDefaultsAreTheGoldenFile(t *testing.T) {
	const golden = "testdata/defaults.yaml"
	decoded, err := managerconfig.Decode([]byte(header))
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the defaults changed; run with -update if that is meant\ngot:\n%s\nwant:\n%s", got, want)
	}
	if errs := managerconfig.Validate(&decoded); len(errs) > 0 {
		t.Errorf("the defaults are not valid: %v", errs.ToAggregate())
	}
	if _, err := managerconfig.Decode(want); err != nil {
		t.Errorf("the golden file is not a configuration file: %v", err)
	}
}

func TestDecodeKeepsDefaultsOfWhatIsLeftOut(t *testing.T) {
	c, err := managerconfig.Decode([]byte("# ours\n---\n" + header + "webhook:\n  certificates: {mode: Provided}\nlogging: null\ncaps: {gracePeriodSeconds: 120}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Webhook.Certificates.Mode != managerconfig.CertificatesProvided || c.Caps.GracePeriodSeconds != 120 {
		t.Errorf("lost what the file says: %+v", c)
	}
	if c.Webhook.BindAddress != ":9443" || c.Logging.Format != "json" || c.Webhook.Certificates.SecretName == "" {
		t.Errorf("lost a default: %+v", c)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"nothing":          {"# only a comment\n", "empty: expected at least apiVersion: config.queueworker.dev/v1alpha1"},
		"two documents":    {header + "---\n" + header, "more than one document"},
		"broken YAML":      {header + "caps: {gracePeriodSeconds: 1\n", "not YAML: yaml: line "},
		"unknown field":    {header + "webhook: {port: 9443}\n", `unknown field "webhook.port"`},
		"two unknown":      {header + "a: 1\nwebhook: {certs: 1}\n", `unknown field "webhook.certs"`},
		"wrong case":       {header + "watchnamespaces: [shop]\n", `unknown field "watchnamespaces"`},
		"repeated field":   {header + "caps: {}\ncaps: {}\n", `key "caps" already set`},
		"text for number":  {header + "caps: {gracePeriodSeconds: 10m}\n", "caps.gracePeriodSeconds: found a string, expected a whole number (int64)"},
		"fraction":         {header + "caps: {gracePeriodSeconds: 1.5}\n", "caps.gracePeriodSeconds: found a number 1.5, expected a whole number (int64)"},
		"text for list":    {header + "watchNamespaces: shop\n", "watchNamespaces: found a string, expected a list"},
		"number for text":  {header + "metrics: {bindAddress: 0}\n", "metrics.bindAddress: found a number, expected a string (quote it)"},
		"text for struct":  {header + "logging: json\n", "logging: found a string, expected a map of fields"},
		"number for bool":  {header + "leaderElection: {enabled: 1}\n", "leaderElection.enabled: found a number, expected true or false"},
		"list of anything": {"[1, 2]\n", "the document: found a list, expected a map of fields"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := managerconfig.Decode([]byte(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant …%s…", err, c.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	type config = managerconfig.Config
	for name, c := range map[string]struct {
		change func(*config)
		want   string // empty: valid
	}{
		"no version":           {func(c *config) { c.APIVersion = "" }, "apiVersion: Required value: set it to config.queueworker.dev/v1alpha1"},
		"other version":        {func(c *config) { c.APIVersion = "config.queueworker.dev/v1" }, `apiVersion: Unsupported value: "config.queueworker.dev/v1": supported values: "config.queueworker.dev/v1alpha1"`},
		"other kind":           {func(c *config) { c.Kind = "QueueWorker" }, `kind: Unsupported value: "QueueWorker"`},
		"namespace":            {func(c *config) { c.Namespace = "Shop" }, `namespace: Invalid value: "Shop"`},
		"watched":              {func(c *config) { c.WatchNamespaces = []string{"a", "b"} }, ""},
		"watched twice":        {func(c *config) { c.WatchNamespaces = []string{"a", "b", "a"} }, `watchNamespaces[2]: Duplicate value: "a"`},
		"watched, empty":       {func(c *config) { c.WatchNamespaces = []string{""} }, `watchNamespaces[0]: Invalid value: ""`},
		"cap 1":                {func(c *config) { c.Caps.GracePeriodSeconds = 1 }, ""},
		"cap 0":                {func(c *config) { c.Caps.GracePeriodSeconds = 0 }, "caps.gracePeriodSeconds: Invalid value: 0: must be from 1 to 31536000"},
		"cap too large":        {func(c *config) { c.Caps.GracePeriodSeconds = 31_536_001 }, "caps.gracePeriodSeconds: Invalid value: 31536001"},
		"agent":                {func(c *config) { c.Agent.Image = "registry.example/operator@sha256:00" }, ""},
		"agent with a blank":   {func(c *config) { c.Agent.Image = "operator: 1" }, `agent.image: Invalid value: "operator: 1": must hold no blank`},
		"no reconcile":         {func(c *config) { c.Controller.MaxConcurrentReconciles = 0 }, "controller.maxConcurrentReconciles: Invalid value: 0: must be from 1 to 100"},
		"stop at once":         {func(c *config) { c.ShutdownTimeoutSeconds = 0 }, "shutdownTimeoutSeconds: Invalid value: 0: must be from 1 to 600"},
		"loopback":             {func(c *config) { c.Health.BindAddress = "127.0.0.1:8081" }, ""},
		"IPv6":                 {func(c *config) { c.Health.BindAddress = "[::1]:8081" }, ""},
		"no port":              {func(c *config) { c.Health.BindAddress = "localhost" }, `health.bindAddress: Invalid value: "localhost": must be host:port`},
		"port 0":               {func(c *config) { c.Webhook.BindAddress = ":0" }, `webhook.bindAddress: Invalid value: ":0"`},
		"port too large":       {func(c *config) { c.Webhook.BindAddress = ":65536" }, `webhook.bindAddress: Invalid value: ":65536"`},
		"same port":            {func(c *config) { c.Metrics.BindAddress = "127.0.0.1:9443" }, "metrics.bindAddress: Invalid value: \"127.0.0.1:9443\": has the same port as webhook.bindAddress"},
		"metrics off":          {func(c *config) { c.Metrics.BindAddress = "0" }, ""},
		"health off":           {func(c *config) { c.Health.BindAddress = "0" }, `health.bindAddress: Invalid value: "0"`},
		"policy Fail":          {func(c *config) { c.Webhook.FailurePolicy = "Fail" }, ""},
		"policy":               {func(c *config) { c.Webhook.FailurePolicy = "fail" }, `webhook.failurePolicy: Unsupported value: "fail": supported values: "Ignore", "Fail"`},
		"mode":                 {func(c *config) { c.Webhook.Certificates.Mode = "cert-manager" }, `webhook.certificates.mode: Unsupported value: "cert-manager": supported values: "Self", "Provided"`},
		"provided":             {func(c *config) { c.Webhook.Certificates.Mode = "Provided" }, ""},
		"relative":             {func(c *config) { c.Webhook.Certificates.Mode, c.Webhook.Certificates.Directory = "Provided", "certs" }, `webhook.certificates.directory: Invalid value: "certs": must be an absolute path`},
		"no Secret":            {func(c *config) { c.Webhook.Certificates.SecretName = "" }, "webhook.certificates.secretName: Invalid value: \"\""},
		"no configuration":     {func(c *config) { c.Webhook.ConfigurationName = "" }, "webhook.configurationName: Invalid value: \"\""},
		"url":                  {func(c *config) { c.Webhook.URL = "https://localhost:9443" }, ""},
		"url, plain":           {func(c *config) { c.Webhook.URL = "http://localhost:9443" }, "webhook.url: Invalid value: \"http://localhost:9443\": must be https://host:port"},
		"url, path":            {func(c *config) { c.Webhook.URL = "https://localhost:9443/validate" }, "webhook.url: Invalid value"},
		"url, address":         {func(c *config) { c.Webhook.URL = "https://127.0.0.1:9443" }, "must name a host, not an IP address"},
		"url, own certificate": {func(c *config) { c.Webhook.URL, c.Webhook.Certificates.Mode = "https://10.0.0.1:9443", "Provided" }, ""},
		"url, nonsense":        {func(c *config) { c.Webhook.URL = "https://%zz" }, "webhook.url: Invalid value"},
		"renew":                {func(c *config) { c.LeaderElection.RenewDeadlineSeconds = 2 }, "leaderElection.renewDeadlineSeconds: Invalid value: 2: must be above retryPeriodSeconds 2"},
		"lease":                {func(c *config) { c.LeaderElection.LeaseDurationSeconds = 10 }, "leaderElection.leaseDurationSeconds: Invalid value: 10: must be above renewDeadlineSeconds 10"},
		"retry":                {func(c *config) { c.LeaderElection.RetryPeriodSeconds = 0 }, "leaderElection.retryPeriodSeconds: Invalid value: 0: must be from 1 to 3600"},
		"no election":          {func(c *config) { c.LeaderElection = managerconfig.LeaderElection{} }, ""},
		"format":               {func(c *config) { c.Logging.Format = "text" }, `logging.format: Unsupported value: "text": supported values: "json", "console"`},
		"level":                {func(c *config) { c.Logging.Level = "warn" }, `logging.level: Unsupported value: "warn": supported values: "debug", "info", "error"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := managerconfig.Default()
			c.change(&cfg)
			errs := managerconfig.Validate(&cfg)
			switch {
			case c.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)):
				t.Errorf("got %v\nwant one error: …%s…", errs.ToAggregate(), c.want)
			}
		})
	}
}

// A file that does not say what it is may have been meant for something else.
func TestAFileStatesItsKind(t *testing.T) {
	c, err := managerconfig.Decode([]byte("caps: {gracePeriodSeconds: 120}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if errs := managerconfig.Validate(&c); len(errs) != 2 {
		t.Errorf("got %v, want apiVersion and kind to be required", errs.ToAggregate())
	}
}

func TestValidateTellsEveryFault(t *testing.T) {
	cfg := managerconfig.Default()
	cfg.Logging.Level, cfg.Caps.GracePeriodSeconds, cfg.Namespace = "loud", -1, "_"
	if errs := managerconfig.Validate(&cfg); len(errs) != 3 {
		t.Errorf("%d errors, want 3: %v", len(errs), errs.ToAggregate())
	}
}
