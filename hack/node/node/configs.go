// SPDX-License-Identifier: Apache-2.0

package node

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

// Where the parts find their configuration and each other, inside.
const (
	containerdConfig = stateFolder + "/containerd.toml"
	containerdSocket = "/run/containerd/containerd.sock"
	networkConfig    = stateFolder + "/cni/10-node.conflist"
	kubeletConfig    = stateFolder + "/kubelet.yaml"
	proxyConfig      = stateFolder + "/kube-proxy.yaml"
	proxyHealth      = "127.0.0.1:10256"
)

//go:embed configs/containerd.toml
var containerdTemplate string

//go:embed configs/network.json
var networkTemplate string

//go:embed configs/kubelet.yaml
var kubeletTemplate string

//go:embed configs/kube-proxy.yaml
var proxyTemplate string

func (s settings) writeConfigs() error {
	values := strings.NewReplacer(
		"STATE", stateFolder, "CONTAINERD_SOCKET", containerdSocket, "PLUGINS", pluginFolder,
		"NODE_NAME", Name, "PROXY_HEALTH", proxyHealth, "CGROUP", "/"+s.Cgroup,
		"KUBECONFIG", filepath.Join(stateFolder, controlPlane, "kubeconfig"),
	)
	for path, content := range map[string]string{
		containerdConfig: containerdTemplate, networkConfig: networkTemplate, kubeletConfig: kubeletTemplate, proxyConfig: proxyTemplate,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(values.Replace(content)), 0o600); err != nil {
			return err
		}
	}
	return os.MkdirAll(inside("tmp"), 0o700)
}
