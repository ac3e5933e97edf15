// SPDX-License-Identifier: Apache-2.0

// Package node starts a real Kubernetes node on this machine, with its control plane, and removes every trace of it afterwards:
// containerd, kubelet and kube-proxy beside what package cluster starts. Root and Debian only.
//
// Everything runs in a process, a mount and a network namespace of its own. The kernel ends all that is in them with their first
// process, so however a node ends, no process, mount, network device or firewall rule of it stays.
package node

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/internal/janitor"
)

// Name is the node's name in the cluster.
const Name = "node"

// Options say how to start a node. The zero value is a good one.
type Options struct {
	// Dir holds all state and is removed by Stop. It must not exist yet. Empty means a new folder in the temporary folder.
	Dir string
	// Log receives progress (mostly of a first build). Nil means standard error.
	Log io.Writer
}

// Node is a running node with its control plane.
type Node struct {
	dir     string
	kubectl string
	config  *rest.Config
	first   *firstProcess
	owner   io.Closer
	cleaner *janitor.Janitor
	stop    sync.Once
	stopErr error
}

// Start finds or builds the programs, starts them and returns when the node is Ready and Services are routed. The calling program
// must begin with [Inside]. When Start fails or ctx ends first, nothing is left behind. Once it has returned, ctx has no further
// effect.
func Start(ctx context.Context, options Options) (*Node, error) {
	if options.Log == nil {
		options.Log = os.Stderr
	}
	if err := Requirements(); err != nil {
		return nil, err
	}
	finder, err := binaries.FromEnv(options.Log)
	if err != nil {
		return nil, err
	}
	programs, err := finder.Ensure(ctx, binaries.Node()...)
	if err != nil {
		return nil, err
	}
	n := &Node{kubectl: programs[binaries.Kubectl]}
	if err := n.start(ctx, options, programs); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, options Options, programs map[string]string) error {
	if err := n.prepare(options.Dir); err != nil {
		return err
	}
	if err := makeCgroups(CgroupName(n.dir)); err != nil {
		return fmt.Errorf("making cgroups: %w", err)
	}
	var err error
	if n.first, err = startFirst(n.dir, programs); err != nil {
		return err
	}
	if err := n.first.waitReady(ctx); err != nil {
		return err
	}
	if n.config, err = clientcmd.BuildConfigFromFlags("", n.KubeconfigPath()); err != nil {
		return err
	}
	n.config.QPS = -1 // no client-side limit
	return n.loadPause(ctx, options.Log)
}

// prepare makes the state folder and sees to it that it does not outlive us.
func (n *Node) prepare(wanted string) error {
	var err error
	if wanted == "" {
		wanted, err = os.MkdirTemp("", "queueworker-node-")
	} else if err = os.MkdirAll(filepath.Dir(wanted), 0o755); err == nil {
		err = os.Mkdir(wanted, 0o700)
	}
	if err != nil {
		return err
	}
	if n.dir, err = filepath.Abs(wanted); err != nil {
		return err
	}
	if n.cleaner, err = janitor.Start(cleanScript, n.dir, CgroupName(n.dir)); err != nil {
		return errors.Join(err, os.RemoveAll(n.dir))
	}
	n.owner, err = cluster.Claim(n.dir)
	return err
}

//go:embed clean.sh
var cleanScript string

// CgroupName is the node's own place in every cgroup hierarchy. It follows from the folder, so that whoever finds the folder
// after a crash finds the cgroups too.
func CgroupName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "queueworker-node-" + hex.EncodeToString(sum[:6])
}

// Stop ends everything and returns when nothing is left. Calling it again does nothing.
func (n *Node) Stop() error {
	if n == nil {
		return nil
	}
	n.stop.Do(func() {
		n.first.kill()
		if n.cleaner != nil {
			if err := n.cleaner.Finish(); err != nil {
				n.stopErr = fmt.Errorf("removing %s: %w", n.dir, err)
			}
		}
		if n.owner != nil {
			_ = n.owner.Close()
		}
	})
	return n.stopErr
}

// Clean removes what a node with this folder has left on the machine, where neither it nor its janitor came to do so. It must not
// be running.
func Clean(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", cleanScript, "clean", dir, CgroupName(dir))
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("removing %s and its cgroups: %w\n%s", dir, err, output)
	}
	return nil
}

// KubeconfigPath is a file that gives full rights, on this machine and inside the node alike, valid until Stop.
func (n *Node) KubeconfigPath() string { return Kubeconfig(n.dir) }

// Kubeconfig is the path of the kubeconfig of a node with this folder.
func Kubeconfig(dir string) string { return filepath.Join(dir, controlPlane, "kubeconfig") }

// RESTConfig returns a new client configuration with full rights and no rate limit.
func (n *Node) RESTConfig() *rest.Config { return rest.CopyConfig(n.config) }

// Kubectl is the path of the kubectl with the API server's version.
func (n *Node) Kubectl() string { return n.kubectl }

// RunKubectl runs one kubectl command as a person with full rights would, in a folder (empty = this one), and returns what it
// prints, warnings included.
func (n *Node) RunKubectl(ctx context.Context, folder, stdin string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, n.kubectl, words...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.KubeconfigPath())
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return string(out), err
}

// LogsDir holds one file per component, until Stop.
func (n *Node) LogsDir() string { return filepath.Join(n.dir, controlPlane, "logs") }

// Failed yields once if a component ends that nobody asked to end.
func (n *Node) Failed() <-chan error { return n.first.failed }

// Command is a command that runs inside the node: with its processes, its file system and its network.
func (n *Node) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	inside := []string{"--target", strconv.Itoa(n.first.cmd.Process.Pid), "--mount", "--net", "--pid", "--", name}
	return exec.CommandContext(ctx, "nsenter", append(inside, args...)...)
}
