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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/queueworker/operator/hack/argocd"
	"github.com/queueworker/operator/hack/node/image"
	"github.com/queueworker/operator/hack/node/node"
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
}

func TestMain(m *testing.M) {
	if node.Inside() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	for _, program := range []string{"redis-server", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			return 1, fmt.Errorf("%s is missing: apt-get install %s", program, program)
		}
	}
	folder, err := os.MkdirTemp("", "queueworker-gitops-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, suite.argocd.Stop(), suite.node.Stop(), os.RemoveAll(folder)) }()
	if err := setUp(ctx, folder); err != nil {
		return 1, err
	}
	uninterrupted := context.AfterFunc(ctx, func() { // a test has no other way to hear of an interrupt
		_ = errors.Join(suite.argocd.Stop(), suite.node.Stop(), os.RemoveAll(folder))
		os.Exit(1)
	})
	defer uninterrupted() // the context is also over once all is done
	return m.Run(), nil
}

func setUp(ctx context.Context, folder string) error {
	programs, err := argocd.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	images, err := makeImages(ctx)
	if err != nil {
		return err
	}
	if suite.node, err = node.Start(ctx, node.Options{}); err != nil {
		return err
	}
	if err := images(suite.node); err != nil {
		return err
	}
	config := suite.node.RESTConfig()
	if suite.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if suite.objects, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if suite.git, err = newRepository(filepath.Join(folder, "platform.git")); err != nil {
		return err
	}
	suite.argocd, err = argocd.Start(ctx, argocd.Options{
		Programs: programs, Cluster: suite.node, Dir: filepath.Join(folder, "argocd"), Reconciliation: reconciliation,
	})
	return err
}

// The worker's image has two versions, which are the same.
var (
	workerImage  = image.Name("worker")
	nextImage    = strings.Replace(workerImage, ":dev", ":next", 1)
	missingImage = strings.Replace(workerImage, ":dev", ":missing", 1)
)

// makeImages returns what gives them to a node.
func makeImages(ctx context.Context) (func(*node.Node) error, error) {
	builder, err := image.NewBuilder(os.Stderr)
	if err != nil {
		return nil, err
	}
	operator, err := builder.Operator(ctx)
	if err != nil {
		return nil, err
	}
	worker, err := builder.Programs(ctx, "worker", "./test/gitops/worker")
	if err != nil {
		return nil, err
	}
	next := worker
	next.Name = nextImage
	return func(n *node.Node) error {
		return errors.Join(n.Load(ctx, operator, worker, next), builder.Close())
	}, nil
}

// kubectl runs one command as a person would, in the root of the repository.
func kubectl(ctx context.Context, stdin string, words ...string) (string, error) {
	command := exec.CommandContext(ctx, suite.node.Kubectl(), words...)
	command.Dir = repository
	command.Env = append(os.Environ(), "KUBECONFIG="+suite.node.KubeconfigPath())
	command.Stdin = strings.NewReader(stdin)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(words, " "), err, output)
	}
	return string(output), err
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
