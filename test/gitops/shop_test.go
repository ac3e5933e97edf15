// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/queueworker/operator/api/v1alpha1"
)

// shop is the namespace, the Application and the folder in Git.
const shop = "shop"

// spec is what changes in Git of the QueueWorker payments.
type spec struct {
	replicas string // a line, or nothing
	timeouts string
	image    string
	version  string // of the template
}

var base = spec{timeouts: "jobSeconds: 30, retryAfterSeconds: 90", image: workerImage, version: "1"}

func (s spec) manifest(name, queue string) string {
	return fmt.Sprintf(`apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata:
  name: %s
spec:
  runtime: Generic
  %s
  queue: {connection: database, names: [%s], store: shop-mysql}
  timeouts: {httpSeconds: 5, %s, terminationGracePeriodSeconds: 600}
  template:
    metadata:
      annotations: {version: %q}
    spec:
      containers:
        - name: worker
          image: %s
          imagePullPolicy: IfNotPresent
          command: [/worker]
          volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: {}}]
`, name, s.replicas, queue, s.timeouts, s.version, s.image)
}

// pushed commits the QueueWorker payments as s says.
func (s spec) pushed(t *testing.T) {
	t.Helper()
	push(t, shop+"/payments.yaml", s.manifest("payments", "payments"))
}

// application is an Application of the shop; more are lines of its spec.
func shopApplication(options string, more ...string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd}
spec:
  project: default
  source: {repoURL: "%s", path: %s, targetRevision: main}
  destination: {server: https://kubernetes.default.svc, namespace: %s}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    retry: {limit: 1}
    syncOptions: [%s]
%s`, shop, suite.git.url(), shop, shop, options, strings.Join(more, ""))
}

// examples are the YAML blocks of docs/gitops.md.
func examples(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	return found
}

// example is the one block of that language that holds the text.
func example(t *testing.T, language, with string) string {
	t.Helper()
	found := slices.DeleteFunc(examples(t, language), func(block string) bool { return !strings.Contains(block, with) })
	if len(found) != 1 {
		t.Fatalf("docs/gitops.md has %d blocks with %q, want one", len(found), with)
	}
	return found[0]
}

// replaced changes what an example names of somebody's own; each must be in it.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%q is not in\n%s", pair[0], text)
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

func workerPods(t *testing.T) (running, draining []corev1.Pod) {
	t.Helper()
	pods, err := suite.client.CoreV1().Pods(shop).List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelName + "=payments"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			running = append(running, pod)
		} else {
			draining = append(draining, pod)
		}
	}
	return running, draining
}

// finish lets a draining worker end its job.
func finish(t *testing.T, pod corev1.Pod) {
	t.Helper()
	mustKubectl(t, "", "-n", shop, "exec", pod.Name, "-c", v1alpha1.WorkerContainer, "--", "/worker", "finish")
	eventually(t, pod.Name+" is gone", func() error {
		_, draining := workerPods(t)
		if slices.ContainsFunc(draining, func(p corev1.Pod) bool { return p.UID == pod.UID }) {
			return fmt.Errorf("it is there")
		}
		return nil
	})
}

func finishAll(t *testing.T) {
	t.Helper()
	_, draining := workerPods(t)
	for _, pod := range draining {
		finish(t, pod)
	}
}

// drains waits until so many workers drain.
func drains(t *testing.T, workers int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d workers drain", workers), func() error {
		if _, draining := workerPods(t); len(draining) != workers {
			return fmt.Errorf("%d do", len(draining))
		}
		return nil
	})
}

var queueWorkers = schema.GroupVersionResource{Group: v1alpha1.GroupName, Version: "v1alpha1", Resource: "queueworkers"}

// replicas is the number in the cluster.
func replicas(t *testing.T) int64 {
	t.Helper()
	object, err := suite.objects.Resource(queueWorkers).Namespace(shop).Get(t.Context(), "payments", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	number, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return number
}

// autoscaled writes the scale subresource, as an autoscaler does.
func autoscaled(t *testing.T, replicas int) {
	t.Helper()
	mustKubectl(t, "", "-n", shop, "scale", "qw/payments", fmt.Sprintf("--replicas=%d", replicas))
}
