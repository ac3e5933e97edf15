// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/operator"
)

// A real API server takes all that the chart renders, and a manager with the
// chart's roles and configuration, and no other right, works. The second round
// lays an installation for one namespace over the first.
func TestItRunsOnAnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // a first run builds the control plane
	defer cancel()
	controlPlane, err := cluster.Start(ctx, cluster.Options{Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controlPlane.Stop(); err != nil {
			t.Error(err)
		}
	})
	lab := &lab{t: t, ctx: ctx, kubectl: operator.Kubectl{Cluster: controlPlane, Root: root}, folder: t.TempDir()}
	lab.binary = filepath.Join(lab.folder, "manager")
	if err := operator.Build(ctx, root, lab.binary); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{operator.Namespace, "shop", "crm"} {
		lab.run("create namespace " + namespace)
	}
	lab.run("label namespace " + operator.Namespace + " pod-security.kubernetes.io/enforce=restricted")

	lab.install("networkPolicy: {enabled: true}")
	lab.run("-n " + operator.Namespace + " rollout status deployment/" + operator.Name + " --timeout=60s")
	lab.waitUntilOwnersAreKnown()
	if err := lab.kubectl.WriteKubeconfig(ctx, operator.Name, lab.path("kubeconfig")); err != nil {
		t.Fatal(err)
	}
	stop := lab.start()
	lab.run("-n shop apply -f config/samples/payments.yaml")
	lab.eventually("the workers of all namespaces", func() bool { return lab.has("shop") })
	if lab.run("-n "+operator.Namespace+" get secret queueworker-operator-webhook-cert -o jsonpath={.data.tls\\.crt}") == "" {
		t.Error("the manager did not fill the chart's Secret")
	}

	lab.install("watchNamespaces: [crm]") // while the first manager still leads, as in an upgrade
	stop()
	stop = lab.start()
	lab.run("-n crm apply -f config/samples/payments.yaml")
	lab.eventually("the workers of the listed namespace", func() bool { return lab.has("crm") })
	lab.run("-n shop delete deployment payments")
	time.Sleep(time.Second) // in which the first manager would have made it anew
	if lab.has("shop") {
		t.Error("a namespace that is not listed was looked after")
	}
	lab.asks("crm")
	lab.install("watchNamespaces: [crm, shop]") // whoever applies meets no conflict with what a manager wrote
	stop()
	stop = lab.start()
	lab.eventually("the workers of the namespace that was added", func() bool { return lab.has("shop") })
	lab.asks("crm", "shop")
	lab.install("") // and back
	stop()
	stop = lab.start()
	lab.asks()
	stop()
}

// asks says of which namespaces the API server asks the webhook; none: of all.
func (l *lab) asks(namespaces ...string) {
	l.t.Helper()
	want := strings.Join(namespaces, " ")
	if got := l.run("get validatingwebhookconfiguration " + operator.Name + " -o jsonpath={.webhooks[0].namespaceSelector.matchExpressions[0].values[*]}"); got != want {
		l.t.Errorf("the webhook is asked about %q, want %q", got, want)
	}
}

// lab is an installation by kubectl, with a manager that is a process.
type lab struct {
	t              *testing.T
	ctx            context.Context
	kubectl        operator.Kubectl
	folder, binary string
}

func (l *lab) path(name string) string { return filepath.Join(l.folder, name) }

func (l *lab) run(arguments string) string {
	l.t.Helper()
	output, err := l.kubectl.Run(l.ctx, arguments)
	if err != nil {
		l.t.Fatal(err)
	}
	return output
}

func (l *lab) write(name, text string) string {
	l.t.Helper()
	if err := os.WriteFile(l.path(name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return l.path(name)
}

// install applies the chart as Helm does, on the server's side and strictly.
func (l *lab) install(values string) {
	l.t.Helper()
	texts := []string{}
	for _, object := range rendered(l.t, values).Objects {
		texts = append(texts, object.Text)
		if object.Kind == "ConfigMap" && object.Template == "config.yaml" {
			l.write("manager.yaml", decode[corev1.ConfigMap](l.t, object.Text).Data["manager.yaml"])
		}
	}
	l.run("apply --server-side --validate=strict --field-manager=helm -f " + l.write("chart.yaml", strings.Join(texts, "---\n")))
	if err := l.kubectl.WaitForDefinition(l.ctx); err != nil {
		l.t.Fatal(err)
	}
}

// owned is a Deployment as the operator makes it, with its owner.
const owned = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: probe, namespace: shop, ownerReferences: [
  {apiVersion: queueworker.dev/v1alpha1, kind: QueueWorker, name: probe, uid: probe, controller: true, blockOwnerDeletion: true}]},
  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: none}]}}}}`

// waitUntilOwnersAreKnown bridges the 10 s after which the part of the API server
// that judges owners learns of a new kind. A manager that it has refused waits a
// minute.
func (l *lab) waitUntilOwnersAreKnown() {
	l.t.Helper()
	file := l.write("owned.yaml", owned)
	l.eventually("the right to own a Deployment", func() bool {
		_, err := l.kubectl.Run(l.ctx, "create --dry-run=server --as="+operator.User+" -f "+file)
		return err == nil
	})
}

// start runs a manager with the rendered configuration; only its addresses are
// those of this machine.
func (l *lab) start() (stop func()) {
	l.t.Helper()
	endpoints, err := operator.FreeEndpoints()
	if err != nil {
		l.t.Fatal(err)
	}
	log := l.path("manager.log")
	// The webhook stays with its Service, as in a cluster, where nobody answers here: with the policy Ignore that costs time.
	manager, err := endpoints.Start(l.binary, l.path("kubeconfig"), log, "--config="+l.path("manager.yaml"), "--webhook-url=")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(manager.Kill)
	if err := manager.WaitUntilReady(l.ctx); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		l.t.Helper()
		if err := manager.Stop(); err != nil {
			l.t.Error(err)
		}
		text, err := os.ReadFile(log)
		if err != nil || strings.Contains(string(text), "forbidden") {
			l.t.Errorf("%v; the manager was refused something:\n%s", err, text)
		}
	}
}

// has says whether the workers of the sample are there.
func (l *lab) has(namespace string) bool {
	return l.run("-n "+namespace+" get deployments -o name") != ""
}

func (l *lab) eventually(what string, holds func() bool) {
	l.t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(l.path("manager.log"))
			l.t.Fatalf("they never came: %s; the manager's log:\n%s", what, log)
		}
	}
}
