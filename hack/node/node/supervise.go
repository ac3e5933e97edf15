// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// controlPlane is the folder of the control plane's state in the node's.
const controlPlane = "controlplane"

// supervise starts the node's parts and returns when one of them has died, or nobody wants the node any more. Its end is the end
// of all of them.
func (s settings) supervise() error {
	for fd := controlFD; fd <= listenerFD; fd++ {
		syscall.CloseOnExec(fd)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := orders(cancel)
	if err := s.forward(); err != nil {
		return err
	}
	c, err := s.startParts(ctx)
	if err != nil {
		return err
	}
	if err := report(ready); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.Failed():
			return err
		case order := <-given:
			if err := answer(order.obey(ctx, c)); err != nil {
				return err
			}
		}
	}
}

func (s settings) startParts(ctx context.Context) (*cluster.Cluster, error) {
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: inside(controlPlane), Port: s.Port, NodeAddress: net.ParseIP(nodeAddress), Log: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	if err := s.writeConfigs(); err != nil {
		return nil, err
	}
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return nil, err
	}
	if err := c.Run(ctx, containerd, []string{"--config", containerdConfig}, containerdAnswers); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	var both errgroup.Group
	both.Go(func() error {
		return c.Run(ctx, s.Programs[binaries.Kubelet], []string{
			"--config=" + kubeletConfig, "--kubeconfig=" + c.KubeconfigPath(), "--hostname-override=" + Name, "--node-ip=" + nodeAddress,
			"--root-dir=" + inside("kubelet"), "--cert-dir=" + inside("kubelet-certificates"),
		}, func(ctx context.Context) error { return nodeReady(ctx, client) })
	})
	both.Go(func() error {
		return c.Run(ctx, s.Programs[binaries.KubeProxy], []string{"--config=" + proxyConfig}, proxyReady)
	})
	return c, both.Wait()
}

func containerdAnswers(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", containerdSocket)
	if err != nil {
		return err
	}
	return conn.Close()
}

func nodeReady(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the node is tainted: %v", node.Spec.Taints)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return errors.New(condition.Message)
		}
	}
	return nil
}

// proxyReady asks whether the rules for all Services are in place.
func proxyReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxyHealth+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("kube-proxy answers %s", response.Status)
	}
	return nil
}
