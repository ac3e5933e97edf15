// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gitops

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// refreshes are the reasons for which Argo CD compared an Application with Git,
// in order. A refresh of level 0 only shows anew what an object is like: the
// kubelet writes a pod's status now and then.
func refreshes(t *testing.T, name string) []string {
	t.Helper()
	log, err := suite.argocd.Log("argocd-application-controller")
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for line := range strings.Lines(string(log)) {
		if match := refresh.FindStringSubmatch(line); match != nil && match[2] != "0" && strings.Contains(line, " application="+name+" ") {
			reasons = append(reasons, match[1])
		}
	}
	return reasons
}

var refresh = regexp.MustCompile(`msg="Refreshing app status \(([^,)]*).*, level \((\d)\)"`)

// writes is how many requests for a change of QueueWorkers the API server has
// had, also of those that changed nothing.
func writes(t *testing.T) (count float64) {
	t.Helper()
	metrics, err := suite.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="queueworkers"`) {
			continue
		}
		found = true
		if reading.MatchString(line) {
			continue
		}
		number, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:len(line)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		count += number
	}
	if !found {
		t.Fatal("the API server counts no request for QueueWorkers")
	}
	return count
}

var reading = regexp.MustCompile(`verb="(GET|LIST|WATCH|CONNECT)"`)

func idleTime(t *testing.T) {
	idle := time.Minute
	if full {
		idle = 10 * time.Minute
	}
	becomes(t, shop, "Synced", "Healthy")
	seen := record(t, shop)
	compared(t, shop, 1)
	before, reasons := writes(t), len(refreshes(t, shop))
	if before == 0 {
		t.Fatal("no write was counted so far: this shows nothing")
	}
	time.Sleep(idle)
	during := refreshes(t, shop)[reasons:]
	t.Logf("%s: %v writes of QueueWorkers, %d refreshes for %q, states %q", idle, writes(t)-before, len(during), during, seen.all())
	if n := writes(t) - before; n != 0 {
		t.Errorf("%v writes of QueueWorkers in %s without a change", n, idle)
	}
	if most := int(idle/reconciliation) + 1; len(during) > most || len(during) == 0 {
		t.Errorf("%d refreshes in %s, want some and at most %d", len(during), idle, most)
	}
	seen.never(t, "OutOfSync", "Progressing", "Degraded")
}

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// indented puts a block below the spec.
func indented(block string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n  ") + "\n"
}
