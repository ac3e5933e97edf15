// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/outcome"
)

// waiting is the worker between two runs, as the kubelet shows it while it backs
// off; started the next run.
func (s *scene) waiting() *scene {
	s.status.LastTerminationState = s.status.State
	s.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	return s
}

func (s *scene) started() *scene {
	s.status.RestartCount++
	if s.status.State.Terminated != nil {
		s.status.LastTerminationState = s.status.State
	}
	s.status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return s
}

// story looks at each state of the pod and says what was told, a state without
// news as "-".
type story struct {
	memory outcome.Memory
	told   []string
}

func (s *story) look(sc *scene, gone bool) {
	news := s.memory.Look(sc.pod.DeepCopy(), gone)
	var words []string
	for i := range news.Endings {
		words = append(words, word(&news.Endings[i]))
	}
	if news.Cut != nil {
		words = append(words, "cut")
	}
	if len(words) == 0 {
		words = []string{"-"}
	}
	s.told = append(s.told, strings.Join(words, "+"))
}

func TestEachEndIsToldOnce(t *testing.T) {
	drained, inTheJob := said(termination.Drained, false), said(termination.GraceCut, true)
	for name, c := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"a drain, as the API server shows it": {func(s *story) {
			sc := running()
			s.look(sc, false)
			sc.ask(60)
			s.look(sc, false)
			s.look(sc.end(0, "Completed", 10, drained), false)
			sc.ask(0) // the kubelet's last request
			s.look(sc, false)
			s.look(sc, true)
		}, "- - Drained - -"},
		"the same, killed at the end of the grace: the last request cuts nothing": {func(s *story) {
			sc := stopped(60)
			s.look(sc, false)
			s.look(sc.end(137, "Error", 62, inTheJob), false)
			sc.ask(0)
			s.look(sc, false)
			s.look(sc, true)
		}, "- GraceEnded - -"},
		"the end is first seen with the last request": {func(s *story) {
			sc := stopped(60)
			s.look(sc, false)
			sc.ask(0)
			s.look(sc.end(137, "Error", 62, inTheJob), true)
		}, "- GraceEnded"},
		"nothing was seen before the last request": {func(s *story) {
			s.look(stopped(0).end(137, "Error", 62, inTheJob), true)
		}, "GraceEnded"},
		"a second, shorter request, killed": {func(s *story) {
			sc := stopped(60)
			s.look(sc, false)
			sc.ask(1)
			s.look(sc, false)
			s.look(sc, false) // a resync
			s.look(sc.end(137, "Error", 8, inTheJob), false)
			s.look(sc, true)
		}, "- cut - GraceCut -"},
		"a third request is told too": {func(s *story) {
			for _, granted := range []int64{60, 30, 30, 10} {
				s.look(stopped(granted), false)
			}
		}, "- cut - cut"},
		"a crash loop": {func(s *story) {
			sc := running()
			s.look(sc, false)
			s.look(sc.end(70, "Error", 0, unasked(termination.Crashed)), false)
			s.look(sc.waiting(), false)
			s.look(sc.started(), false)
			s.look(sc.end(70, "Error", 0, unasked(termination.Overran)), false)
			s.look(sc.started(), false)
			sc.ask(60)
			s.look(sc, false)
			s.look(sc.end(0, "Completed", 3, drained), false)
		}, "- Crashed - - Overran - - Drained"},
		"a crash of which only the trace is seen": {func(s *story) {
			s.look(running().end(70, "Error", 0, unasked(termination.Crashed)).started(), false)
		}, "Crashed"},
		"two runs at once": {func(s *story) {
			sc := running().end(137, "OOMKilled", 0, "").started()
			s.look(sc.end(70, "Error", 0, unasked(termination.Crashed)), false)
		}, "OOMKilled+Crashed"},
		"deleted by force": {func(s *story) {
			s.look(running(), false)
			s.look(stopped(0), true)
		}, "- Unobserved+cut"},
		"vanished": {func(s *story) {
			s.look(running(), false)
			s.look(running(), true)
		}, "- Unobserved"},
		"vanished before it ran": {func(s *story) {
			sc := stopped(60)
			sc.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
			s.look(sc, true)
		}, "-"},
		"the kubelet lost sight of it": {func(s *story) {
			sc := running()
			s.look(sc, false)
			s.look(sc.end(137, "ContainerStatusUnknown", 0, ""), false)
		}, "- Unobserved"},
		"the kubelet makes up an end of a worker that never started": {func(s *story) {
			sc := stopped(60)
			sc.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
			s.look(sc, false)
			sc.ask(0)
			s.look(sc, false)
			s.look(sc.end(137, "ContainerStatusUnknown", 0, ""), true)
		}, "- - -"},
		"no status at all": {func(s *story) {
			sc := stopped(60)
			sc.pod.Status.ContainerStatuses = nil
			s.look(sc, true)
		}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{}
			c.tell(s)
			if got := strings.Join(s.told, " "); got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

func TestRecallKnowsWhatRan(t *testing.T) {
	unknown := running().end(137, "ContainerStatusUnknown", 0, "")
	for want, before := range map[string]*corev1.Pod{"Unobserved": running().pod, "-": nil} {
		s := &story{memory: *outcome.Recall(before)}
		s.look(unknown, false)
		if got := strings.Join(s.told, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestRunsAreToldApartByTheirContainer(t *testing.T) {
	sc := running().end(1, "Error", 0, "")
	sc.status.State.Terminated.ContainerID = "containerd://a"
	s := &story{}
	s.look(sc, false)
	sc.started()
	sc.status.RestartCount = 7 // a kubelet that lost count
	s.look(sc, false)
	sc.end(1, "Error", 0, "")
	sc.status.State.Terminated.ContainerID = "containerd://b"
	s.look(sc, false)
	if got := strings.Join(s.told, " "); got != "Crashed - Crashed" {
		t.Error(got)
	}
}

func TestSilent(t *testing.T) {
	for name, c := range map[string]struct {
		scene *scene
		want  bool
	}{
		"running": {running(), true}, "stopping": {stopped(60), false}, "restarted": {running().end(1, "", 0, "").started(), false},
	} {
		if got := outcome.Silent(c.scene.pod); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
