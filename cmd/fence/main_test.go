// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const config = `apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
bindAddress: 127.0.0.1:0
statusAddress: 127.0.0.1:0
httpSeconds: 20
store: {driver: SQLite, dsnFile: FILE}
retention: {doneSeconds: 604800}
providers:
- {name: stripe, url: "https://api.stripe.com", keyHeader: Idempotency-Key, keyTTLSeconds: 86400, storesErrors: true}
- {name: mail, url: "https://mail.example"}
`

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "FILE", filepath.Join(dir, "fence.db"))), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.yaml", config)
	bad := write("bad.yaml", strings.Replace(config, "httpSeconds", "httpSecond", 1))
	noSecret := write("secret.yaml", strings.Replace(config, "driver: SQLite", "driver: MySQL", 1))
	for name, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"version":  {[]string{"-version"}, 0, "dev", ""},
		"help":     {[]string{"-h"}, 0, "", "-config"},
		"flag":     {[]string{"-nonsense"}, 64, "", "-nonsense"},
		"no file":  {[]string{"-config", filepath.Join(dir, "none")}, 64, "", "no such file"},
		"bad file": {[]string{"-config", bad}, 64, "", `unknown field "httpSecond"`},
		"check": {
			[]string{"-config", good, "-check"}, 0,
			"stripe: stores results and errors; reply 17s, lease 19s, quiet after 5m1s, same key sent again for 23h54m59s\n" +
				"mail: nothing; reply 17s, lease 19s, quiet after 5m1s\n", "",
		},
		"no secret": {[]string{"-config", noSecret}, 1, "", "store.dsnFile: open"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), c.args, &stdout, &stderr); code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("code %d, want %d\n%s%s", code, c.code, stdout.String(), stderr.String())
			}
		})
	}
}

// TestServes until it is told to stop.
func TestServes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fence.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "FILE", filepath.Join(dir, "fence.db"))), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr := &stopping{stop: stop, at: "the fence serves"}
	code := run(ctx, []string{"-config", file}, io.Discard, stderr)
	if text := stderr.String(); code != 0 || !strings.Contains(text, "fences nothing across pods") || !strings.Contains(text, "the fence stops") {
		t.Errorf("code %d\n%s", code, text)
	}
}

// stopping sends what SIGTERM sends, once a text was written.
type stopping struct {
	bytes.Buffer
	stop func()
	at   string
}

func (s *stopping) Write(b []byte) (int, error) {
	if strings.Contains(string(b), s.at) {
		s.stop()
	}
	return s.Buffer.Write(b)
}
