// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/hack/node/image"
)

// A proxy to the database beside the worker: an ordinary container stops when the drain begins and takes the job's connection
// along, as the warning said. A native sidecar outlives the worker.
func TestDatabaseProxyBesideTheWorker(t *testing.T) {
	beside(t)
	for name, native := range map[string]bool{"ordinary container": false, "native sidecar": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operator(t)
			s := newShop(t, onRedis)
			qw := s.queueWorker("proxied", 1, ordinary)
			throughProxy(&qw.Spec.Template.Spec, native)
			warned := s.declaredWithWarning(t, qw, "sidecar-stops-first")
			if warned == native {
				t.Errorf("warned beforehand: %t", warned)
			}
			s.dispatch(t, "Queries", "job", seconds(6))
			run := s.started(t, "job", 1)[0]
			time.Sleep(time.Second)
			mustKubectl(t, "delete", "pod", run.pod, "--wait=false")
			pod := awaitGone(t, run.pod)
			if native {
				wellEnded(t, pod)
				s.ranOnce(t, "job", 6)
				s.nothingLeft(t)
				return
			}
			if runs := s.runs(t)["job"]; !runs[0].end.IsZero() {
				t.Errorf("the job kept its connection: %+v", runs)
			}
		})
	}
}

// throughProxy adds a proxy to the database and lets the worker use it.
func throughProxy(pod *corev1.PodSpec, native bool) {
	proxy := corev1.Container{
		Name: "proxy", Image: image.Name("proxy"), ImagePullPolicy: corev1.PullNever, Args: []string{"127.0.0.1:3306", mariaAddress + ":3306"},
	}
	worker := &pod.Containers[0]
	for i := range worker.Env {
		if worker.Env[i].Name == "DB_HOST" {
			worker.Env[i].Value = "127.0.0.1"
		}
	}
	if !native {
		pod.Containers = append(pod.Containers, proxy)
		return
	}
	proxy.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	pod.InitContainers = append(pod.InitContainers, proxy)
}

// declaredWithWarning applies the QueueWorker, waits until it is Ready, and tells whether the API server passed on this warning.
func (s *shop) declaredWithWarning(t *testing.T, qw *v1alpha1.QueueWorker, rule string) bool {
	t.Helper()
	text, err := json.Marshal(qw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := kubectl(t.Context(), string(text), "apply", "--dry-run=server", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	declared(t, qw)
	return strings.Contains(out, "Warning: ") && strings.Contains(out, rule)
}
