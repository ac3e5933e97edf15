// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

const newest, older = "new", "old"

// state is one moment in the life of a QueueWorker with three workers.
type state struct {
	observed *rollout.Observed
	plan     rollout.Plan
}

// settled is a QueueWorker whose rollout is over.
func settled() *state {
	qw := &v1alpha1.QueueWorker{
		ObjectMeta: metav1.ObjectMeta{Name: "mail", Namespace: "shop", UID: "worker-1", Generation: 4},
		Spec: v1alpha1.QueueWorkerSpec{
			Replicas: ptr.To[int32](3),
			Queue:    v1alpha1.Queue{Connection: "redis", Names: []string{"payments", "default"}},
			Timeouts: v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](20), JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](90)},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "worker", Image: "x:1"}}}},
		},
		Status: v1alpha1.QueueWorkerStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAvailable},
			{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSettled},
		}},
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "mail", Namespace: "shop", Generation: 2, Labels: workload.Labels(qw)},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Strategy: workload.EffectiveStrategy(qw)},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}},
		},
	}
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](100)
	chain := chainsource.FromQueueWorker(qw, chainsource.Options{})
	return &state{observed: &rollout.Observed{
		QueueWorker: qw, Chain: chain, Findings: timeoutchain.Check(chain), Deployment: deployment, NewestVersion: newest,
	}}
}

func (s *state) numbers(replicas, updated, available int32) {
	status := &s.observed.Deployment.Status
	status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = replicas, updated, available, available
}

func (s *state) progressing(value corev1.ConditionStatus, reason string) {
	s.observed.Deployment.Status.Conditions[0].Status = value
	s.observed.Deployment.Status.Conditions[0].Reason = reason
}

func (s *state) draining(version string, n int) {
	for range n {
		s.observed.Pods = append(s.observed.Pods, rollout.Pod{Version: version, Terminating: true, Grace: outcome.Grace{Stopping: true, Granted: 100}})
	}
}

func (s *state) before(ready, reconciling string) {
	s.observed.QueueWorker.Status.Conditions[0].Reason = ready
	s.observed.QueueWorker.Status.Conditions[1].Reason = reconciling
}

func (s *state) wanted(n int32) {
	s.observed.QueueWorker.Spec.Replicas, s.observed.Deployment.Spec.Replicas = &n, &n
}

func (s *state) rules(job int32) {
	s.observed.QueueWorker.Spec.Timeouts.JobSeconds = job
	s.observed.Chain = chainsource.FromQueueWorker(s.observed.QueueWorker, chainsource.Options{})
	s.observed.Findings = timeoutchain.Check(s.observed.Chain)
}

func (s *state) rolling(surge, unavailable intstr.IntOrString) {
	s.observed.QueueWorker.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
	s.observed.Deployment.Spec.Strategy = workload.EffectiveStrategy(s.observed.QueueWorker)
}

