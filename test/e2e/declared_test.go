// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// declared applies a QueueWorker and waits until it is Ready.
func declared(t *testing.T, qw *v1alpha1.QueueWorker) {
	t.Helper()
	operator(t)
	deployed(t, qw)
	mustKubectl(t, "wait", "qw/"+qw.Name, "--for=condition=Ready", "--timeout=240s")
}

// settled waits until every worker is of the newest template and the older ones are gone.
func settled(t *testing.T, qw *v1alpha1.QueueWorker) {
	t.Helper()
	eventually(t, patience, "the rollout of "+qw.Name+" is over", func() bool {
		now := current(t, qw)
		return now.Status.ObservedGeneration == now.Generation &&
			meta.IsStatusConditionFalse(now.Status.Conditions, v1alpha1.ConditionReconciling) &&
			meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady)
	})
}

// patched changes the declaration.
func patched(t *testing.T, qw *v1alpha1.QueueWorker, patch string) {
	t.Helper()
	mustKubectl(t, "patch", "qw", qw.Name, "--type=merge", "-p", patch)
}

// current is the QueueWorker as the API server has it.
func current(t *testing.T, qw *v1alpha1.QueueWorker) v1alpha1.QueueWorker {
	t.Helper()
	at := "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/queueworkers/" + qw.Name
	text, err := suite.client.CoreV1().RESTClient().Get().AbsPath(at).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var now v1alpha1.QueueWorker
	if err := json.Unmarshal(text, &now); err != nil {
		t.Fatal(err)
	}
	return now
}

// workers are the pods of a QueueWorker whose end nobody has asked for.
func workers(qw *v1alpha1.QueueWorker) []seenPod {
	return slices.DeleteFunc(suite.pods.labelled(v1alpha1.LabelName, qw.Name), func(p seenPod) bool { return !p.live() })
}

// told are the messages of the operator's events about a QueueWorker, for one reason.
func told(t *testing.T, qw *v1alpha1.QueueWorker, reason string) []string {
	t.Helper()
	about := fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s,reason=%s", v1alpha1.Kind, qw.Name, reason)
	events, err := suite.client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: about})
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, event := range events.Items {
		messages = append(messages, event.Message)
	}
	return messages
}

// awaitKill waits until the operator names a killed worker, and returns what it says. Its pod and reason are asserted.
func awaitKill(t *testing.T, qw *v1alpha1.QueueWorker, pod string, reason v1alpha1.KillReason) v1alpha1.LastKill {
	t.Helper()
	var kill v1alpha1.LastKill
	eventually(t, patience, "a kill is named in "+qw.Name, func() bool {
		if last := current(t, qw).Status.LastKill; last != nil {
			kill = *last
		}
		return kill.Pod != ""
	})
	if kill.Pod != pod || kill.Reason != reason {
		t.Errorf("lastKill is %+v, wanted %s of pod %s", kill, reason, pod)
	}
	eventually(t, patience, "an event about it", func() bool {
		return slices.ContainsFunc(told(t, qw, string(reason)), func(message string) bool { return strings.Contains(message, pod) })
	})
	return kill
}

// condition is one of the conditions, empty where there is none.
func condition(t *testing.T, qw *v1alpha1.QueueWorker, kind string) metav1.Condition {
	t.Helper()
	if found := meta.FindStatusCondition(current(t, qw).Status.Conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}
