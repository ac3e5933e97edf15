// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/status"
)

func TestFenceReady(t *testing.T) {
	pod := func(name string, fence rollout.Fence) rollout.Pod {
		return rollout.Pod{Name: name, Version: newest, Fence: fence}
	}
	with := func(p rollout.Pod, change func(*rollout.Pod)) rollout.Pod { change(&p); return p }
	serving, starting, unready := pod("a", rollout.FenceServing), pod("b", rollout.FenceStarting), pod("c", rollout.FenceUnready)
	failed := with(pod("d", rollout.FenceFailed), func(p *rollout.Pod) { p.FenceWords = "fence: no unique index" })
	for name, c := range map[string]struct {
		pods []rollout.Pod
		want string // status, reason, and what the message has to hold
	}{
		"no pods":               {nil, "Unknown NoFence No worker"},
		"all serve":             {[]rollout.Pod{serving, serving}, "True FenceServing Every fence"},
		"one starts":            {[]rollout.Pod{serving, starting}, "Unknown FenceStarting 1 of 2 fences have not served yet, one of them in pod b"},
		"nothing told yet":      {[]rollout.Pod{serving, pod("x", "")}, "Unknown FenceStarting 1 of 2 fences have not served yet, one of them in pod x"},
		"one serves no more":    {[]rollout.Pod{serving, unready, starting}, "False FenceUnready 1 of 3 fences served and do not now, one of them in pod c"},
		"the first is named":    {[]rollout.Pod{pod("z", rollout.FenceUnready), unready}, "False FenceUnready 2 of 2 fences served and do not now, one of them in pod c"},
		"one failed":            {[]rollout.Pod{unready, failed}, "False FenceFailed 1 of 2 fences ended with an error, in pod d: fence: no unique index."},
		"it said nothing":       {[]rollout.Pod{pod("d", rollout.FenceFailed)}, "False FenceFailed 1 of 1 fences ended with an error, in pod d: it said nothing."},
		"a draining one":        {[]rollout.Pod{serving, with(unready, func(p *rollout.Pod) { p.Terminating = true })}, "True FenceServing"},
		"an ended one":          {[]rollout.Pod{serving, with(failed, func(p *rollout.Pod) { p.Ended = true })}, "True FenceServing"},
		"an older one, unready": {[]rollout.Pod{serving, with(unready, func(p *rollout.Pod) { p.Version = older })}, "False FenceUnready 1 of 2"},
		"an older one, without": {[]rollout.Pod{serving, {Name: "o", Version: older}}, "True FenceServing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := settled()
			s.observed.QueueWorker.Spec.Fence.Mode = v1alpha1.FenceModeProxy
			s.observed.Pods = c.pods
			got := s.condition(v1alpha1.ConditionFenceReady)
			if text := string(got.Status) + " " + got.Reason + " " + got.Message; !strings.HasPrefix(text, c.want) {
				t.Errorf("%s\nwant %s", text, c.want)
			}
		})
	}
}

func TestWithoutASidecarThereIsNoFenceReady(t *testing.T) {
	for mode, column := range map[v1alpha1.FenceMode]string{"": "", v1alpha1.FenceModeNone: "", v1alpha1.FenceModeTable: "Table"} {
		s := settled()
		s.observed.QueueWorker.Spec.Fence.Mode = mode
		got := status.Of(s.observed, &s.plan)
		if meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionFenceReady) != nil || got.Fence != column {
			t.Errorf("%q: %q, %v", mode, got.Fence, got.Conditions)
		}
	}
}