func (s *state) recreate() {
	s.observed.Deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

// TestConditions goes through the moments of a QueueWorker's life. Each
// expectation is Ready, Reconciling, Stalled: + or - and the reason.
func TestConditions(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(*state)
		want    string
	}{
		"settled":           {func(*state) {}, "+Available -Settled -NotStalled"},
		"nothing there yet": {func(s *state) { s.observed.Deployment = nil; s.before("", "") }, "-Progressing +RollingOut -NotStalled"},
		"waiting for an earlier one": {func(s *state) {
			s.observed.Deployment.OwnerReferences = []metav1.OwnerReference{{UID: "x", Controller: ptr.To(true)}}
			s.plan.Waiting = "Deployment mail"
		}, "-Progressing +RollingOut -NotStalled"},
		"first rollout": {func(s *state) {
			s.numbers(3, 3, 1)
			s.progressing("True", "ReplicaSetUpdated")
			s.before("Progressing", "RollingOut")
		}, "-Progressing +RollingOut -NotStalled"},
		"first rollout may lack all, Ready may not": {func(s *state) {
			s.numbers(1, 1, 0)
			s.wanted(1)
			s.progressing("True", "ReplicaSetUpdated")
			s.before("Progressing", "RollingOut")
			s.rolling(intstr.FromInt32(1), intstr.FromInt32(1))
		}, "-Progressing +RollingOut -NotStalled"},

		"template written":        {func(s *state) { s.plan.NewTemplate = true; s.observed.Deployment.Generation = 3 }, "+Available +RollingOut -NotStalled"},
		"rollout goes on, unseen": {func(s *state) { s.observed.Deployment.Generation = 3; s.before("Available", "RollingOut") }, "+Available +RollingOut -NotStalled"},
		"something else written":  {func(s *state) { s.observed.Deployment.Generation = 3 }, "+Available +Applying -NotStalled"},
		"replicas written":        {func(s *state) { s.wanted(5); s.observed.Deployment.Generation = 3 }, "-Unavailable +Scaling -NotStalled"},
		"rolling":                 {func(s *state) { s.numbers(4, 2, 3); s.progressing("True", "ReplicaSetUpdated") }, "+Available +RollingOut -NotStalled"},
		"older ones drain":        {func(s *state) { s.draining(older, 2) }, "+Available +DrainingOldPods -NotStalled"},
		"newest ones drain":       {func(s *state) { s.draining(newest, 2) }, "+Available -Settled -NotStalled"},
		"newest template unknown": {func(s *state) { s.observed.NewestVersion = "" }, "+Available +RollingOut -NotStalled"},
		"paused": {func(s *state) {
			s.observed.Deployment.Spec.Paused = true
			s.progressing("Unknown", "DeploymentPaused")
			s.numbers(3, 0, 3)
		}, "+Available +RollingOut -NotStalled"},
		"paused, nothing to do":    {func(s *state) { s.observed.Deployment.Spec.Paused = true; s.progressing("Unknown", "DeploymentPaused") }, "+Available -Settled -NotStalled"},
		"no progress deadline set": {func(s *state) { s.observed.Deployment.Status.Conditions = nil }, "+Available -Settled -NotStalled"},

		"recreate, old ones drain": {func(s *state) { s.recreate(); s.numbers(0, 0, 0); s.draining(newest, 3) }, "-Recreating +RollingOut -NotStalled"},
		"recreate, old ones gone":  {func(s *state) { s.recreate(); s.numbers(0, 0, 0); s.before("Recreating", "RollingOut") }, "-Recreating +RollingOut -NotStalled"},
		"recreate, from zero":      {func(s *state) { s.recreate(); s.numbers(0, 0, 0); s.before("ScaledToZero", "Settled") }, "-Unavailable +Scaling -NotStalled"},
		"recreate, new ones start": {func(s *state) { s.recreate(); s.numbers(3, 3, 1); s.progressing("True", "ReplicaSetUpdated") }, "-Recreating +RollingOut -NotStalled"},
		"recreate of one":          {func(s *state) { s.recreate(); s.wanted(1); s.numbers(0, 0, 0); s.draining(newest, 1) }, "-Recreating +RollingOut -NotStalled"},
		"recreate, one crashed":    {func(s *state) { s.recreate(); s.numbers(3, 3, 2) }, "-Unavailable -Settled -NotStalled"},
		"recreate, none wanted":    {func(s *state) { s.recreate(); s.wanted(0); s.numbers(0, 0, 0); s.draining(newest, 3) }, "+ScaledToZero -Settled -NotStalled"},
		"recreate, scaling":        {func(s *state) { s.recreate(); s.wanted(5); s.numbers(4, 4, 3) }, "-Unavailable +Scaling -NotStalled"},
		"recreate, over":           {func(s *state) { s.recreate() }, "+Available -Settled -NotStalled"},

		"scaling up":               {func(s *state) { s.wanted(4); s.numbers(3, 3, 3) }, "+Available +Scaling -NotStalled"},
		"one is starting":          {func(s *state) { s.numbers(3, 3, 2); s.observed.Pods = []rollout.Pod{{Version: newest, Starting: true}} }, "-Unavailable +Scaling -NotStalled"},
		"one has crashed":          {func(s *state) { s.numbers(3, 3, 2); s.observed.Pods = []rollout.Pod{{Version: newest}} }, "-Unavailable -Settled -NotStalled"},
		"one of eight has crashed": {func(s *state) { s.wanted(8); s.numbers(8, 8, 7) }, "+Available -Settled -NotStalled"},
		"the only one has crashed": {func(s *state) {
			s.wanted(1)
			s.numbers(1, 1, 0)
			s.rolling(intstr.FromInt32(1), intstr.FromInt32(1))
		}, "-Unavailable -Settled -NotStalled"},
		"more than wanted start":     {func(s *state) { s.observed.Pods = []rollout.Pod{{Version: newest, Starting: true}} }, "+Available -Settled -NotStalled"},
		"one of an older one drains": {func(s *state) { s.draining(older, 1) }, "+Available +DrainingOldPods -NotStalled"},
		"no surge and none less":     {func(s *state) { s.rolling(intstr.FromInt32(0), intstr.FromInt32(0)); s.numbers(3, 3, 2) }, "+Available -Settled -NotStalled"},
		"no surge, and two less":     {func(s *state) { s.rolling(intstr.FromInt32(0), intstr.FromInt32(0)); s.numbers(3, 3, 1) }, "-Unavailable -Settled -NotStalled"},
		"surge is no number":         {func(s *state) { s.rolling(intstr.FromString("x"), intstr.FromInt32(1)); s.numbers(3, 3, 2) }, "-Unavailable -Settled -NotStalled"},
		"share is no number":         {func(s *state) { s.rolling(intstr.FromInt32(1), intstr.FromString("x")); s.numbers(3, 3, 2) }, "-Unavailable -Settled -NotStalled"},
		"scaled to zero":             {func(s *state) { s.wanted(0); s.numbers(0, 0, 0) }, "+ScaledToZero -Settled -NotStalled"},

		"broken, runs on":  {func(s *state) { s.rules(100); s.plan.Stall = &rollout.Stall{Reason: "ChainBroken", Message: "No."} }, "-ChainBroken -ChainBroken +ChainBroken"},
		"refused, runs on": {func(s *state) { s.plan.Stall = &rollout.Stall{Reason: "DeploymentRefused", Message: "No."} }, "+DeploymentRefused -DeploymentRefused +DeploymentRefused"},
		"refused, nothing yet": {func(s *state) {
			s.observed.Deployment = nil
			s.plan.Stall = &rollout.Stall{Reason: "DeploymentRefused", Message: "No."}
		}, "-DeploymentRefused -DeploymentRefused +DeploymentRefused"},
		"foreign": {func(s *state) {
			s.observed.Deployment.Labels = nil
			s.plan.Stall = &rollout.Stall{Reason: "ForeignObject", Message: "No."}
		}, "-ForeignObject -ForeignObject +ForeignObject"},
		"deadline": {func(s *state) { s.numbers(4, 1, 3); s.progressing("False", "ProgressDeadlineExceeded") }, "+ProgressDeadlineExceeded -ProgressDeadlineExceeded +ProgressDeadlineExceeded"},
		"deadline of the template before": {func(s *state) {
			s.progressing("False", "ProgressDeadlineExceeded")
			s.observed.Deployment.Generation = 3
			s.before("Available", "RollingOut")
		}, "+Available +RollingOut -NotStalled"},
		"no image":            {func(s *state) { s.observed.Pods = []rollout.Pod{{Version: newest, ImageProblem: "x"}} }, "+ImageUnavailable -ImageUnavailable +ImageUnavailable"},
		"no image, but older": {func(s *state) { s.observed.Pods = []rollout.Pod{{Version: older, ImageProblem: "x"}} }, "+Available -Settled -NotStalled"},
		"no image, already new": {func(s *state) {
			s.observed.Pods = []rollout.Pod{{Version: newest, ImageProblem: "x"}}
			s.observed.Deployment.Generation = 3
		}, "+Available +Applying -NotStalled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := settled()
			c.arrange(s)
			got := status.Of(s.observed, &s.plan)
			var words []string
			for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				condition := meta.FindStatusCondition(got.Conditions, kind)
				sign := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "+", metav1.ConditionFalse: "-"}[condition.Status]
				words = append(words, sign+condition.Reason)
			}
			if got := strings.Join(words, " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			checkMessages(t, got)
		})
	}
}

