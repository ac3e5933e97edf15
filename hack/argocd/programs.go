// SPDX-License-Identifier: Apache-2.0

// Package argocd builds a real Argo CD from pinned Go modules and runs what of
// it syncs, the application controller and the repo server with their Redis, as
// processes of this machine against a cluster.
package argocd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/internal/filelock"
)

// The modules that pin what is built. Argo CD runs helm for a chart: the one that the chart is tested with.
const (
	argoModule = "hack/argocd/modules/argocd"
	helmModule = "hack/chart"
)

// Programs are paths.
type Programs struct {
	argocd, helm string
	manifests    string // Argo CD's own
}

// Build makes the programs, or finds them in the cache. The first time takes
// about 5 minutes on two cores.
func Build(ctx context.Context, log io.Writer) (Programs, error) {
	finder, err := binaries.FromEnv(log)
	if err != nil {
		return Programs{}, err
	}
	var p Programs
	if p.argocd, err = build(ctx, finder, "argocd", argoModule, "github.com/argoproj/argo-cd/v2/cmd"); err != nil {
		return Programs{}, err
	}
	if p.helm, err = build(ctx, finder, "helm", helmModule, "helm.sh/helm/v4/cmd/helm"); err != nil {
		return Programs{}, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-cd/v2")
	list.Dir = filepath.Join(finder.Root, argoModule)
	folder, err := list.Output()
	p.manifests = filepath.Join(strings.TrimSpace(string(folder)), "manifests")
	return p, err
}

// build makes one program. Its place in the cache follows from the pins.
func build(ctx context.Context, finder binaries.Finder, name, module, pkg string) (string, error) {
	key, err := digest(filepath.Join(finder.Root, module))
	if err != nil {
		return "", err
	}
	folder := filepath.Join(finder.Cache, "argocd")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	program := filepath.Join(folder, name+"-"+key)
	unlock, err := filelock.Acquire(ctx, filepath.Join(folder, "lock"), func() {
		_, _ = fmt.Fprintln(finder.Log, "Waiting: another run is building Argo CD.")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	_, _ = fmt.Fprintf(finder.Log, "Building %s once, into %s ... ", pkg, folder)
	start := time.Now()
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program+".building", pkg)
	command.Dir = filepath.Join(finder.Root, module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, output)
	}
	_, _ = fmt.Fprintf(finder.Log, "built in %s\n", time.Since(start).Round(time.Second))
	return program, os.Rename(program+".building", program)
}

func digest(module string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}
