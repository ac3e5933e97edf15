// SPDX-License-Identifier: Apache-2.0

// Package operator installs the operator in a control plane of ours and runs
// its manager as a process of this machine, as the demo, the tests and the
// benchmarks do.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// What config/rbac, config/webhook and the manager's defaults agree on.
const (
	Namespace = "queueworker-system"
	Name      = "queueworker-operator" // of the service account, the roles, the lease and the webhook's registration
	User      = "system:serviceaccount:" + Namespace + ":" + Name
)

// What to install: kubectl's arguments, in order, with paths from the root of
// the repository.
var (
	Definition = []string{"apply -f config/crd/queueworker.dev_queueworkers.yaml"}
	// Identity is a service account with the generated roles and nothing else, and
	// the Secret that it may write.
	Identity = []string{
		"create namespace " + Namespace,
		"-n " + Namespace + " create secret generic " + Name + "-webhook-cert",
		"apply -f config/rbac",
		"-n " + Namespace + " create serviceaccount " + Name,
		"create clusterrolebinding " + Name + " --clusterrole=" + Name + " --serviceaccount=" + Namespace + ":" + Name,
		"-n " + Namespace + " create rolebinding " + Name + " --role=" + Name + " --serviceaccount=" + Namespace + ":" + Name,
	}
	// Webhook is the registration; the manager adds its address and its authority.
	Webhook = []string{"apply -f config/webhook"}
)

// ControlPlane says how it is reached with full rights.
type ControlPlane interface {
	Kubectl() string // the program
	KubeconfigPath() string
}

// Kubectl runs kubectl with full rights in the root of the repository.
type Kubectl struct {
	Cluster ControlPlane
	Root    string
}

// Run returns what kubectl printed.
func (k Kubectl) Run(ctx context.Context, arguments string) (string, error) {
	command := exec.CommandContext(ctx, k.Cluster.Kubectl(), append([]string{"--kubeconfig", k.Cluster.KubeconfigPath()}, strings.Fields(arguments)...)...)
	command.Dir = k.Root
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", arguments, err, output)
	}
	return string(output), nil
}

// Install runs the commands of the parts.
func (k Kubectl) Install(ctx context.Context, parts ...[]string) error {
	for _, part := range parts {
		for _, arguments := range part {
			if _, err := k.Run(ctx, arguments); err != nil {
				return err
			}
		}
	}
	return nil
}

// WaitForDefinition waits until QueueWorkers are served. kubectl wait cannot:
// it fails on a definition whose conditions nobody has written yet.
func (k Kubectl) WaitForDefinition(ctx context.Context) error {
	return wait(ctx, "the definition of QueueWorkers is not established", k.established)
}

// WaitForIdentity waits until the API server grants what the roles say: it takes
// them up a moment after they were written.
func (k Kubectl) WaitForIdentity(ctx context.Context) error {
	return wait(ctx, "the operator's roles are not in force", func(ctx context.Context) (bool, error) {
		for _, right := range []string{"watch pods --all-namespaces", "create leases.coordination.k8s.io -n " + Namespace} {
			if _, err := k.Run(ctx, "auth can-i "+right+" --as="+User); err != nil {
				return false, ctx.Err() // it ends with 1 for "no"
			}
		}
		return true, nil
	})
}

// wait asks until the answer is yes, for two minutes at most.
func wait(ctx context.Context, otherwise string, ask func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		yes, err := ask(ctx)
		if err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (k Kubectl) established(ctx context.Context) (bool, error) {
	text, err := k.Run(ctx, "get crd queueworkers.queueworker.dev -o json")
	if err != nil {
		return false, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	err = json.Unmarshal([]byte(text), definition)
	return slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}), err
}

// WriteKubeconfig writes to path how a service account of the operator's
// namespace reaches the control plane.
func (k Kubectl) WriteKubeconfig(ctx context.Context, account, path string) error {
	token, err := k.Run(ctx, "-n "+Namespace+" create token "+account+" --duration=24h")
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(k.Cluster.KubeconfigPath())
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	}
	return clientcmd.WriteToFile(*config, path)
}
