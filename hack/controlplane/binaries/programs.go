// SPDX-License-Identifier: Apache-2.0

// Package binaries finds the programs of a local control plane, and of a node, and builds the missing ones from pinned Go modules.
package binaries

import (
	"fmt"
	"strings"
)

// The programs this package knows.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
)

// program says from which module a program is built.
type program struct {
	name   string
	folder string // below hack/controlplane/modules: the module that pins it
	pkg    string
	module string // the dependency whose version is the program's
}

// programs is in build order: each Kubernetes program makes the next one cheaper.
var programs = []program{
	{Etcd, "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"},
	{APIServer, "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesModule},
	{ControllerManager, "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesModule},
	{Scheduler, "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", kubernetesModule},
	{Kubectl, "kubernetes", "k8s.io/kubernetes/cmd/kubectl", kubernetesModule},
	{Kubelet, "kubernetes", "k8s.io/kubernetes/cmd/kubelet", kubernetesModule},
	{KubeProxy, "kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", kubernetesModule},
	{Kwok, "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok"},
}

const kubernetesModule = "k8s.io/kubernetes"

// All lists every program of a control plane with simulated nodes.
func All() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kubectl, Kwok}
}

// Node lists every program of a control plane with a real node.
func Node() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kubectl, Kubelet, KubeProxy}
}

// linkerFlags strips the symbol tables and, for Kubernetes, states the version: without it the server calls itself v0.0.0.
func (p program) linkerFlags(version string) string {
	flags := "-s -w"
	if p.module != kubernetesModule {
		return flags
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const at = "k8s.io/component-base/version."
	return fmt.Sprintf("%s -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", flags, at, version, at, major, at, minor)
}
