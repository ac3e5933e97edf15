// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queueworker/operator/hack/images/oci"
)

// From the operator as it was, its chart and its programs built from that commit, to the one of this source: workers stay as they
// are. Which commit is the last release's tag, before the first release the first commit that has the chart.
func TestUpgradeFromEarlierOperator(t *testing.T) {
	commit := earlier(t)
	source := filepath.Join(suite.folder, "earlier")
	if err := os.MkdirAll(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("/bin/sh", "-c", `git -C "$1" archive "$2" | tar -C "$3" -x`, "sh", root, commit, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := load(t.Context(), source, "0.0.1", oci.Host); err != nil {
		t.Fatal(err)
	}
	earlierChart, err := filepath.Abs(filepath.Join(source, chart))
	if err != nil {
		t.Fatal(err)
	}
	installed(t, earlierChart, "--set", "image.tag=0.0.1")
	applied(t, "steady", 2)
	applied(t, "scaled", 1)
	before := picture(t, "steady")

	helm(t, "upgrade", release, chart, "--namespace", system, "--reset-then-reuse-values", "--set", "image.tag=")
	works(t)
	scaled(t, "scaled", 2)
	untouched(t, "steady", before)
	rolled(t, "scaled", "2")
	settled(t, "scaled", 2)
	untouched(t, "steady", before)
	t.Logf("upgraded from %s", commit)
}

// earlier is the commit to start from.
func earlier(t *testing.T) string {
	t.Helper()
	git := func(words ...string) string {
		out, _ := exec.Command("git", append([]string{"-C", root}, words...)...).Output() // empty where there is no history
		return strings.TrimSpace(string(out))
	}
	if tag := git("describe", "--tags", "--abbrev=0", "HEAD^"); tag != "" {
		return tag
	}
	added := strings.Fields(git("log", "--format=%H", "--diff-filter=A", "--", chart+"/Chart.yaml"))
	if len(added) == 0 {
		t.Skip("there is no history here to take an earlier operator from")
	}
	return added[len(added)-1]
}
