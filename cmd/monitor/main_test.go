// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/agent/selfcopy/selfcopytest"
	"github.com/queueworker/operator/internal/monitor"
)

// The monitor is copied into other people's images, as the agent is.
func TestImportsStayInTheStandardLibrary(t *testing.T) {
	selfcopytest.Imports(t, "cmd/monitor", "internal/timeoutchain", "internal/monitor")
}

func TestBinaryIsSmall(t *testing.T) { selfcopytest.Size(t, 8<<20) }

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	sound := monitor.Config{Namespace: "shop", Name: "payments", Runtime: "Laravel", IntervalSeconds: 30, StuckAfterSeconds: 270, MetricsAddress: ":9464"}.Encode()
	worker := []string{"--", "php", "artisan", "queue:work"}
	for name, c := range map[string]struct {
		config string
		args   []string
		want   string // empty = accepted
	}{
		"sound":      {sound, append([]string{"--service-account="}, worker...), ""},
		"no config":  {"", worker, monitor.ConfigEnv},
		"no command": {sound, nil, "no words `php artisan queue:work`"},
		"no pod":     {sound, worker, "KUBERNETES_SERVICE_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(monitor.ConfigEnv, c.config)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			f, err := parseRun(append([]string{"--dir=" + t.TempDir()}, c.args...))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.watcher()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, args := range [][]string{nil, {"watch"}, {"run", "--nonsense"}, {"copy", "--nonsense"}} {
		if code := dispatch(args); code != exitUsage {
			t.Errorf("%q ended with %d", args, code)
		}
	}
}
