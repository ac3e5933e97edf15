// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/queueworker/operator/hack/controlplane/binaries"
)

// component is a program with its arguments and the question that tells when it works.
type component struct {
	name  string
	args  []string
	ready func(ctx context.Context) error
}

// Run starts a program beside the control plane and waits until ready gives no error. It is logged, watched and stopped like
// the control plane's own parts.
func (c *Cluster) Run(ctx context.Context, path string, args []string, ready func(ctx context.Context) error) error {
	name := filepath.Base(path)
	c.mu.Lock()
	c.programs[name] = path
	c.mu.Unlock()
	return c.run(ctx, component{name: name, args: args, ready: ready})
}

func (c *Cluster) etcd() component {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdClient.number())
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdPeer.number())
	return component{
		name: binaries.Etcd,
		args: []string{
			"--data-dir=" + filepath.Join(c.dir, "etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
			"--socket-reuse-port", // the port stays reserved by us meanwhile
			"--unsafe-no-fsync",   // the data does not outlive the process anyway
			"--quota-backend-bytes=4294967296",
		},
		ready: func(ctx context.Context) error { return httpOK(ctx, http.DefaultClient, client+"/readyz") },
	}
}

func (c *Cluster) apiServer() component {
	port := c.ports.apiServer.number()
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.ports.etcdClient.number()),
		fmt.Sprintf("--secure-port=%d", port), "--permit-port-sharing",
		"--tls-cert-file=" + c.credentials.certFile, "--tls-private-key-file=" + c.credentials.keyFile,
		"--cert-dir=" + filepath.Join(c.dir, "apiserver"),
		fmt.Sprintf("--service-account-issuer=https://127.0.0.1:%d", port),
		"--service-account-key-file=" + c.credentials.serviceAccountKeyFile,
		"--service-account-signing-key-file=" + c.credentials.serviceAccountKeyFile,
		"--authorization-mode=RBAC", "--token-auth-file=" + c.credentials.tokenFile,
		"--service-cluster-ip-range=" + serviceRange,
		// Off by default, on in OpenShift: an operator without `update` on its finalizers shows itself.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
	}
	if c.options.NodeAddress != nil {
		args = append(args, "--bind-address=0.0.0.0", "--advertise-address="+c.options.NodeAddress.String(),
			"--kubelet-preferred-address-types=InternalIP")
	} else {
		// The plugin taints new nodes until a controller that does not run here finds them ready.
		args = append(args, "--bind-address=127.0.0.1", "--disable-admission-plugins=TaintNodesByCondition")
	}
	return component{name: binaries.APIServer, args: append(args, c.options.ExtraAPIServerArgs...), ready: c.apiServerReady}
}

// clients are the components that talk to the API server only.
func (c *Cluster) clients() []component {
	const generous1, generous2 = "--kube-api-qps=1000", "--kube-api-burst=2000" // the defaults make 1,000 Deployments take 1,000 s
	manager := component{name: binaries.ControllerManager, ready: c.defaultServiceAccount, args: []string{
		"--kubeconfig=" + c.KubeconfigPath(), "--leader-elect=false", "--secure-port=0", generous1, generous2,
		"--service-account-private-key-file=" + c.credentials.serviceAccountKeyFile,
		"--root-ca-file=" + c.credentials.certFile,
		"--use-service-account-credentials=true",
		"--flex-volume-plugin-dir=" + filepath.Join(c.dir, "volume-plugins"), // else it makes one below /usr/libexec
	}}
	if c.options.NodeAddress == nil {
		// Nobody renews node leases here, so the controllers that evict from silent nodes stay off.
		manager.args = append(manager.args, "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller")
	}
	manager.args = append(manager.args, c.options.ExtraControllerManagerArgs...)
	if c.options.Nodes == 0 && c.options.NodeAddress == nil {
		return []component{manager}
	}
	scheduler := component{name: binaries.Scheduler, ready: atOnce, args: append([]string{
		"--kubeconfig=" + c.KubeconfigPath(), "--leader-elect=false", "--secure-port=0", generous1, generous2,
	}, c.options.ExtraSchedulerArgs...)}
	if c.options.Nodes == 0 {
		return []component{manager, scheduler}
	}
	kwok := component{name: binaries.Kwok, ready: c.nodesReady, args: []string{
		"--kubeconfig=" + c.KubeconfigPath(), "--manage-all-nodes=true", "--config=" + c.stagesPath(), "--cidr=10.244.0.0/16",
	}}
	return []component{manager, scheduler, kwok}
}

func (c *Cluster) program(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[name]
}

// run starts components side by side and waits until all of them work.
func (c *Cluster) run(ctx context.Context, components ...component) error {
	started := make([]*process, 0, len(components))
	for _, wanted := range components {
		p, err := startProcess(wanted.name, c.program(wanted.name), wanted.args, c.LogsDir())
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.processes = append(c.processes, p)
		c.mu.Unlock()
		started = append(started, p)
	}
	for i, wanted := range components {
		if err := started[i].waitUntil(ctx, wanted.ready); err != nil {
			return err
		}
		go c.watch(started[i])
	}
	return nil
}

// watch reports the end of a process that nobody asked to end.
func (c *Cluster) watch(p *process) {
	<-p.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || p.killed.Load() {
		return
	}
	select {
	case c.failed <- p.endedError():
	default:
	}
}

func (c *Cluster) apiServerReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(10 * time.Second).Do(ctx).Error()
}

// defaultServiceAccount tells whether pods can be created in the default namespace.
func (c *Cluster) defaultServiceAccount(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the default ServiceAccount does not exist yet")
	}
	return err
}

// atOnce is for components that show that they work only by what they do.
func atOnce(context.Context) error { return nil }

func httpOK(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
