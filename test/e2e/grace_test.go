// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// shorterGrace is a policy of the cluster that lowers the grace of the pods of one QueueWorker, NAME.
const shorterGrace = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions:
    - {name: ours, expression: "object.metadata.?labels[?'queueworker.dev/name'].orValue('') == 'NAME'"}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{spec: Object.spec{terminationGracePeriodSeconds: 5}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`

// A policy that cuts every grace shows before it has killed anybody.
func TestPolicyThatCutsTheGraceShowsBeforeItKills(t *testing.T) {
	beside(t)
	operator(t)
	s := newShop(t, onRedis)
	qw := s.queueWorker("cut", 1, ordinary)
	policy := strings.ReplaceAll(shorterGrace, "NAME", qw.Name)
	if _, err := kubectl(t.Context(), policy, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := kubectl(context.Background(), policy, "delete", "-f", "-"); err != nil {
			t.Error(err)
		}
	})
	awaitPolicy(t, qw)
	deployed(t, qw)
	eventually(t, patience, "the operator sees the shorter grace", func() bool {
		honored := condition(t, qw, v1alpha1.ConditionGraceHonored)
		return honored.Status == metav1.ConditionFalse && honored.Reason == v1alpha1.ReasonAdmittedWithLess
	})
	if kill := current(t, qw).Status.LastKill; kill != nil {
		t.Errorf("somebody was killed before: %+v", kill)
	}
	eventually(t, patience, "an event about it", func() bool { return len(told(t, qw, v1alpha1.ReasonAdmittedWithLess)) == 1 })
	t.Log(told(t, qw, v1alpha1.ReasonAdmittedWithLess))

	// And it was right.
	mustKubectl(t, "wait", "qw/"+qw.Name, "--for=condition=Ready", "--timeout=120s")
	s.dispatch(t, "Long", "job", seconds(20))
	run := s.started(t, "job", 1)[0]
	mustKubectl(t, "delete", "pod", run.pod, "--wait=false")
	awaitKill(t, qw, run.pod, v1alpha1.KillGraceCut)
}

// awaitPolicy waits until the API server goes by the policy: it learns of it by a watch of its own.
func awaitPolicy(t *testing.T, qw *v1alpha1.QueueWorker) {
	t.Helper()
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: qw.Name + "-probe", Namespace: namespace, Labels: map[string]string{v1alpha1.LabelName: qw.Name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	eventually(t, patience, "the policy works", func() bool {
		made, err := suite.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		return *made.Spec.TerminationGracePeriodSeconds == 5
	})
}
