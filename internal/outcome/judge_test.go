// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const promised = 60

var asked = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// scene is a pod as the API server shows it; it begins as a running worker with
// a promise of 60 s.
type scene struct {
	pod    *corev1.Pod
	status *corev1.ContainerStatus
}

func running() *scene {
	wire := timeoutchain.Wire{Version: timeoutchain.WireVersion, Runtime: timeoutchain.Laravel, GraceSeconds: promised}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "mail-1", Namespace: "shop", UID: "uid-1", Labels: map[string]string{v1alpha1.LabelName: "mail"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](promised),
			Containers:                    []corev1.Container{{Name: "worker", Env: []corev1.EnvVar{{Name: timeoutchain.WireEnv, Value: wire.Encode()}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "proxy", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}},
			{Name: "worker", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
	return &scene{pod: pod, status: &pod.Status.ContainerStatuses[1]}
}

// stopped is the pod after a request to stop with so many seconds.
func stopped(granted int64) *scene {
	s := running()
	s.ask(granted)
	return s
}

func (s *scene) ask(granted int64) {
	at := metav1.NewTime(asked.Add(time.Duration(granted) * time.Second))
	s.pod.DeletionTimestamp, s.pod.DeletionGracePeriodSeconds = &at, &granted
}

// end ends the worker's container so many seconds after the request to stop.
func (s *scene) end(code int32, reason string, after int, message string) *scene {
	s.status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.NewTime(asked.Add(time.Duration(after) * time.Second)),
	}}
	return s
}

func (s *scene) disrupted(reason string) *scene {
	s.pod.Status.Conditions = append(s.pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason})
	return s
}

func (s *scene) failed(reason string) *scene {
	s.pod.Status.Phase, s.pod.Status.Reason = corev1.PodFailed, reason
	return s
}

func said(outcome termination.Outcome, provisional bool) string {
	return string(termination.Message{
		Outcome: outcome, Provisional: provisional, DrainAt: asked.Format(time.RFC3339), DrainSeconds: 4.885, Reason: "why",
		Job: &termination.Job{UUID: "d67e", Class: `App\Jobs\Charge`, AgeSeconds: 12.4},
	}.Encode())
}

func unasked(outcome termination.Outcome) string {
	return string(termination.Message{Outcome: outcome, Reason: "why"}.Encode())
}

