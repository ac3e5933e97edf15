// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/queueworker/operator/hack/internal/lasting"
	"github.com/queueworker/operator/internal/freeport"
)

// Namespace is where Argo CD keeps its own objects.
const Namespace = "argocd"

const startTimeout = 4 * time.Minute

// ControlPlane says how the cluster is reached with full rights.
type ControlPlane interface {
	Kubectl() string
	KubeconfigPath() string
}

// Options say how to run it.
type Options struct {
	Programs Programs
	Cluster  ControlPlane
	// Dir holds all its files; it is the caller's to remove.
	Dir string
	// Reconciliation is the time after which an Application is compared anew.
	Reconciliation time.Duration
}

// ArgoCD is a running Argo CD. It takes `https://kubernetes.default.svc` for the
// cluster, as one inside would.
type ArgoCD struct {
	options   Options
	ports     map[string]int
	processes []*process
}

type process struct {
	name    string
	command *exec.Cmd
	ended   chan struct{}
}

//go:embed install.yaml
var install string

// Start installs Argo CD and returns when it works.
func Start(ctx context.Context, options Options) (*ArgoCD, error) {
	a := &ArgoCD{options: options, ports: map[string]int{}}
	if err := a.start(ctx); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

func (a *ArgoCD) start(ctx context.Context) error {
	for _, folder := range []string{"ssh", "tls", "tmp", "bin"} {
		if err := os.MkdirAll(filepath.Join(a.options.Dir, folder), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(a.path("ssh/ssh_known_hosts"), nil, 0o600); err != nil {
		return err
	}
	if err := os.Symlink(a.options.Programs.helm, a.path("bin/helm")); err != nil {
		return err
	}
	if err := a.install(ctx); err != nil {
		return err
	}
	for _, name := range []string{"redis", "repo", "repo-metrics", "controller-metrics"} {
		port, err := freeport.Take()
		if err != nil {
			return err
		}
		a.ports[name] = port
	}
	return a.run(ctx)
}

func (a *ArgoCD) path(name string) string { return filepath.Join(a.options.Dir, name) }

func (a *ArgoCD) install(ctx context.Context) error {
	for _, name := range []string{"application-crd.yaml", "applicationset-crd.yaml", "appproject-crd.yaml"} {
		if err := a.kubectl(ctx, "", "apply", "--server-side", "-f", filepath.Join(a.options.Programs.manifests, "crds", name)); err != nil {
			return err
		}
	}
	// The API server serves a new kind a moment later. kubectl wait fails before it has said so.
	return retry(ctx, nil, func() error { return a.kubectl(ctx, install, "apply", "-f", "-") })
}

func (a *ArgoCD) kubectl(ctx context.Context, stdin string, words ...string) error {
	command := exec.CommandContext(ctx, a.options.Cluster.Kubectl(), append([]string{"--kubeconfig", a.options.Cluster.KubeconfigPath()}, words...)...)
	command.Stdin = strings.NewReader(stdin)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(words, " "), err, output)
	}
	return nil
}

func (a *ArgoCD) run(ctx context.Context) error {
	redis, repo := freeport.Address(a.ports["redis"]), freeport.Address(a.ports["repo"])
	port := func(name string) string { return strconv.Itoa(a.ports[name]) }
	for _, p := range []struct {
		name, program string
		args          []string
		ready         func() error
	}{
		{"redis", "redis-server", []string{"--bind", "127.0.0.1", "--port", port("redis"), "--save", "", "--appendonly", "no", "--dir", a.options.Dir},
			listens(redis)},
		{"argocd-repo-server", a.options.Programs.argocd, []string{"--disable-tls", "--redis", redis, "--address", "127.0.0.1", "--port", port("repo"),
			"--metrics-address", "127.0.0.1", "--metrics-port", port("repo-metrics")}, listens(repo)},
		{"argocd-application-controller", a.options.Programs.argocd, []string{"--namespace", Namespace, "--redis", redis, "--repo-server", repo,
			"--repo-server-plaintext", "--metrics-port", port("controller-metrics"), "--kubeconfig", a.options.Cluster.KubeconfigPath()},
			answers("http://" + freeport.Address(a.ports["controller-metrics"]) + "/healthz")},
	} {
		started, err := a.startProcess(p.name, p.program, p.args)
		if err != nil {
			return err
		}
		if err := retry(ctx, started.ended, p.ready); err != nil {
			return fmt.Errorf("%s: %w; the end of its log:\n%s", p.name, err, a.LastWords(p.name, 10))
		}
	}
	return nil
}

func (a *ArgoCD) startProcess(name, program string, args []string) (*process, error) {
	log, err := os.OpenFile(a.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	p := &process{name: name, command: exec.Command(program, args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.Env = []string{
		"ARGOCD_BINARY_NAME=" + name, "ARGOCD_FAKE_IN_CLUSTER=true", "KUBECONFIG=" + a.options.Cluster.KubeconfigPath(),
		"ARGOCD_RECONCILIATION_TIMEOUT=" + a.options.Reconciliation.String(), "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_SSH_DATA_PATH=" + a.path("ssh"), "ARGOCD_TLS_DATA_PATH=" + a.path("tls"),
		"HOME=" + a.options.Dir, "TMPDIR=" + a.path("tmp"), "PATH=" + a.path("bin") + ":" + os.Getenv("PATH"),
	}
	if err := lasting.Start(p.command); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	a.processes = append(a.processes, p)
	return p, nil
}

// retry tries until it works, something ends or the time is up.
func retry(ctx context.Context, ended <-chan struct{}, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended by itself")
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func listens(address string) func() error {
	return func() error {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}

func answers(url string) func() error {
	return func() error {
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get(url)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s", url, response.Status)
		}
		return errors.Join(err, response.Body.Close())
	}
}

// Log is what a component has written so far.
func (a *ArgoCD) Log(name string) ([]byte, error) { return os.ReadFile(a.path(name + ".log")) }

// LastWords are the last lines of a component's log.
func (a *ArgoCD) LastWords(name string, lines int) string {
	content, err := a.Log(name)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Stop ends every process and returns when all are gone. Nothing of them is worth
// a graceful end.
func (a *ArgoCD) Stop() error {
	if a == nil {
		return nil
	}
	for _, p := range a.processes {
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // with what it has started
		<-p.ended
	}
	a.processes = nil
	return nil
}
