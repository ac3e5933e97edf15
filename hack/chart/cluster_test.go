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
	lab := newLab(t, nil, "shop", "crm")
	lab.installFirst("networkPolicy: {enabled: true}")
	lab.run("-n " + operator.Namespace + " rollout status deployment/" + operator.Name + " --timeout=60s")
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

// lab is an installation by kubectl, with managers that are processes.
type lab struct {
	t              *testing.T
	ctx            context.Context
	kubectl        operator.Kubectl
	folder, binary string
}

// newLab starts a control plane with a namespace for the operator and others for
// workers; flags are the API server's.
func newLab(t *testing.T, flags []string, namespaces ...string) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // a first run builds the control plane
	t.Cleanup(cancel)
	controlPlane, err := cluster.Start(ctx, cluster.Options{Nodes: 1, ExtraAPIServerArgs: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controlPlane.Stop(); err != nil {
			t.Error(err)
		}
	})
	l := &lab{t: t, ctx: ctx, kubectl: operator.Kubectl{Cluster: controlPlane, Root: root}, folder: t.TempDir()}
	l.binary = filepath.Join(l.folder, "manager")
	if err := operator.Build(ctx, root, l.binary); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range append(namespaces, operator.Namespace) {
		l.run("create namespace " + namespace)
	}
	l.run("label namespace " + operator.Namespace + " pod-security.kubernetes.io/enforce=restricted")
	return l
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

// installFirst also lets a manager be started: as the service account that the
// chart made, once that can work.
func (l *lab) installFirst(values string) {
	l.t.Helper()
	l.install(values)
	l.waitUntilOwnersAreKnown()
	if err := l.kubectl.WriteKubeconfig(l.ctx, operator.Name, l.path("kubeconfig")); err != nil {
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
	// The webhook stays with its Service, as in a cluster, where nobody answers here: with the policy Ignore that costs time.
	manager := l.startManager("--webhook-url=")
	return func() {
		l.t.Helper()
		if err := manager.Stop(); err != nil {
			l.t.Error(err)
		}
		text, err := os.ReadFile(l.path("manager.log"))
		if err != nil || strings.Contains(string(text), "forbidden") {
			l.t.Errorf("%v; the manager was refused something:\n%s", err, text)
		}
	}
}

func (l *lab) startManager(flags ...string) *operator.Manager {
	l.t.Helper()
	endpoints, err := operator.FreeEndpoints()
	if err != nil {
		l.t.Fatal(err)
	}
	manager, err := endpoints.Start(l.binary, l.path("kubeconfig"), l.path("manager.log"), append([]string{"--config=" + l.path("manager.yaml")}, flags...)...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(manager.Kill)
	if err := manager.WaitUntilReady(l.ctx); err != nil {
		l.t.Fatal(err)
	}
	return manager
}

// has says whether the workers of the sample are there.
func (l *lab) has(namespace string) bool {
	return l.run("-n "+namespace+" get deployment payments --ignore-not-found -o name") != ""
}

func (l *lab) eventually(what string, holds func() bool) {
	l.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(l.path("manager.log"))
			l.t.Fatalf("they never came: %s; the manager's log:\n%s", what, log)
		}
	}
}
