// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What a release is called, and where workers are.
const (
	release   = "queueworker-operator"
	system    = "queueworker-system"
	workers   = "shop"
	chart     = "charts/queueworker-operator"
	component = "app.kubernetes.io/name=queueworker-operator"
)

// installed installs the chart into a namespace that enforces the restricted standard, beside one for workers that does too, and
// waits until the operator works. All of it is gone when the test ends.
func installed(t *testing.T, from string, words ...string) {
	t.Helper()
	for _, namespace := range []string{system, workers} {
		mustKubectl(t, "create", "namespace", namespace)
		mustKubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	}
	t.Cleanup(func() { removed(t) })
	helm(t, append([]string{"install", release, from, "--namespace", system}, words...)...)
	works(t)
}

func removed(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	run := func(words ...string) {
		if out, err := kubectl(ctx, "", words...); err != nil {
			t.Error(err, out)
		}
	}
	if t.Failed() {
		for _, words := range [][]string{
			{"-n", system, "get", "pods", "-o", "wide"}, {"-n", system, "logs", "-l", component, "--tail=15", "--prefix"},
			{"-n", system, "get", "events"}, {"-n", workers, "get", "qw,deployments,rs,pods", "-o", "wide"}, {"-n", workers, "get", "events"},
		} {
			out, _ := kubectl(ctx, "", words...)
			t.Log(strings.Join(words, " ") + "\n" + out)
		}
	}
	run("delete", "crd", "queueworkers.queueworker.dev", "--ignore-not-found", "--timeout=120s")
	run("delete", "validatingwebhookconfigurations,clusterroles,clusterrolebindings", "-l", component)
	run("delete", "namespace", system, workers, "--timeout=300s")
}

// works waits until all managers are ready, none of an older version is left, and the operator may own what it makes.
func works(t *testing.T) {
	t.Helper()
	mustKubectl(t, "-n", system, "rollout", "status", "deployment/"+release, "--timeout=300s")
	eventually(t, "two managers and no other", func() error {
		pods := strings.Fields(mustKubectl(t, "-n", system, "get", "pods", "-l", component, "-o", "name"))
		if len(pods) != 2 {
			return fmt.Errorf("there are %v", pods)
		}
		return nil
	})
	eventually(t, "the API server takes a QueueWorker for an owner", func() error {
		_, err := kubectl(t.Context(), owned, "create", "--dry-run=server", "--as=system:serviceaccount:"+system+":"+release, "-f", "-")
		return err
	})
}

// owned is a Deployment as the operator makes it. The part of the API server that checks owners learns of a new kind up to 10 s
// late, and the operator, once refused, waits for a minute.
const owned = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: probe, namespace: shop, ownerReferences: [
  {apiVersion: queueworker.dev/v1alpha1, kind: QueueWorker, name: probe, uid: probe, controller: true, blockOwnerDeletion: true}]},
  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: none}]}}}}`

// worker is one that the restricted standard lets run. What it runs does nothing, and ends when it is asked to.
func worker(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata: {name: %s, namespace: shop}
spec:
  runtime: Generic
  replicas: %d
  queue: {connection: events, driver: Other}
  timeouts: {jobSeconds: 5}
  podDisruptionBudget: {maxUnavailable: 1}
  template:
    spec:
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: worker
          image: queueworker.invalid/pause:dev
          imagePullPolicy: Never
          command: [/pause]
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
`, name, replicas)
}

// applied applies a worker and waits until it works.
func applied(t *testing.T, name string, replicas int) {
	t.Helper()
	if _, err := kubectl(t.Context(), worker(name, replicas), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	settled(t, name, replicas)
}

// settled waits until the worker's status says, of its newest generation, that all is as wished.
func settled(t *testing.T, name string, replicas int) {
	t.Helper()
	want := fmt.Sprintf("Settled True %d/%d", replicas, replicas)
	eventually(t, name+" is "+want, func() error {
		out, err := kubectl(t.Context(), "", "-n", workers, "get", "qw", name, "-o", "jsonpath={.metadata.generation} {.status.observedGeneration} "+
			`{.status.conditions[?(@.type=="Reconciling")].reason} {.status.conditions[?(@.type=="Ready")].status} {.status.ready}`)
		if err != nil {
			return err
		}
		is := strings.Fields(out)
		if len(is) != 5 || is[0] != is[1] || strings.Join(is[2:], " ") != want {
			return fmt.Errorf("it is %q", out)
		}
		return nil
	})
}

func scaled(t *testing.T, name string, replicas int) {
	t.Helper()
	mustKubectl(t, "-n", workers, "scale", "qw", name, fmt.Sprintf("--replicas=%d", replicas))
	settled(t, name, replicas)
}

func rolled(t *testing.T, name, version string) {
	t.Helper()
	mustKubectl(t, "-n", workers, "patch", "qw", name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"version":%q}}}}}`, version))
}

// picture is all that must stay as it is while workers are untouched: pods with their restarts, and whatever makes pods.
func picture(t *testing.T, name string) string {
	t.Helper()
	selector := "queueworker.dev/name=" + name
	lines := strings.Split(strings.TrimSpace(
		mustKubectl(t, "-n", workers, "get", "pods", "-l", selector, "-o", `jsonpath={range .items[*]}pod {.metadata.uid} restarted {.status.containerStatuses[*].restartCount} asked to end "{.metadata.deletionTimestamp}"{"\n"}{end}`)+
			mustKubectl(t, "-n", workers, "get", "replicasets", "-l", selector, "-o", `jsonpath={range .items[*]}set {.metadata.uid} changed {.metadata.generation}{"\n"}{end}`)+
			mustKubectl(t, "-n", workers, "get", "deployments", name, "-o", `jsonpath=deployment {.metadata.uid} changed {.metadata.generation}{"\n"}`)), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// untouched compares a worker with an earlier picture of it.
func untouched(t *testing.T, name, before string) {
	t.Helper()
	if now := picture(t, name); now != before {
		t.Errorf("%s was touched; it was\n%s\nand is\n%s", name, before, now)
	}
	if !strings.Contains(before, "pod ") {
		t.Errorf("%s had no pod to be touched", name)
	}
}

// managers are the operator's pods, with their restarts.
func managers(t *testing.T) string {
	t.Helper()
	return mustKubectl(t, "-n", system, "get", "pods", "-l", component, "--sort-by=.metadata.name", "-o",
		`jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// leader is who holds the lease: a pod, and one life of its container.
func leader(t *testing.T) string {
	t.Helper()
	return mustKubectl(t, "-n", system, "get", "lease", release, "-o", "jsonpath={.spec.holderIdentity}")
}
