// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
)

// history is every state in which the QueueWorkers of a namespace were seen.
type history struct {
	stop func()

	mu     sync.Mutex
	states []v1alpha1.QueueWorker
}

var histories sync.Map // namespace -> *history

func watchHistory(namespace string) *history {
	ctx, cancel := context.WithCancel(context.Background())
	watcher, err := k8s.Watch(ctx, &v1alpha1.QueueWorkerList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	h := &history{}
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		for event := range watcher.ResultChan() {
			if qw, ok := event.Object.(*v1alpha1.QueueWorker); ok {
				h.add(qw)
			}
		}
	}()
	h.stop = func() {
		cancel()
		watcher.Stop()
		<-ended
		histories.Delete(namespace)
	}
	histories.Store(namespace, h)
	return h
}

func (h *history) add(qw *v1alpha1.QueueWorker) {
	h.mu.Lock()
	h.states = append(h.states, *qw)
	h.mu.Unlock()
	holdsAlways(qw)
}

// holdsAlways is what no state may break.
func holdsAlways(qw *v1alpha1.QueueWorker) {
	GinkgoHelper()
	conditions := qw.Status.Conditions
	stalled, reconciling := conditionOf(qw, v1alpha1.ConditionStalled), conditionOf(qw, v1alpha1.ConditionReconciling)
	Expect(stalled.Status == metav1.ConditionTrue && reconciling.Status == metav1.ConditionTrue).
		To(BeFalse(), "Stalled and Reconciling are both True: %+v", conditions)
	for _, c := range conditions {
		Expect(c.Message).To(MatchRegexp(`^\S.*[.]$`), "the message of %s is no sentence", c.Type)
		Expect(c.LastTransitionTime.IsZero()).To(BeFalse())
	}
}

// since returns the states of a QueueWorker after the given number of them.
func since(namespace, name string, seen int) []v1alpha1.QueueWorker {
	GinkgoHelper()
	value, ok := histories.Load(namespace)
	Expect(ok).To(BeTrue())
	h, _ := value.(*history)
	h.mu.Lock()
	defer h.mu.Unlock()
	var states []v1alpha1.QueueWorker
	for i := range h.states {
		if h.states[i].Name == name {
			states = append(states, h.states[i])
		}
	}
	return states[min(seen, len(states)):]
}

// conditionOf is the condition, empty where there is none.
func conditionOf(qw *v1alpha1.QueueWorker, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(qw.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
