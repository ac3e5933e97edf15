// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/queueworker/operator/hack/internal/buildtags"
)

// Platforms are those of the operator's image.
var Platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// Host is this machine's.
var Host = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// Program is a static program of this repository for a platform. Neither the folder, nor git, nor what the builder's own
// environment sets gets into it.
type Program struct {
	Root     string // of the repository
	Package  string // such as ./cmd/agent
	Version  string // of the variable main.version
	Platform v1.Platform
}

// Build writes the program to a file.
func (p Program) Build(ctx context.Context, target string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", buildtags.Operator,
		"-ldflags", "-s -w -X main.version="+p.Version, "-o", target, p.Package)
	command.Dir = p.Root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.Platform.OS, "GOARCH="+p.Platform.Architecture,
		"GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s for %s: %w\n%s", p.Package, p.Platform, err, output)
	}
	return nil
}
