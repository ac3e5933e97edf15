// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"

	"github.com/queueworker/operator/hack/internal/buildtags"
	"github.com/queueworker/operator/hack/operator"
)

// folder is removed together with the control plane, however the demo ends.
func (d *demo) folder() string { return filepath.Dir(d.cluster.KubeconfigPath()) }

func (d *demo) binary() string { return filepath.Join(d.folder(), "manager") }

func (d *demo) kubeconfig() string { return filepath.Join(d.folder(), "operator.kubeconfig") }

// install sets up what a cluster needs before the operator can run, and an
// identity with just the generated roles.
func (d *demo) install() error {
	d.title("Install the CRD, the roles and the webhook")
	for _, part := range [][]string{operator.Identity, operator.Definition, operator.Webhook} {
		for _, arguments := range part {
			if _, err := d.show("kubectl " + arguments); err != nil {
				return err
			}
		}
	}
	kubectl := operator.Kubectl{Cluster: d.cluster, Root: d.root}
	if err := kubectl.WaitForDefinition(d.ctx); err != nil {
		return err
	}
	return kubectl.WriteKubeconfig(d.ctx, operator.Name, d.kubeconfig())
}

func (d *demo) startOperator() error {
	d.title("Start the operator, with no rights but its own roles")
	d.say("$ go build -tags %s -o manager ./cmd/manager", buildtags.Operator)
	if err := operator.Build(d.ctx, d.root, d.binary()); err != nil {
		return err
	}
	return d.launch()
}

// launch starts the manager and waits until it says that it is ready.
func (d *demo) launch() error {
	endpoints, err := operator.FreeEndpoints()
	if err != nil {
		return err
	}
	flags := []string{"--log-format=console"}
	d.say("$ manager --kubeconfig=operator.kubeconfig %s", strings.Join(append(endpoints.Flags(), flags...), " "))
	if d.manager, err = endpoints.Start(d.binary(), d.kubeconfig(), filepath.Join(d.cluster.LogsDir(), "manager.log"), flags...); err != nil {
		return err
	}
	if err := d.manager.WaitUntilReady(d.ctx); err != nil {
		return err
	}
	return d.check(true, "the operator says that it is ready: its caches are filled, its webhook is registered and listens")
}

// stopOperator stops the manager as Kubernetes would.
func (d *demo) stopOperator() error {
	m := d.manager
	if m == nil {
		return nil
	}
	d.manager = nil
	return m.Stop()
}