func TestJudge(t *testing.T) {
	inTheJob := said(termination.GraceCut, true)
	for name, c := range map[string]struct {
		scene *scene
		want  string
	}{
		// Asked to stop, and stopped.
		"a job in the middle, drained":           {stopped(60).end(0, "Completed", 10, said(termination.Drained, false)), "Drained"},
		"its own time limit ended the job":       {stopped(60).end(0, "Completed", 10, said(termination.Drained, false)), "Drained"},
		"evicted, drained":                       {stopped(60).disrupted("EvictionByEvictionAPI").end(0, "Completed", 10, said(termination.Drained, false)), "Drained"},
		"evicted with less, drained":             {stopped(3).disrupted("EvictionByEvictionAPI").end(0, "Completed", 2, said(termination.Drained, false)), "Drained"},
		"a second, shorter request, drained":     {stopped(1).end(0, "Completed", 14, said(termination.Drained, false)), "Drained"},
		"drained in the two seconds after":       {stopped(5).end(0, "Completed", 6, said(termination.Drained, false)), "Drained"},
		"drained, an earlier process was OOM":    {stopped(60).end(0, "OOMKilled", 10, said(termination.Drained, false)), "Drained"},
		"exit 0, an earlier process was OOM":     {stopped(60).end(0, "OOMKilled", 10, inTheJob), "Drained"},
		"drained, then SIGKILL before its exit":  {stopped(60).end(137, "Error", 61, said(termination.Drained, false)), "Drained"},
		"drained, SIGKILL and OOM of an earlier": {stopped(60).end(137, "OOMKilled", 61, said(termination.Drained, false)), "Drained"},
		"the same without its final word":        {stopped(60).end(0, "Completed", 10, inTheJob), "Drained"},
		"no agent, ended with 0":                 {stopped(60).end(0, "Completed", 10, ""), "Drained"},
		"no agent, ended by TERM":                {stopped(60).end(143, "Error", 1, "bye"), "Drained"},
		"no agent, ended by QUIT":                {stopped(60).end(131, "Error", 1, ""), "Drained"},
		"no agent, ended by INT":                 {stopped(60).end(130, "Error", 1, ""), "Drained"},
		"the container was stopped by a probe":   {running().end(0, "Completed", 10, said(termination.Drained, false)), "Drained"},

		// Asked to stop, and killed.
		"the job outlasted the grace":          {stopped(60).end(137, "Error", 62, inTheJob), "GraceEnded"},
		"so it did, by a clock that is behind": {stopped(60).end(137, "Error", 57, inTheJob), "GraceEnded"},
		"so it did, evicted":                   {stopped(60).disrupted("EvictionByEvictionAPI").end(137, "Error", 62, inTheJob), "GraceEnded"},
		"so it did, an earlier process OOM":    {stopped(60).end(137, "OOMKilled", 62, inTheJob), "GraceEnded"},
		"so it did, no agent":                  {stopped(60).end(137, "Error", 62, ""), "GraceEnded"},
		"more granted than promised":           {stopped(900).end(137, "Error", 902, inTheJob), "GraceEnded"},
		"a shorter request":                    {stopped(5).end(137, "Error", 7, inTheJob), "GraceCut"},
		"a shorter request, an earlier OOM":    {stopped(5).end(137, "OOMKilled", 7, inTheJob), "GraceCut"},
		"a second, shorter request":            {stopped(1).end(137, "Error", 14, inTheJob), "GraceCut"},
		"killed early, nobody knows why":       {stopped(60).end(137, "Error", 20, inTheJob), "GraceCut"},
		"no agent, a shorter request":          {stopped(5).end(137, "Error", 7, ""), "GraceCut"},
		"evicted with less":                    {stopped(3).disrupted("EvictionByEvictionAPI").end(137, "Error", 5, inTheJob), "Evicted"},
		"taint, with less":                     {stopped(3).disrupted("DeletionByTaintManager").end(137, "Error", 5, ""), "Evicted"},
		"memory, in a drain":                   {stopped(60).end(137, "OOMKilled", 20, inTheJob), "OOMKilled"},
		"memory, in the drain of an evicted":   {stopped(60).disrupted("EvictionByEvictionAPI").end(137, "OOMKilled", 20, inTheJob), "OOMKilled"},
		"memory, told by the agent":            {stopped(60).end(137, "Error", 20, said(termination.OOMKilled, false)), "OOMKilled"},
		"killed inside, by the runtime's word": {stopped(60).end(137, "OOMKilled", 20, said(termination.Killed, false)), "OOMKilled"},
		"killed inside":                        {stopped(60).end(137, "Error", 20, said(termination.Killed, false)), "Crashed"},
		"overran, in a drain":                  {stopped(60).end(70, "Error", 20, said(termination.Overran, false)), "Overran"},
		"overran, an earlier process was OOM":  {stopped(60).end(70, "OOMKilled", 20, said(termination.Overran, false)), "Overran"},
		"crashed in a drain":                   {stopped(60).end(70, "Error", 20, said(termination.Crashed, false)), "Crashed"},
		"crashed, without its final word":      {stopped(60).end(70, "Error", 20, inTheJob), "Crashed"},
		"the agent itself died by TERM":        {stopped(60).end(143, "Error", 20, inTheJob), "Crashed"},
		"no agent, crashed in a drain":         {stopped(60).end(255, "Error", 1, ""), "Crashed"},

		// Not asked to stop.
		"crashed":                          {running().end(70, "Error", 0, unasked(termination.Crashed)), "Crashed"},
		"crashed, an earlier OOM":          {running().end(70, "OOMKilled", 0, unasked(termination.Crashed)), "Crashed"},
		"overran":                          {running().end(70, "Error", 0, unasked(termination.Overran)), "Overran"},
		"memory, cgroup v1":                {running().end(137, "OOMKilled", 0, unasked(termination.OOMKilled)), "OOMKilled"},
		"memory, cgroup v2: no message":    {running().end(137, "OOMKilled", 0, ""), "OOMKilled"},
		"killed":                           {running().end(137, "Error", 0, unasked(termination.Killed)), "Crashed"},
		"killed, agent and all":            {running().end(137, "Error", 0, ""), "Crashed"},
		"the probe gave up, and killed":    {running().end(137, "Error", 70, inTheJob), "GraceEnded"},
		"node pressure":                    {running().failed("Evicted").disrupted("TerminationByKubelet").end(137, "Error", 1, inTheJob), "Evicted"},
		"node pressure, an older kubelet":  {running().failed("Evicted").end(137, "Error", 1, ""), "Evicted"},
		"node pressure, an earlier OOM":    {running().failed("Evicted").end(137, "OOMKilled", 1, inTheJob), "Evicted"},
		"node pressure, idle":              {running().failed("Evicted").end(0, "Completed", 1, said(termination.Drained, false)), "Drained"},
		"node shutdown":                    {running().failed("Terminated").disrupted("TerminationByKubelet").end(137, "Error", 10, inTheJob), "Evicted"},
		"ended by itself with 0":           {running().end(0, "Completed", 0, ""), ""},
		"a program ended with 0":           {running().end(0, "Completed", 0, unasked(termination.Crashed)), ""},
		"the same, an earlier OOM":         {running().end(0, "OOMKilled", 0, ""), ""},
		"TERM that nobody asked for":       {running().end(143, "Error", 0, ""), "Crashed"},
		"the kubelet found no trace of it": {running().end(137, "ContainerStatusUnknown", 0, ""), "Unobserved"},
	} {
		t.Run(name, func(t *testing.T) {
			ending := last(t, c.scene.pod)
			if got := word(&ending); got != c.want {
				t.Errorf("%s, want %s: %+v", got, c.want, ending)
			}
			if ending.Kind == outcome.Killed && !strings.HasSuffix(ending.Text(), ".") {
				t.Errorf("%q", ending.Text())
			}
		})
	}
}