func checkMessages(t *testing.T, got v1alpha1.QueueWorkerStatus) {
	t.Helper()
	for _, c := range got.Conditions {
		if !strings.HasSuffix(c.Message, ".") || strings.HasSuffix(c.Message, "..") || c.ObservedGeneration != 4 {
			t.Errorf("%s: %q at generation %d", c.Type, c.Message, c.ObservedGeneration)
		}
	}
}

func TestColumnsAndMessages(t *testing.T) {
	s := settled()
	s.numbers(4, 3, 2)
	s.draining(older, 2)
	s.draining(newest, 1)
	got := status.Of(s.observed, &s.plan)
	if got.Chain != "20<30<90<100" || got.Ready != "2/3" || got.Queues != "payments,default" || got.Selector != "queueworker.dev/name=mail" ||
		got.Replicas != 4 || got.UpdatedReplicas != 3 || got.ReadyReplicas != 2 || got.TerminatingReplicas != 3 ||
		got.TerminationGracePeriodSeconds != 100 || got.ObservedGeneration != 4 {
		t.Errorf("%+v", got)
	}
	for kind, want := range map[string]string{
		v1alpha1.ConditionReady:        "2 of 3 workers available, at least 3 are needed.",
		v1alpha1.ConditionReconciling:  "3 of 3 workers run the newest template, 2 are available in all, 2 of an older template are draining.",
		v1alpha1.ConditionStalled:      "Nothing here waits for a change.",
		v1alpha1.ConditionChainIntact:  "20<30<90<100: every link holds.",
		v1alpha1.ConditionDraining:     "3 workers may still finish a job, for up to 100 s; 2 run an older template.",
		v1alpha1.ConditionGraceHonored: "Every worker has the grace that it was promised.",
	} {
		if c := meta.FindStatusCondition(got.Conditions, kind); c.Message != want {
			t.Errorf("%s: got  %q\nwant %q", kind, c.Message, want)
		}
	}
}

