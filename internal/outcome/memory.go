// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Memory is what is kept of one pod from one state of it to the next, so that
// each run is judged once, and with the grace that was granted before the last
// request of the deletion set it to 0. The zero value is that of a new pod.
type Memory struct {
	ran   bool     // the worker was seen running
	runs  []string // those that the last state told of
	grace Grace    // of the last state in which the worker had not ended
	cut   *int64   // the granted grace that was last called short
}

// News is what a state of a pod tells that the states before did not.
type News struct {
	Endings []Ending
	// Cut is set when the pod is being stopped with less time than promised.
	Cut *Grace
}

// Silent says whether a pod has nothing to tell, and so nothing to remember.
func Silent(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && len(Runs(pod)) == 0
}

// Recall is the memory of a pod that had nothing to tell in its state before;
// nil = there was none.
func Recall(before *corev1.Pod) *Memory {
	return &Memory{ran: before != nil && Running(before)}
}

// Look takes the next state of the pod. Gone says that it is the last one.
func (m *Memory) Look(pod *corev1.Pod, gone bool) News {
	var news News
	grace := m.follow(pod)
	running := Running(pod)
	m.ran = m.ran || running
	runs := Runs(pod)
	for _, run := range runs {
		if slices.Contains(m.runs, run.ID) {
			continue
		}
		ending := Judge(pod, run, grace)
		// The kubelet also makes up the end of a worker that never started.
		if ending.Kind != None && (ending.Kind != Unobserved || m.ran) {
			news.Endings = append(news.Endings, ending)
		}
	}
	m.runs = m.runs[:0]
	for _, run := range runs {
		m.runs = append(m.runs, run.ID)
	}
	if gone && running {
		news.Endings = append(news.Endings, Vanished(pod, grace))
	}
	if running && grace.MayBeCut() && (m.cut == nil || *m.cut != grace.Granted) {
		m.cut = &grace.Granted
		news.Cut = &grace
	}
	return news
}

// follow is the grace to judge by: the present one, or, once the worker has
// ended, the last one before.
func (m *Memory) follow(pod *corev1.Pod) Grace {
	grace := GraceOf(pod)
	if !Ended(pod) {
		m.grace = grace
		return grace
	}
	if m.grace.Stopping {
		return m.grace
	}
	if grace.Stopping && grace.Granted == 0 {
		grace.Granted = grace.Admitted // nothing tells of another one
	}
	return grace
}