func last(t *testing.T, pod *corev1.Pod) outcome.Ending {
	t.Helper()
	runs := outcome.Runs(pod)
	if len(runs) == 0 {
		t.Fatal("no run is over")
	}
	return outcome.Judge(pod, runs[len(runs)-1], outcome.GraceOf(pod))
}

func word(ending *outcome.Ending) string {
	switch ending.Kind {
	case outcome.Drained:
		return "Drained"
	case outcome.Killed:
		return string(ending.Reason)
	case outcome.Unobserved:
		return "Unobserved"
	default:
		return ""
	}
}

func TestAKillIsNamed(t *testing.T) {
	for want, s := range map[string]*scene{
		`Worker mail-1 was killed before its promised grace was over in job App\Jobs\Charge d67e, which had run for 12 s, 7 s after it was asked to stop with 60 s promised and 5 s granted; ` +
			`delete, drain and evict without a grace period of their own, and see the condition GraceHonored.`: stopped(5).end(137, "Error", 7, said(termination.GraceCut, true)),
		`Worker mail-1 was killed by an eviction, 5 s after it was asked to stop with 60 s promised and 3 s granted (EvictionByEvictionAPI); ` +
			`request the memory and the ephemeral storage that the worker uses, and drain nodes without a grace period of their own.`: stopped(3).disrupted("EvictionByEvictionAPI").end(137, "Error", 5, ""),
		`Worker mail-1 crashed (exit code 255); see the log of its last run: kubectl logs --previous, container worker.`:          running().end(255, "Error", 0, ""),
		`Worker mail-1 was killed by the watchdog (why); give the call that it hung in a timeout, and declare it in httpSeconds.`: running().end(70, "Error", 0, unasked(termination.Overran)),
	} {
		ending := last(t, s.pod)
		if got := ending.Text(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestTheJobIsNamed(t *testing.T) {
	message := termination.Message{Outcome: termination.Drained, WaitedFor: &termination.Job{UUID: "d67e", Class: "Report"}}
	drained, killed := last(t, stopped(60).end(0, "Completed", 9, string(message.Encode())).pod), last(t, stopped(60).end(137, "Error", 62, said(termination.GraceCut, true)).pod)
	idle := last(t, stopped(60).end(0, "Completed", 0, string(termination.Message{Outcome: termination.Drained}.Encode())).pod)
	if got := []string{drained.JobText(), killed.JobText(), idle.JobText()}; !slices.Equal(got, []string{"Report d67e", `App\Jobs\Charge d67e`, ""}) {
		t.Errorf("%q", got)
	}
}

func TestHowLongItHad(t *testing.T) {
	for name, c := range map[string]struct {
		scene *scene
		want  time.Duration
	}{
		"by the agent":               {stopped(60).end(0, "Completed", 9, said(termination.Drained, false)), 4885 * time.Millisecond},
		"by the API server":          {stopped(60).end(137, "Error", 62, said(termination.GraceCut, true)), 62 * time.Second},
		"no agent":                   {stopped(60).end(0, "Completed", 9, ""), 9 * time.Second},
		"by a clock that is behind":  {stopped(60).end(0, "Completed", -2, ""), 0},
		"the container only":         {running().end(137, "Error", 70, said(termination.GraceCut, true)), 70 * time.Second},
		"it was over before":         {stopped(60).end(137, "Error", -30, ""), 0},
		"nobody asked":               {running().end(70, "Error", 9, unasked(termination.Crashed)), 0},
		"after the last API request": {stopped(0).end(0, "Completed", 9, ""), 9 * time.Second},
	} {
		if got := last(t, c.scene.pod); got.Had != c.want {
			t.Errorf("%s: %v, want %v", name, got.Had, c.want)
		}
	}
}

func TestGraceOf(t *testing.T) {
	lowered := running()
	lowered.pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](20)
	loweredAndStopped := stopped(20)
	loweredAndStopped.pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](20)
	loweredAndCut := stopped(5)
	loweredAndCut.pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](20)
	noPromise := stopped(5)
	noPromise.pod.Spec.Containers[0].Env = nil
	for name, c := range map[string]struct {
		scene     *scene
		less, cut bool
	}{
		"running":             {running(), false, false},
		"stopped":             {stopped(60), false, false},
		"stopped with more":   {stopped(900), false, false},
		"stopped with less":   {stopped(59), false, true},
		"forced":              {stopped(0), false, true},
		"admitted with less":  {lowered, true, false},
		"then stopped":        {loweredAndStopped, true, false},
		"then cut even below": {loweredAndCut, true, true},
		"no promise known":    {noPromise, false, false},
	} {
		g := outcome.GraceOf(c.scene.pod)
		if g.AdmittedWithLess() != c.less || g.MayBeCut() != c.cut {
			t.Errorf("%s: %v, %v: %+v", name, g.AdmittedWithLess(), g.MayBeCut(), g)
		}
		if g.Stopping && !g.Asked.Equal(asked) {
			t.Errorf("%s: asked at %v", name, g.Asked)
		}
	}
}