func TestMessagesSayWhy(t *testing.T) {
	message := func(s *state, kind string) string {
		return meta.FindStatusCondition(status.Of(s.observed, &s.plan).Conditions, kind).Message
	}
	s := settled()
	s.numbers(2, 2, 2)
	s.observed.Deployment.Status.Conditions = append(s.observed.Deployment.Status.Conditions,
		appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"})
	if got := message(s, v1alpha1.ConditionReconciling); got != "Scaling: 2 of 3 workers exist, 2 are available; pods cannot be made: exceeded quota." {
		t.Error(got)
	}
	s.observed.Deployment.Status.Conditions[1].Status = corev1.ConditionFalse
	if got := message(s, v1alpha1.ConditionReconciling); strings.Contains(got, "quota") {
		t.Error(got)
	}
	s.observed.Pods = []rollout.Pod{{Version: newest, ImageProblem: "b"}, {Version: newest, ImageProblem: "a"}, {Version: newest, ImageProblem: "c"}}
	if got := message(s, v1alpha1.ConditionStalled); got != "3 workers cannot start because an image cannot be pulled: a." {
		t.Error(got)
	}
	if got := message(s, v1alpha1.ConditionReady); got != "2 of 3 workers available; 3 workers cannot start because an image cannot be pulled: a." {
		t.Error(got)
	}
	s.observed.Pods = s.observed.Pods[:1]
	if got := message(s, v1alpha1.ConditionStalled); got != "1 worker cannot start because an image cannot be pulled: b." {
		t.Error(got)
	}
	s.plan.Stall = &rollout.Stall{Reason: "X"}
	if got := message(s, v1alpha1.ConditionReady); got != "2 of 3 workers available; ." {
		t.Error(got)
	}
}

func TestGraceIsWhatTheWorkersGet(t *testing.T) {
	s := settled()
	s.rules(100) // would derive 130
	if got := status.Of(s.observed, &s.plan).TerminationGracePeriodSeconds; got != 100 {
		t.Errorf("%d, but the Deployment says 100", got)
	}
	s.observed.Deployment = nil
	if got := status.Of(s.observed, &s.plan).TerminationGracePeriodSeconds; got != 130 {
		t.Errorf("%d, but the chain says 130", got)
	}
}

func TestNotes(t *testing.T) {
	s := settled()
	s.plan.ReplicasOwner = "autoscaler"
	s.observed.Deployment.Spec.Replicas = ptr.To[int32](5)
	s.numbers(5, 5, 5)
	s.observed.OtherBudgets = []string{"everything"}
	s.plan.Budget = workload.DisruptionBudget(&v1alpha1.QueueWorker{Spec: v1alpha1.QueueWorkerSpec{PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{}}})
	got := status.Of(s.observed, &s.plan)
	message := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady).Message
	if got.Ready != "5/5" || !strings.Contains(message, "belong to autoscaler, so spec.replicas 3 is not passed on") || !strings.Contains(message, "PodDisruptionBudget everything") {
		t.Errorf("%s: %s", got.Ready, message)
	}
	notes := status.Notes(s.observed, &s.plan)
	for _, note := range notes {
		if !note.ToldIn(message) || note.ToldIn("") {
			t.Errorf("%+v", note)
		}
	}
	s.plan.ReplicasOwner, s.observed.OtherBudgets = "", nil
	if got := status.Notes(s.observed, &s.plan); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	s.plan.ReplicasOwner, s.observed.OtherBudgets = "autoscaler", []string{"everything"}
	s.plan.Budget = nil // one budget of somebody else's, and none of ours, is fine
	if len(notes) != 2 || len(status.Notes(s.observed, &s.plan)) != 1 {
		t.Errorf("%+v", notes)
	}
}

