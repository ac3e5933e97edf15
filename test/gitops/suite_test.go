// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package gitops lets a real Argo CD, as docs/gitops.md sets it up, install the
// operator's chart and sync QueueWorkers from a Git repository onto a real node.
// QW_GITOPS=full lets it idle for ten minutes instead of one.
package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/queueworker/operator/hack/argocd"
	"github.com/queueworker/operator/hack/node/image"
	"github.com/queueworker/operator/hack/node/node"
	"github.com/queueworker/operator/hack/node/onnode"
)

const (
	repository = "../.."
	// reconciliation is Argo CD's own period; by default it is 3 minutes.
	reconciliation = 10 * time.Second
	// patience is how long anything may take that has no limit of its own.
	patience = 6 * time.Minute
)

var full = os.Getenv("QW_GITOPS") == "full"

var suite struct {
	node    *node.Node
	client  kubernetes.Interface
	objects dynamic.Interface
	argocd  *argocd.ArgoCD
	git     gitRepository
	folder  string
}

func TestMain(m *testing.M) {
	onnode.Main(m, setUp, func() error {
		return errors.Join(suite.argocd.Stop(), suite.node.Stop(), os.RemoveAll(suite.folder))
	})
}

func setUp(ctx context.Context) error {
	for _, program := range []string{"redis-server", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing: apt-get install %s", program, program)
		}
	}
	var err error
	if suite.folder, err = os.MkdirTemp("", "queueworker-gitops-"); err != nil {
		return err
	}
	programs, err := argocd.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := startNode(ctx); err != nil {
		return err
	}
	config := suite.node.RESTConfig()
	if suite.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if suite.objects, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if suite.git, err = newRepository(filepath.Join(suite.folder, "platform.git")); err != nil {
		return err
	}
	suite.argocd, err = argocd.Start(ctx, argocd.Options{
		Programs: programs, Cluster: suite.node, Dir: filepath.Join(suite.folder, "argocd"), Reconciliation: reconciliation,
	})
	return err
}

// The worker's image has two versions, which are the same.
var (
	workerImage  = image.Name("worker")
	nextImage    = strings.Replace(workerImage, ":dev", ":next", 1)
	missingImage = strings.Replace(workerImage, ":dev", ":missing", 1)
)

// startNode starts it with the images.
func startNode(ctx context.Context) error {
	builder, err := image.NewBuilder(os.Stderr)
	if err != nil {
		return err
	}
	defer func() { _ = builder.Close() }()
	operator, err := builder.Operator(ctx)
	if err != nil {
		return err
	}
	worker, err := builder.Programs(ctx, "worker", "./test/gitops/worker")
	if err != nil {
		return err
	}
	next := worker
	next.Name = nextImage
	if suite.node, err = node.Start(ctx, node.Options{}); err != nil {
		return err
	}
	return suite.node.Load(ctx, operator, worker, next)
}

// kubectl runs in the root of the repository.
func kubectl(ctx context.Context, stdin string, words ...string) (string, error) {
	return suite.node.RunKubectl(ctx, repository, stdin, words...)
}

func mustKubectl(t *testing.T, stdin string, words ...string) string {
	t.Helper()
	output, err := kubectl(t.Context(), stdin, words...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// eventually waits for a fact, and says what it last saw when it never comes.
func eventually(t *testing.T, what string, fact func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := fact()
		if err == nil {
			return
		}
		if time.Now().After(end) || t.Context().Err() != nil {
			t.Fatalf("after %s still not: %s: %v\nthe end of the controller's log:\n%s",
				patience, what, err, suite.argocd.LastWords("argocd-application-controller", 5))
		}
		time.Sleep(200 * time.Millisecond)
	}
}
