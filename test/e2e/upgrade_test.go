// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/hack/node/image"
	install "github.com/queueworker/operator/hack/operator"
)

// Another operator, with another agent's image, changes no pod: not by itself, and not when it scales. The next change of the
// declaration rolls to the new agent.
func TestUpgradeOfTheOperatorChangesNoPod(t *testing.T) {
	s := newShop(t, onRedis)
	qw := s.queueWorker("kept", 2, ordinary)
	declared(t, qw)
	before := names(workers(qw))

	upgradeOperator(t, image.Name("operator-next"))
	defer upgradeOperator(t, image.Name("operator"))
	// That the new operator has looked shows in a third worker, of the old form.
	patched(t, qw, `{"spec":{"replicas":3}}`)
	settled(t, qw)
	after := workers(qw)
	for _, pod := range after {
		if agent := agentImage(pod); agent != image.Name("operator") {
			t.Errorf("pod %s has the agent of %s", pod.Name, agent)
		}
	}
	for _, name := range before {
		if !slices.Contains(names(after), name) {
			t.Errorf("pod %s is gone: now there are %v", name, names(after))
		}
	}

	patched(t, qw, `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	settled(t, qw)
	for _, pod := range workers(qw) {
		if agent := agentImage(pod); agent != image.Name("operator-next") {
			t.Errorf("after a change of the declaration pod %s has the agent of %s", pod.Name, agent)
		}
	}
}

func names(pods []seenPod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return all
}

func agentImage(pod seenPod) string {
	at := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == "queueworker-agent" })
	if at < 0 {
		return "no init container"
	}
	return pod.Spec.InitContainers[at].Image
}

// upgradeOperator lets another image bring the agent, and waits until the operator that does so leads alone.
func upgradeOperator(t *testing.T, agent string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":%q,"args":%s}]}}}}`,
		agent, `["--log-format=console","--agent-image=`+agent+`"]`)
	mustKubectl(t, "-n", install.Namespace, "patch", "deployment", install.Name, "-p", patch)
	mustKubectl(t, "-n", install.Namespace, "rollout", "status", "deployment/"+install.Name, "--timeout=120s")
	eventually(t, patience, "one operator, with the agent of "+agent, func() bool {
		out := mustKubectl(t, "-n", install.Namespace, "get", "pods", "-o", "jsonpath={range .items[*]}{.spec.containers[0].image} {end}")
		return strings.TrimSpace(out) == agent
	})
}

// A restart as a person asks for it, at the Deployment, drains like any rollout, and nobody takes it back.
func TestRolloutRestartIsNotReverted(t *testing.T) {
	beside(t)
	s := newShop(t, onDatabase)
	qw := s.queueWorker("restarted", 1, ordinary)
	declared(t, qw)
	s.dispatch(t, "Sleeps", "job", seconds(8))
	run := s.started(t, "job", 1)[0]
	mustKubectl(t, "rollout", "restart", "deployment/"+qw.Name)
	wellEnded(t, awaitGone(t, run.pod))
	s.ranOnce(t, "job", 8)
	settled(t, qw)
	restarted := names(workers(qw))
	patched(t, qw, `{"metadata":{"annotations":{"looked":"at"}}}`)
	patched(t, qw, `{"spec":{"replicas":2}}`) // the operator writes the Deployment once more
	settled(t, qw)
	for _, pod := range workers(qw) {
		if pod.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
			t.Errorf("pod %s is of the template before the restart", pod.Name)
		}
	}
	if !slices.Contains(names(workers(qw)), restarted[0]) {
		t.Errorf("pod %s was replaced once more", restarted[0])
	}
}