func TestChainCondition(t *testing.T) {
	s := settled()
	s.rules(88)
	c := meta.FindStatusCondition(status.Of(s.observed, &s.plan).Conditions, v1alpha1.ConditionChainIntact)
	if c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonHoldsWithWarnings || !strings.Contains(c.Message, "thin-margin") {
		t.Errorf("%+v", c)
	}
	s.rules(100)
	c = meta.FindStatusCondition(status.Of(s.observed, &s.plan).Conditions, v1alpha1.ConditionChainIntact)
	if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonChainBroken || !strings.HasPrefix(c.Message, "20<100>=90") {
		t.Errorf("%+v", c)
	}
	s.observed.Findings[0].Problem = strings.Repeat("ä", 20000)
	c = meta.FindStatusCondition(status.Of(s.observed, &s.plan).Conditions, v1alpha1.ConditionChainIntact)
	if len(c.Message) > 32768 {
		t.Errorf("%d bytes are more than the API accepts", len(c.Message))
	}
}

func TestDeletedOnlyReportsTheDrain(t *testing.T) {
	s := settled()
	s.observed.QueueWorker.Status.Chain = "kept"
	s.draining(newest, 2)
	s.numbers(0, 0, 0)
	got := status.OfDeleted(s.observed)
	draining := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionDraining)
	ready := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady)
	if got.TerminatingReplicas != 2 || got.Replicas != 0 || got.Ready != "0/0" || got.Chain != "kept" ||
		draining.Status != metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonAvailable {
		t.Errorf("%+v", got)
	}
}
