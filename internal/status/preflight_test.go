// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
)

var (
	passed  = &preflight.Report{Outcome: preflight.Passed}
	partly  = &preflight.Report{Outcome: preflight.Passed, Warnings: 1, Unverified: 2, First: "log-not-writable: the log cannot be written"}
	refused = &preflight.Report{Outcome: preflight.Refused, Errors: 2, First: "class-timeout: 600 is above 90; set it to 85."}
	killed  = &preflight.Report{Outcome: preflight.Unjudged, First: "it was killed from outside"}
)

// preflighted is a settled QueueWorker whose pods run a preflight.
func preflighted() *state {
	s := settled()
	s.observed.Deployment.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.PreflightContainer}}
	return s
}

func (s *state) policy(p v1alpha1.PreflightPolicy) { s.observed.QueueWorker.Spec.Preflight.Policy = p }

func (s *state) said(value metav1.ConditionStatus, reason string) {
	s.observed.QueueWorker.Status.Conditions = append(s.observed.QueueWorker.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionPreflightPassed, Status: value, Reason: reason, Message: "As before."})
}

// tries makes the plan wait for a pod that runs only the preflight.
func (s *state) tries(seen *rollout.Trial) {
	s.plan.Trial, s.plan.Tried = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mail-preflight-f00"}}, seen
}

// TestPreflightCondition expects PreflightPassed (its status, reason and a part of
// its message) and the reason of Stalled.
func TestPreflightCondition(t *testing.T) {
	const yes, no, unknown = "True", "False", "Unknown"
	for name, c := range map[string]struct {
		arrange                       func(*state)
		value, reason, part, stalling string
	}{
		"passed":      {func(s *state) { s.observed.Preflight = passed }, yes, "Passed", "keeps what is declared", "NotStalled"},
		"not in full": {func(s *state) { s.observed.Preflight = partly }, yes, "Passed", "1 warning, 2 not verified: log-not-writable", "NotStalled"},
		"refused": {func(s *state) { s.observed.Preflight = refused }, no, "PreflightRefused",
			"class-timeout: 600 is above 90; set it to 85 (and 1 more).", "PreflightRefused"},
		"warned": {func(s *state) { s.policy("Warn"); s.observed.Preflight = refused }, no, "PreflightWarned",
			"starts all the same: class-timeout: 600", "NotStalled"},
		"killed":              {func(s *state) { s.observed.Preflight = killed }, unknown, "Unfinished", "it was killed from outside.", "NotStalled"},
		"killed, only warned": {func(s *state) { s.policy("Warn"); s.observed.Preflight = killed }, unknown, "Unfinished", "killed", "NotStalled"},
		"disabled":            {func(s *state) { s.policy("Disabled"); s.observed.Preflight = refused }, unknown, "Disabled", "not compared", "NotStalled"},
		"generic": {func(s *state) { s.observed.QueueWorker.Spec.Runtime = v1alpha1.RuntimeGeneric }, unknown, "Disabled",
			"not compared", "NotStalled"},
		"rendered without": {func(s *state) { s.observed.Deployment.Spec.Template.Spec.InitContainers = nil }, unknown, "NotRun",
			"the next rollout runs it", "NotStalled"},
		"nothing there":         {func(s *state) { s.observed.Deployment = nil }, unknown, "Pending", "has not ended", "NotStalled"},
		"rolling, nothing said": {func(s *state) { s.numbers(4, 1, 3); s.progressing("True", "ReplicaSetUpdated"); s.said(yes, "Passed") }, unknown, "Pending", "has not ended", "NotStalled"},
		"settled, pods gone":    {func(s *state) { s.said(yes, "Passed") }, yes, "Passed", "As before.", "NotStalled"},
		"template written": {func(s *state) {
			s.observed.Preflight, s.plan.NewTemplate, s.observed.Deployment.Generation = refused, true, 3
			s.said(no, "PreflightRefused")
		}, unknown, "Pending", "has not ended", "NotStalled"},
		"scaled while refused": {func(s *state) { s.observed.Preflight, s.observed.Deployment.Generation = refused, 3 }, no, "PreflightRefused",
			"class-timeout", "PreflightRefused"},

		"to be tried":  {func(s *state) { s.tries(nil); s.observed.Preflight = passed }, unknown, "Pending", "Pod mail-preflight-f00 runs", "NotStalled"},
		"being tried":  {func(s *state) { s.tries(&rollout.Trial{}) }, unknown, "Pending", "Pod mail-preflight-f00 runs", "NotStalled"},
		"tried, bad":   {func(s *state) { s.tries(&rollout.Trial{Preflight: refused}) }, no, "PreflightRefused", "class-timeout", "PreflightRefused"},
		"tried, died":  {func(s *state) { s.tries(&rollout.Trial{Preflight: killed}) }, unknown, "Unfinished", "killed", "NotStalled"},
		"not pulled":   {func(s *state) { s.tries(&rollout.Trial{ImageProblem: "ErrImagePull"}) }, unknown, "Pending", "Pod", "ImageUnavailable"},
		"just allowed": {func(s *state) { s.plan.Tried, s.plan.NewTemplate = &rollout.Trial{Preflight: passed}, true }, unknown, "Pending", "has not", "NotStalled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := preflighted()
			c.arrange(s)
			got := status.Of(s.observed, &s.plan)
			p := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionPreflightPassed)
			if string(p.Status) != c.value || p.Reason != c.reason || !strings.Contains(p.Message, c.part) {
				t.Errorf("%+v", p)
			}
			if stalled := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionStalled); stalled.Reason != c.stalling {
				t.Errorf("%+v", stalled)
			}
			checkMessages(t, got)
		})
	}
}

// The older workers go on, and so does Ready.
func TestARefusalLeavesTheOlderWorkersReady(t *testing.T) {
	s := preflighted()
	s.numbers(4, 1, 3)
	s.progressing("True", "ReplicaSetUpdated")
	s.observed.Preflight = refused
	got := status.Of(s.observed, &s.plan)
	ready := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady)
	const want = "3 of 3 workers available; the preflight refuses the image of the newest template, so its workers do not start: " +
		"class-timeout: 600 is above 90; set it to 85 (and 1 more)."
	if ready.Status != metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonPreflightRefused || ready.Message != want {
		t.Errorf("%+v", ready)
	}
	if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReconciling); c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
}

func TestATrialIsARollout(t *testing.T) {
	s := preflighted()
	s.tries(nil)
	c := meta.FindStatusCondition(status.Of(s.observed, &s.plan).Conditions, v1alpha1.ConditionReconciling)
	if c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonRollingOut || !strings.Contains(c.Message, "mail-preflight-f00") {
		t.Errorf("%+v", c)
	}
}
