// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/queueworker/operator/hack/images/oci"
	"github.com/queueworker/operator/hack/node/node"
	"github.com/queueworker/operator/hack/node/onnode"
)

const (
	root       = "../.."
	repository = "queueworker/operator" // the chart's own
)

// suite is what every test uses: one node, the helm command, and images in the node.
var suite struct {
	node   *node.Node
	helm   string // the program
	folder string
}

func TestMain(m *testing.M) {
	onnode.Main(m, setUp, func() error { return errors.Join(suite.node.Stop(), os.RemoveAll(suite.folder)) })
}

func setUp(ctx context.Context) error {
	start := time.Now()
	if err := node.Requirements(); err != nil {
		return err
	}
	var err error
	if suite.folder, err = os.MkdirTemp("", "queueworker-install-"); err != nil {
		return err
	}
	if err := buildHelm(ctx); err != nil {
		return err
	}
	helm := time.Now()
	if suite.node, err = node.Start(ctx, node.Options{}); err != nil {
		return err
	}
	up := time.Now()
	if err := load(ctx, root, "0.1.0", oci.Platforms...); err != nil {
		return err
	}
	if err := load(ctx, root, "0.1.1", oci.Host); err != nil {
		return err
	}
	fmt.Printf("helm built in %.1f s, node Ready after %.1f s, two images made and loaded in %.1f s\n",
		helm.Sub(start).Seconds(), up.Sub(helm).Seconds(), time.Since(up).Seconds())
	return nil
}

// buildHelm builds the command of the version that hack/chart pins: Helm is no dependency of the product's.
func buildHelm(ctx context.Context) error {
	suite.helm = filepath.Join(suite.folder, "helm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", suite.helm, "helm.sh/helm/v4/cmd/helm")
	cmd.Dir = filepath.Join(root, "hack", "chart")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building helm: %w\n%s", err, output)
	}
	return nil
}

// load writes the operator's image as `make image` does and gives the node the archive.
func load(ctx context.Context, source, version string, platforms ...v1.Platform) error {
	certificates, _, err := oci.Certificates(oci.CertificatesFile)
	if err != nil {
		return err
	}
	recipe := oci.Operator{
		Root: source, Programs: programsIn(source), Version: version, Certificates: certificates, Created: time.Unix(0, 0),
	}
	index, err := recipe.Index(ctx, platforms...)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(repository + ":" + version)
	if err != nil {
		return err
	}
	file := filepath.Join(suite.folder, "operator-"+version+".tar")
	if err := oci.WriteArchive(file, index, tag); err != nil {
		return err
	}
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	return suite.node.Import(ctx, archive)
}

// programsIn are the operator's programs that a source has: an earlier one has fewer.
func programsIn(source string) []string {
	return slices.DeleteFunc(slices.Clone(oci.OperatorPrograms), func(program string) bool {
		_, err := os.Stat(filepath.Join(source, program))
		return err != nil
	})
}

// helm runs one command as a person would.
func helm(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), suite.helm, words...)
	cmd.Dir = root
	cmd.Env = []string{"KUBECONFIG=" + suite.node.KubeconfigPath(), "HOME=" + suite.folder, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// kubectl runs in the root of the repository.
func kubectl(ctx context.Context, stdin string, words ...string) (string, error) {
	return suite.node.RunKubectl(ctx, root, stdin, words...)
}

func mustKubectl(t *testing.T, words ...string) string {
	t.Helper()
	out, err := kubectl(t.Context(), "", words...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// patience is how long anything may take that has no limit of its own: the machine may be shared.
const patience = 5 * time.Minute

// eventually waits for a fact, and says what was waited for when it never comes.
func eventually(t *testing.T, what string, fact func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := fact()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s still not: %s: %v", patience, what, err)
		}
	}
}
