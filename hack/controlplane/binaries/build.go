// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/queueworker/operator/hack/internal/filelock"
)

const tempSuffix = ".building"

// build makes the missing programs in bin, one run at a time per cache.
func (f Finder) build(ctx context.Context, bin string, names []string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return explain(err, f.Cache)
	}
	unlock, err := filelock.Acquire(ctx, filepath.Join(f.Cache, "controlplane", "lock"), func() {
		f.say("Waiting: another run is building the control plane's programs.")
	})
	if err != nil {
		return err
	}
	defer unlock()

	missing := absent(bin, names) // another run may just have built them
	if len(missing) == 0 {
		return nil
	}
	if err := f.checkPrerequisites(ctx); err != nil {
		return err
	}
	f.say("Building %s once, from Go modules into %s.\nFrom cold Go caches all of them take about 8 minutes on two cores and 9 GB of disk (5.5 GB of it build cache); later runs start at once.",
		strings.Join(missing, ", "), bin)
	return f.buildEach(ctx, bin, missing)
}

func (f Finder) buildEach(ctx context.Context, bin string, missing []string) error {
	pins, err := readPins(f.Root)
	if err != nil {
		return err
	}
	for i, p := range wanted(missing) {
		version := pins.versions[p.name]
		_, _ = fmt.Fprintf(f.Log, "  [%d/%d] %-24s %s ... ", i+1, len(missing), p.name, version)
		start := time.Now()
		if err := f.buildOne(ctx, p, version, bin); err != nil {
			f.say("failed after %s", time.Since(start).Round(time.Second))
			return err
		}
		f.say("built in %s", time.Since(start).Round(time.Second))
	}
	return nil
}

func wanted(names []string) []program {
	return slices.DeleteFunc(slices.Clone(programs), func(p program) bool { return !slices.Contains(names, p.name) })
}

// buildOne links into a temporary file first: a program in the cache is always whole.
func (f Finder) buildOne(ctx context.Context, p program, version, bin string) error {
	target := filepath.Join(bin, p.name)
	temp := target + tempSuffix
	defer func() { _ = os.Remove(temp) }()

	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", p.linkerFlags(version), "-o", temp, p.pkg)
	cmd.Dir = filepath.Join(modulesFolder(f.Root), p.folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// An interrupt lets go remove its work folder and its children; a kill would not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("building %s was interrupted", p.name)
		}
		return explain(fmt.Errorf("building %s: %w\n%s", p.name, err, lastLines(output.String(), 15)), f.Cache)
	}
	return os.Rename(temp, target)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
