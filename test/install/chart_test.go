// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"strings"
	"testing"
)

// One command, and it works: workers run, broken chains are refused, and the webhook is reached through its Service.
func TestInstall(t *testing.T) {
	const loaded = "queueworker/operator:0.1.0"
	rendered := helm(t, "template", release, chart, "--namespace", system, "--show-only", "templates/deployment.yaml")
	if !strings.Contains(rendered, loaded) {
		t.Fatalf("the chart does not ask for the image that was loaded:\n%s", rendered)
	}
	installed(t, chart)
	applied(t, "steady", 2)
	out := mustKubectl(t, "create", "--dry-run=server", "-f", "config/samples/warned/http-timeout-missing.yaml")
	if !strings.Contains(out, "Warning: spec.timeouts.httpSeconds: http-timeout-missing") {
		t.Errorf("the webhook does not answer: %s", out)
	}
	out, err := kubectl(t.Context(), "", "create", "--dry-run=server", "-f", "config/samples/invalid/job-not-below-retry-after.yaml")
	if err == nil || !strings.Contains(out, "job-not-below-retry-after: ") {
		t.Errorf("a broken chain is not refused: %s", out)
	}
	for command, image := range map[string]string{
		"the manager": mustKubectl(t, "-n", system, "get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}"),
		"the agent":   agents(t, "steady"),
	} {
		if image != loaded+" "+loaded {
			t.Errorf("%s is of %s", command, image)
		}
	}
}

// agents are the images that the agents of a worker's pods came from.
func agents(t *testing.T, name string) string {
	t.Helper()
	return mustKubectl(t, "-n", workers, "get", "pods", "-l", "queueworker.dev/name="+name, "-o",
		`jsonpath={.items[*].spec.initContainers[?(@.name=="queueworker-agent")].image}`)
}

// Another operator, with another agent: workers stay as they are, also when they are scaled, until their user changes them. So
// does the way back.
func TestUpgradeAndRollback(t *testing.T) {
	const older, newer = "queueworker/operator:0.1.0", "queueworker/operator:0.1.1"
	installed(t, chart, "--set", "caps.gracePeriodSeconds=300")
	applied(t, "steady", 2)
	applied(t, "scaled", 1)
	before := picture(t, "steady")

	helm(t, "upgrade", release, chart, "--namespace", system, "--reset-then-reuse-values", "--set", "image.tag=0.1.1")
	works(t)
	scaled(t, "scaled", 2) // the new operator has looked
	untouched(t, "steady", before)
	if images := agents(t, "scaled"); images != older+" "+older {
		t.Errorf("scaling brought other agents: %s", images)
	}
	if config := mustKubectl(t, "-n", system, "get", "configmap", release+"-config", "-o", "yaml"); !strings.Contains(config, "gracePeriodSeconds: 300") {
		t.Errorf("the upgrade forgot a value: %s", config)
	}
	rolled(t, "scaled", "2")
	settled(t, "scaled", 2)
	eventually(t, "the new agents, once their user has changed the worker", func() error { return is(agents(t, "scaled"), newer+" "+newer) })

	helm(t, "rollback", release, "--namespace", system)
	works(t)
	if image := mustKubectl(t, "-n", system, "get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}"); image != older+" "+older {
		t.Errorf("after the rollback the managers are of %s", image)
	}
	scaled(t, "scaled", 3)
	untouched(t, "steady", before)
	if images := agents(t, "scaled"); images != newer+" "+newer+" "+newer {
		t.Errorf("after the rollback the agents are of %s", images)
	}
}

// With crds.keep the workers outlive the operator, and the next one takes them over; without, they drain.
func TestUninstall(t *testing.T) {
	installed(t, chart)
	applied(t, "steady", 2)
	before := picture(t, "steady")

	helm(t, "uninstall", release, "--namespace", system, "--wait")
	gone(t, "-n", system, "get", "pods,secrets,configmaps,leases", "-l", component)
	untouched(t, "steady", before)

	helm(t, "install", release, chart, "--namespace", system, "--set", "crds.keep=false")
	works(t)
	applied(t, "beside", 1)
	untouched(t, "steady", before)
	scaled(t, "steady", 3)

	helm(t, "uninstall", release, "--namespace", system)
	gone(t, "get", "crd", "queueworkers.queueworker.dev")
	gone(t, "-n", workers, "get", "deployments,pods,pdb")
	left := mustKubectl(t, "get", "clusterroles,clusterrolebindings,validatingwebhookconfigurations", "-o", "name", "-l", component)
	if left != "" {
		t.Errorf("the uninstall left %s", left)
	}
}

// gone waits until a query finds nothing.
func gone(t *testing.T, query ...string) {
	t.Helper()
	eventually(t, "nothing of "+strings.Join(query, " "), func() error {
		out, err := kubectl(t.Context(), "", append(query, "-o", "name", "--ignore-not-found")...)
		if err != nil {
			return err
		}
		return is(out, "")
	})
}
