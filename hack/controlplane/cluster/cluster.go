// SPDX-License-Identifier: Apache-2.0

// Package cluster starts a Kubernetes control plane on this machine's loopback interface and removes every trace of it afterwards:
// etcd, kube-apiserver and kube-controller-manager and, with simulated nodes, kube-scheduler and kwok.
// Linux only.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/internal/janitor"
)

// startTimeout bounds each wait for a component. The slowest takes 3 s on an idle machine.
const startTimeout = 4 * time.Minute

// Options say what to start. The zero value is a control plane without nodes: pods are made and stay Pending.
type Options struct {
	// Nodes is the number of simulated nodes (kwok). Pods that the scheduler places there become Ready at once,
	// and count as if they had been for ages.
	Nodes int
	// TerminatingFor is how long a deleted pod on a simulated node stays Terminating; 0 means it is gone at once.
	// The annotation TerminatingForAnnotation overrides it for one pod.
	TerminatingFor time.Duration
	// NodeAddress is for a real node (hack/node), which is none of the simulated ones: the address of this machine at which its
	// pods reach the API server. The scheduler and every controller run, the API server listens on all addresses and its
	// certificate holds this one.
	NodeAddress net.IP
	// Port of the API server; 0 picks a free one.
	Port int
	// Dir holds all state and is removed by Stop. It must not exist yet. Empty means a new folder in the temporary folder.
	Dir string
	// Log receives progress (mostly of a first build). Nil means standard error.
	Log io.Writer
	// ExtraAPIServerArgs, ExtraControllerManagerArgs and ExtraSchedulerArgs are appended, so they win over the defaults.
	ExtraAPIServerArgs         []string
	ExtraControllerManagerArgs []string
	ExtraSchedulerArgs         []string
}

// Cluster is a running control plane.
type Cluster struct {
	options     Options
	dir         string
	programs    map[string]string
	ports       ports
	janitor     *janitor.Janitor
	owner       *os.File // locked while this process lives
	credentials credentials
	config      *rest.Config

	foreign           bool // the user's own cluster: nothing here may be stopped
	foreignKubeconfig string

	mu        sync.Mutex
	processes []*process // in start order
	stopping  bool
	failed    chan error
}

// Start finds or builds the programs, starts them and returns when the API server is ready, the default ServiceAccount exists
// (so that pods can be created) and every simulated node is Ready. When it fails or ctx ends first, nothing is left behind.
// Once it has returned, ctx has no further effect.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Log == nil {
		options.Log = os.Stderr
	}
	finder, err := binaries.FromEnv(options.Log)
	if err != nil {
		return nil, err
	}
	programs, err := finder.Ensure(ctx, programsFor(options)...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, programs: programs, failed: make(chan error, 1)}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(explain(err, c.dir), c.Stop())
	}
	return c, nil
}

func programsFor(options Options) []string {
	names := []string{binaries.Etcd, binaries.APIServer, binaries.ControllerManager, binaries.Kubectl}
	if options.Nodes > 0 {
		names = append(names, binaries.Kwok)
	}
	if options.Nodes > 0 || options.NodeAddress != nil {
		names = append(names, binaries.Scheduler)
	}
	return names
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.run(ctx, c.etcd()); err != nil {
		return err
	}
	if err := c.run(ctx, c.apiServer()); err != nil {
		return err
	}
	if err := c.createNodes(ctx); err != nil {
		return err
	}
	return c.run(ctx, c.clients()...)
}

// prepare makes the state folder, reserves the ports and writes keys, tokens and configuration.
func (c *Cluster) prepare() error {
	var err error
	if c.dir, err = makeDir(c.options.Dir); err != nil {
		return err
	}
	if err := checkSpace(c.dir); err != nil {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	if c.janitor, err = janitor.Start(removeFolder, c.dir); err != nil {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	if c.owner, err = Claim(c.dir); err != nil {
		return err
	}
	if c.ports, err = reservePorts(c.options.Port); err != nil {
		return err
	}
	if c.credentials, err = writeCredentials(c.dir, c.ports.apiServer.number(), c.options.NodeAddress); err != nil {
		return err
	}
	if c.config, err = restConfig(c.KubeconfigPath()); err != nil {
		return err
	}
	if c.options.Nodes == 0 {
		return nil
	}
	return writeStages(c.stagesPath(), c.options.TerminatingFor)
}

func makeDir(wanted string) (string, error) {
	if wanted == "" {
		return os.MkdirTemp("", "queueworker-controlplane-")
	}
	if err := os.MkdirAll(filepath.Dir(wanted), 0o755); err != nil {
		return "", err
	}
	return wanted, os.Mkdir(wanted, 0o700)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no client-side limit: tests must measure the server, not the client
	return config, nil
}

// KubeconfigPath is a file that gives full rights, valid until Stop.
func (c *Cluster) KubeconfigPath() string {
	if c.foreign {
		return c.foreignKubeconfig
	}
	return filepath.Join(c.dir, "kubeconfig")
}

// RESTConfig returns a new client configuration with full rights and no rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Kubectl is the path of the kubectl with the API server's version, or the bare name for the user's own cluster.
func (c *Cluster) Kubectl() string {
	if c.foreign {
		return binaries.Kubectl
	}
	return c.programs[binaries.Kubectl]
}

// LogsDir holds one file per component, until Stop.
func (c *Cluster) LogsDir() string { return filepath.Join(c.dir, "logs") }

// Failed yields once if a component ends that nobody asked to end.
func (c *Cluster) Failed() <-chan error { return c.failed }

// Stop kills every component, removes the state folder and returns when both are gone. Calling it again does nothing.
// Nothing in the folder is worth a graceful end.
func (c *Cluster) Stop() error {
	if c == nil || c.foreign {
		return nil
	}
	c.mu.Lock()
	c.stopping = true
	processes, cleaner := c.processes, c.janitor
	c.processes, c.janitor = nil, nil
	c.mu.Unlock()
	for _, p := range slices.Backward(processes) {
		p.kill()
	}
	c.ports.release()
	if cleaner == nil {
		return nil
	}
	if err := cleaner.Finish(); err != nil {
		return fmt.Errorf("removing %s: %w", c.dir, err)
	}
	if c.owner != nil {
		_ = c.owner.Close()
	}
	return nil
}
