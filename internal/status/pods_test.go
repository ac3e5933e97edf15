// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func (s *state) condition(kind string) metav1.Condition {
	return *meta.FindStatusCondition(status.Of(s.observed, &s.plan).Conditions, kind)
}

// stopping adds a worker of the newest template that was asked to stop with so
// many seconds.
func (s *state) stopping(name string, granted int64, asked time.Time) {
	s.observed.Pods = append(s.observed.Pods, rollout.Pod{Name: name, Version: newest, Terminating: true, Grace: outcome.Grace{
		Promised: 100, Admitted: 100, Stopping: true, Granted: granted, Asked: asked,
	}})
}

func TestOverdueDrainsAreCalledOverdue(t *testing.T) {
	asked := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	s := settled()
	s.stopping("a", 100, asked)
	s.stopping("b", 40, asked)
	for after, want := range map[time.Duration]string{
		0:                 "WorkersDraining 2 workers may still finish a job, for up to 100 s.",
		44 * time.Second:  "WorkersDraining 2 workers may still finish a job, for up to 100 s.",
		45 * time.Second:  "DrainOverdue 2 workers may still finish a job, for up to 100 s; 1 should have been gone at 2026-03-02T10:00:45Z: look whether the node still answers.",
		200 * time.Second: "DrainOverdue 2 workers may still finish a job; 2 should have been gone at 2026-03-02T10:00:45Z: look whether the node still answers.",
		time.Hour:         "DrainOverdue 2 workers may still finish a job; 2 should have been gone at 2026-03-02T10:00:45Z: look whether the node still answers.",
	} {
		s.observed.Now = asked.Add(after)
		c := s.condition(v1alpha1.ConditionDraining)
		if got := c.Reason + " " + c.Message; got != want || c.Status != metav1.ConditionTrue {
			t.Errorf("after %v: %s", after, got)
		}
	}
	s.observed.Pods = nil
	s.stopping("a", 0, asked) // the kubelet's last request
	s.observed.Now = asked
	if c := s.condition(v1alpha1.ConditionDraining); c.Message != "1 worker may still finish a job." {
		t.Error(c.Message)
	}
}

func TestGraceHonored(t *testing.T) {
	pod := func(name string, g outcome.Grace) rollout.Pod { return rollout.Pod{Name: name, Grace: g} }
	lowered := outcome.Grace{Promised: 100, Admitted: 30}
	cut := func(granted int64) outcome.Grace {
		return outcome.Grace{Promised: 100, Admitted: 100, Stopping: true, Granted: granted}
	}
	ended := pod("z", cut(1))
	ended.Ended = true
	for name, c := range map[string]struct {
		pods []rollout.Pod
		want string // the reason, and what the message has to hold
	}{
		"no pods":             {nil, "PromiseKept Every worker"},
		"kept":                {[]rollout.Pod{pod("a", outcome.Grace{Promised: 100, Admitted: 100}), pod("b", cut(100))}, "PromiseKept Every worker"},
		"nothing is promised": {[]rollout.Pod{pod("a", outcome.Grace{Admitted: 30})}, "PromiseKept Every worker"},
		"admitted with less":  {[]rollout.Pod{pod("b", lowered), pod("a", lowered), pod("c", cut(5))}, "AdmittedWithLess 2 workers were admitted with less grace than promised, pod a with 30 s instead of 100 s"},
		"one may be cut":      {[]rollout.Pod{pod("a", cut(5))}, "MayBeCut 1 worker is being stopped with less time than promised, pod a with 5 s instead of 100 s"},
		"the least is named":  {[]rollout.Pod{pod("a", cut(5)), pod("b", cut(3))}, "MayBeCut 2 workers are being stopped with less time than promised, pod b with 3 s"},
		"it has ended":        {[]rollout.Pod{ended}, "PromiseKept Every worker"},
	} {
		s := settled()
		s.observed.Pods = c.pods
		got := s.condition(v1alpha1.ConditionGraceHonored)
		reason, text, _ := strings.Cut(c.want, " ")
		value := metav1.ConditionFalse
		if reason == v1alpha1.ReasonPromiseKept {
			value = metav1.ConditionTrue
		}
		if got.Reason != reason || got.Status != value || !strings.HasPrefix(got.Message, text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestLastEndingsAreReported(t *testing.T) {
	s := settled()
	s.observed.LastDrain, s.observed.LastKill = &v1alpha1.LastDrain{Pod: "a"}, &v1alpha1.LastKill{Pod: "b"}
	for _, got := range []v1alpha1.QueueWorkerStatus{status.Of(s.observed, &s.plan), status.OfDeleted(s.observed)} {
		if got.LastDrain == nil || got.LastDrain.Pod != "a" || got.LastKill == nil || got.LastKill.Pod != "b" {
			t.Errorf("%+v", got)
		}
	}
}

func TestRecreateForOneRolloutIsExplained(t *testing.T) {
	s := settled()
	s.recreate()
	s.numbers(0, 0, 0)
	s.draining(older, 3)
	s.plan.Clash = &rollout.Clash{
		Old: timeoutchain.Wire{JobSeconds: 60, RetryAfterSeconds: 90}, New: timeoutchain.Wire{JobSeconds: 600, RetryAfterSeconds: 700},
	}
	ready := s.condition(v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonRecreating || !strings.Contains(ready.Message, "the older workers have job 60 s and reservation 90 s, the new ones job 600 s and reservation 700 s") {
		t.Errorf("%+v", ready)
	}
	notes := status.Notes(s.observed, &s.plan)
	if len(notes) != 1 || notes[0].Reason != status.ReasonRolloutAsRecreate || !notes[0].ToldIn(ready.Message) {
		t.Errorf("%+v", notes)
	}
	s.plan.Clash = &rollout.Clash{Unreadable: true}
	if ready := s.condition(v1alpha1.ConditionReady); !strings.Contains(ready.Message, "as Recreate, since the timeouts of an older worker cannot be read") {
		t.Errorf("%+v", ready)
	}
}

func TestContainersOfOthersAreNamed(t *testing.T) {
	s := settled()
	s.observed.Deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "worker"}, {Name: "declared"}}
	s.observed.Pods = []rollout.Pod{
		{Version: newest, Beside: "declared,mesh"}, {Version: newest, Beside: "mesh,agent"}, {Version: older, Beside: "earlier"}, {Version: newest},
	}
	notes := status.Notes(s.observed, &s.plan)
	if len(notes) != 1 || notes[0].Reason != status.ReasonSidecarStopsFirst || !strings.Contains(notes[0].Text, "added the container agent, mesh to") {
		t.Errorf("%+v", notes)
	}
	s.observed.Deployment = nil
	if notes := status.Notes(s.observed, &s.plan); len(notes) != 0 {
		t.Errorf("%+v", notes)
	}
}
