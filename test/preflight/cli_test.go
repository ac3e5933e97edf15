// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	judge "github.com/queueworker/operator/internal/preflight"
)

const worker = `apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata: {name: payments, namespace: shop}
spec:
  queue: {connection: redis}
  timeouts: {httpSeconds: 20, jobSeconds: 30, retryAfterSeconds: 90}
  worker: {php: php8.2}
  template: {spec: {containers: [{name: worker, image: registry.example/shop:1}]}}
`

// cli runs the plugin on the application with a QueueWorker.
func (a *app) cli(text string, flags ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	program, err := plugin()
	if err != nil {
		a.t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"preflight", "--app", a.dir, "-"}, flags...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", a.env, strings.NewReader(text)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		a.t.Fatal(err)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

// The command line says of a folder what the pod would say, in the form of lint.
func TestCommandLineAgreesWithTheAgent(t *testing.T) {
	for name, change := range map[string]func(*app){
		"sound":         func(*app) {},
		"class":         func(a *app) { a.job("Export", "    public $timeout = 600;") },
		"warning":       func(a *app) { a.set("CACHE_DRIVER", "file") },
		"not verified":  func(a *app) { a.set("REDIS_PORT", freePort(a.t)) },
		"configuration": func(a *app) { a.edit("config/queue.php", "(int) env('REDIS_QUEUE_RETRY_AFTER', 90)", "30") },
		"no start":      func(a *app) { provider(a, "throw new \\LogicException('no shop');") },
		"all of it": func(a *app) {
			a.job("Export", "    public $timeout = 600;")
			a.set("CACHE_DRIVER", "file")
			a.set("REDIS_PREFIX", "")
			a.set("REDIS_QUEUE_BLOCK_FOR", "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			change(a)
			verdict := a.judge()
			stdout, stderr, code := a.cli(worker, "-o", "json")
			var report struct {
				Files []struct {
					File, Object, Verdict string
					Findings              []struct{ Rule, Severity, Field, Message, Fix string }
				}
			}
			if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Files) != 1 {
				t.Fatalf("%v: %s%s", err, stdout, stderr)
			}
			entry := report.Files[0]
			var got, want []string
			for _, f := range entry.Findings {
				got = append(got, f.Rule+" "+f.Severity+" "+f.Message)
				if !strings.HasPrefix(f.Field, "spec") {
					t.Errorf("%s is at %q", f.Rule, f.Field)
				}
			}
			for _, f := range verdict.Findings {
				want = append(want, f.Rule+" "+string(f.Severity)+" "+f.Text())
			}
			if !slices.Equal(got, want) {
				t.Errorf("the command line says\n%s\nthe agent says\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			wantCode, wantVerdict := 0, "accept"
			if verdict.Outcome == judge.Refused {
				wantCode, wantVerdict = 1, "reject"
			}
			if code != wantCode || entry.Verdict != wantVerdict || entry.Object != "shop/payments" {
				t.Errorf("exit code %d, verdict %s of %s", code, entry.Verdict, entry.Object)
			}
		})
	}
}

func TestCommandLineExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		change func(*app)
		flags  []string
		code   int
		want   string
	}{
		"sound":          {worker, nil, nil, 0, "shop/payments accepted"},
		"warning":        {worker, func(a *app) { a.set("CACHE_DRIVER", "file") }, nil, 0, "restart-store-not-shared"},
		"strict":         {worker, func(a *app) { a.set("CACHE_DRIVER", "file") }, []string{"--strict"}, 1, "restart-store-not-shared"},
		"hung":           {worker, func(a *app) { provider(a, "sleep(600);") }, []string{"--timeout=3s"}, 2, "preflight-unfinished"},
		"another php":    {worker, nil, []string{"--php", "php7.0"}, 1, "php-missing"},
		"no such worker": {worker, nil, []string{"--name", "mails"}, 2, "holds no QueueWorker named mails"},
		"no such folder": {worker, nil, []string{"--app", "/nowhere"}, 2, "there is no such folder"},
		"not readable":   {strings.Replace(worker, "jobSeconds: 30", "jobSeconds: x", 1), nil, nil, 2, "jobSeconds"},
		"a reference counts": {
			strings.Replace(worker, "image:", "env: [{name: STORE, value: file}, {name: CACHE_DRIVER, value: $(STORE)}], image:", 1),
			nil, nil, 0, "restart-store-not-shared",
		},
		"a Secret is not seen": {
			strings.Replace(worker, "image:", "env: [{name: CACHE_DRIVER, valueFrom: {secretKeyRef: {name: shop, key: cache}}}], image:", 1),
			nil, nil, 0, "CACHE_DRIVER (Secret shop)",
		},
		"a Secret that is given": {
			strings.Replace(worker, "image:", "env: [{name: CACHE_DRIVER, valueFrom: {secretKeyRef: {name: shop, key: cache}}}], image:", 1),
			func(a *app) { a.set("CACHE_DRIVER", "file") }, nil, 0, "restart-store-not-shared",
		},
		"plain env counts": {strings.Replace(worker, "image:", "env: [{name: CACHE_DRIVER, value: file}], image:", 1), nil, nil, 0, "restart-store-not-shared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			if c.change != nil {
				c.change(a)
			}
			stdout, stderr, code := a.cli(c.text, c.flags...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
			}
		})
	}
}
