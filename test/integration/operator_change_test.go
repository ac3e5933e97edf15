// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// nextAgent is the agent of a later operator.
const nextAgent = "registry.example/operator:2.0.0"

// renderOfNextVersion is how a later operator might render: another agent, other
// words, one more variable.
func renderOfNextVersion(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain) corev1.PodTemplateSpec {
	pod := workload.WithAgent(nextAgent)(qw, chain)
	pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "--json")
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "NEXT", Value: "1"})
	return pod
}

// renderWithoutAgent is how an operator rendered that had none yet.
func renderWithoutAgent(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain) corev1.PodTemplateSpec {
	pod := workload.WithAgent("unused")(qw, chain)
	pod.Annotations, pod.Spec.InitContainers = nil, nil
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == v1alpha1.AgentVolume })
	worker := &pod.Spec.Containers[0]
	worker.Command, worker.Args, worker.VolumeMounts = worker.Args, nil, nil
	worker.Lifecycle, worker.LivenessProbe = nil, nil
	return pod
}

// agentOf is the image of the agent in a worker's template; empty without one.
func agentOf(ctx context.Context, qw *v1alpha1.QueueWorker) string {
	GinkgoHelper()
	for _, container := range deploymentOf(ctx, qw).Spec.Template.Spec.InitContainers {
		if container.Name == v1alpha1.AgentContainer {
			return container.Image
		}
	}
	return ""
}

// mostWrites is how many writes of a status there may be since then: one in each
// second, and one for each condition that flips in two changes.
func mostWrites(began time.Time) int {
	const flips = 8
	return int(time.Since(began).Seconds()) + 1 + flips
}

var _ = Describe("The operator", Serial, func() {
	It("writes nothing when nothing changes, whatever it looks at again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		var workers []*v1alpha1.QueueWorker
		for i := range 5 {
			qw := worker(namespace, fmt.Sprintf("worker-%d", i))
			if i%2 == 0 {
				qw.Spec.Runtime = v1alpha1.RuntimeHorizon
				qw.Spec.Template.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
			}
			Expect(k8s.Create(ctx, qw)).To(Succeed())
			workers = append(workers, qw)
		}
		for _, qw := range workers {
			settles(ctx, qw, 2)
			quiet(ctx, qw)
		}
		before := len(operator.writes.in(namespace, ""))
		versions := map[string]string{}
		for _, qw := range workers {
			versions[qw.Name] = get(ctx, qw).ResourceVersion + "/" + deploymentOf(ctx, qw).ResourceVersion
		}
		Consistently(func() int { return len(operator.writes.in(namespace, "")) }, "4s").Should(Equal(before), "%v", operator.writes)
		for _, qw := range workers {
			Expect(get(ctx, qw).ResourceVersion + "/" + deploymentOf(ctx, qw).ResourceVersion).To(Equal(versions[qw.Name]))
		}

		By("being restarted")
		operator.stop()
		operator = startOperator(nil)
		looksAt(len(workers))
		Consistently(func() []string { return operator.writes.in(namespace, "") }, "3s").Should(BeEmpty())

		By("being upgraded")
		operator.stop()
		operator = startOperator(renderOfNextVersion)
		looksAt(len(workers))
		Consistently(func() []string { return operator.writes.in(namespace, "") }, "3s").Should(BeEmpty())

		By("scaling and repairing with the template that runs")
		qw := workers[1]
		before1 := deploymentOf(ctx, qw).Spec.Template
		pods := runningUIDs(ctx, qw)
		scaleTo(ctx, qw, 3)
		settles(ctx, qw, 3)
		Expect(runningUIDs(ctx, qw)).To(ContainElements(pods))
		change(ctx, deploymentOf(ctx, qw), "somebody", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "registry.example/other:1"
		})
		Eventually(func() corev1.PodTemplateSpec { return deploymentOf(ctx, qw).Spec.Template }).Should(Equal(before1))
		settles(ctx, qw, 3)

		By("rendering anew what its user changes")
		Expect(agentOf(ctx, qw)).To(Equal(agentImage), "until then the agent is the old one")
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 40 })
		Eventually(func() []string { return deploymentOf(ctx, qw).Spec.Template.Spec.Containers[0].Args }).Should(ContainElements("--json", "--timeout=40"))
		Expect(agentOf(ctx, qw)).To(Equal(nextAgent))
		settles(ctx, qw, 3)

		By("being downgraded")
		quiet(ctx, qw)
		operator.stop()
		operator = startOperator(nil)
		looksAt(len(workers))
		Consistently(func() []string { return operator.writes.in(namespace, "") }, "3s").Should(BeEmpty())
	})

	It("gives the agent to workers of an operator that had none with their user's next change", func(ctx SpecContext) {
		operator.stop()
		operator = startOperator(renderWithoutAgent)
		qw := worker(newNamespace(ctx), "mail")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		quiet(ctx, qw)
		pods := runningUIDs(ctx, qw)

		operator.stop()
		operator = startOperator(nil)
		looksAt(1)
		Consistently(func() []string { return operator.writes.in(qw.Namespace, "") }, "3s").Should(BeEmpty())
		Expect(agentOf(ctx, qw)).To(BeEmpty())
		Expect(runningUIDs(ctx, qw)).To(ConsistOf(pods))

		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Worker.Wrapper = []string{"/entrypoint.sh"} })
		Eventually(func() string { return agentOf(ctx, qw) }).Should(Equal(agentImage))
		settles(ctx, qw, 2)
		Expect(runningUIDs(ctx, qw)).NotTo(ContainElements(pods))
		Expect(deploymentOf(ctx, qw).Spec.Template.Spec.Containers[0].Args[0]).To(Equal("/entrypoint.sh"))
	})

	It("writes a status at most once a second unless a condition flips", func(ctx SpecContext) {
		qw := drainsFor(worker(newNamespace(ctx), "mail"), "1s")
		Expect(k8s.Create(ctx, qw)).To(Succeed())
		settles(ctx, qw, 2)
		before, began := len(operator.writes.in(qw.Namespace, "/status")), time.Now()
		scaleTo(ctx, qw, 40)
		settles(ctx, qw, 40)
		change(ctx, qw, "somebody", func(qw *v1alpha1.QueueWorker) { qw.Spec.Timeouts.JobSeconds = 40 })
		settles(ctx, qw, 40)
		Expect(len(operator.writes.in(qw.Namespace, "/status"))-before).To(BeNumerically("<=", mostWrites(began)), "of some hundred changes of pods")
	})
})
