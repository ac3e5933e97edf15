// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"math"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	watchevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/outcome"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/workload"
)

// maxEndings bounds what waits to be reported about one QueueWorker, such as
// while the API server refuses every request. What is beyond it is counted as
// unobserved.
const maxEndings = 1000

// endings is what the watch of pods has seen and nobody has reported yet. The
// end of a worker stands in its pod for half a second before the pod is gone, so
// it is taken from the watch's own objects: whoever reads the cache later finds
// nothing.
type endings struct {
	mu      sync.Mutex
	pods    map[types.UID]*outcome.Memory
	waiting map[types.NamespacedName]*untold
}

// untold is what there is to say about the pods of one QueueWorker.
type untold struct {
	endings []ended
	cuts    []cut
	lost    int // endings for which there was no room
}

// ended is an ending, and whether it may have been reported before: by an earlier
// manager, which left no more than the times in the status.
type ended struct {
	outcome.Ending
	mayBeOld bool
}

// cut is a pod that is being stopped with less time than it was promised.
type cut struct {
	pod   types.NamespacedName
	uid   types.UID
	grace outcome.Grace
}

func newEndings() *endings {
	return &endings{pods: map[types.UID]*outcome.Memory{}, waiting: map[types.NamespacedName]*untold{}}
}

// look takes a state of a pod from the watch, and the one before. A pod of which
// the watch tells for the first time may have ended long ago; gone says that this
// is its last state.
func (e *endings) look(before, now client.Object, gone bool) {
	pod, ok := now.(*corev1.Pod)
	if !ok || workload.OfATrial(pod) {
		return
	}
	earlier, _ := before.(*corev1.Pod)
	e.mu.Lock()
	defer e.mu.Unlock()
	memory := e.pods[pod.UID]
	if memory == nil {
		if !gone && outcome.Silent(pod) {
			return
		}
		memory = outcome.Recall(earlier)
		e.pods[pod.UID] = memory
	}
	if gone {
		delete(e.pods, pod.UID)
	}
	news := memory.Look(pod, gone)
	if len(news.Endings) == 0 && news.Cut == nil {
		return
	}
	e.add(pod, news, earlier == nil && !gone)
}

func (e *endings) add(pod *corev1.Pod, news outcome.News, first bool) {
	worker := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelName]}
	r := e.waiting[worker]
	if r == nil {
		r = &untold{}
		e.waiting[worker] = r
	}
	for _, ending := range news.Endings {
		if len(r.endings) >= maxEndings {
			r.lost++
			continue
		}
		r.endings = append(r.endings, ended{Ending: ending, mayBeOld: first})
	}
	if news.Cut != nil && len(r.cuts) < maxEndings {
		r.cuts = append(r.cuts, cut{client.ObjectKeyFromObject(pod), pod.UID, *news.Cut})
	}
}

// take hands over what waits; it is then the caller's.
func (e *endings) take(worker types.NamespacedName) untold {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.waiting[worker]
	delete(e.waiting, worker)
	if r == nil {
		return untold{}
	}
	return *r
}

// handler looks at each state of a pod and then has its QueueWorker handled.
func (e *endings) handler() handler.EventHandler {
	enqueue := func(ctx context.Context, pod client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range workerOfPod(ctx, pod) {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, c watchevent.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			e.look(nil, c.Object, false)
			enqueue(ctx, c.Object, q)
		},
		UpdateFunc: func(ctx context.Context, u watchevent.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			e.look(u.ObjectOld, u.ObjectNew, false)
			enqueue(ctx, u.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, d watchevent.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			e.look(nil, d.Object, true)
			enqueue(ctx, d.Object, q)
		},
	}
}

// reportEndings tells what was seen of the QueueWorker's pods, once, and leaves
// the last drain and the last kill in what was observed: they are kept until a
// status has them.
func (r *Reconciler) reportEndings(ctx context.Context, known *known, o *rollout.Observed) {
	qw := o.QueueWorker
	seen := r.endings.take(client.ObjectKeyFromObject(qw))
	lost := seen.lost + known.missing(o, seen.endings)
	known.lastDrain = laterDrain(known.lastDrain, qw.Status.LastDrain)
	known.lastKill = laterKill(known.lastKill, qw.Status.LastKill)
	reported := reportedBefore{qw.Status.LastDrain, qw.Status.LastKill}
	for i := range seen.endings {
		ending := &seen.endings[i]
		if ending.At.IsZero() { // a runtime that does not say when
			ending.At = o.Now
		}
		if ending.mayBeOld && reported.has(&ending.Ending) {
			continue
		}
		switch ending.Kind {
		case outcome.Drained:
			known.lastDrain = laterDrain(known.lastDrain, drainOf(&ending.Ending))
			r.countDrain(qw, ending.Had)
		case outcome.Killed:
			known.lastKill = laterKill(known.lastKill, killOf(&ending.Ending))
			r.tellKill(ctx, qw, &ending.Ending)
		default:
			lost++
		}
	}
	for i := range seen.cuts {
		r.tellCut(qw, &seen.cuts[i])
	}
	if lost > 0 && r.options.Metrics != nil {
		r.options.Metrics.Unobserved(qw.Namespace, qw.Name, lost)
	}
	o.LastDrain, o.LastKill = known.lastDrain, known.lastKill
}

// missing is how many workers, at least, were being stopped when an earlier
// manager looked last and are gone without anybody having seen their end. Only
// the first look at a QueueWorker can tell.
func (k *known) missing(o *rollout.Observed, seen []ended) int {
	if k.looked {
		return 0
	}
	k.looked = true
	gone := int(o.QueueWorker.Status.TerminatingReplicas)
	for i := range seen {
		if seen[i].Grace.Stopping {
			gone--
		}
	}
	for i := range o.Pods {
		if o.Pods[i].Terminating {
			gone--
		}
	}
	return max(0, gone)
}

// reportedBefore is what a status says of endings. What an earlier manager
// reported is not later than that.
type reportedBefore struct {
	drain *v1alpha1.LastDrain
	kill  *v1alpha1.LastKill
}

func (r reportedBefore) has(ending *outcome.Ending) bool {
	at := metav1.NewTime(ending.At)
	switch ending.Kind {
	case outcome.Drained:
		return r.drain != nil && !r.drain.FinishTime.Before(&at)
	case outcome.Killed:
		return r.kill != nil && !r.kill.Time.Before(&at)
	default:
		return false
	}
}

func drainOf(ending *outcome.Ending) *v1alpha1.LastDrain {
	return &v1alpha1.LastDrain{
		Pod:             ending.Pod,
		FinishTime:      metav1.NewTime(ending.At),
		DurationSeconds: int64(math.Round(ending.Had.Seconds())),
		Job:             ending.JobText(),
	}
}

func killOf(ending *outcome.Ending) *v1alpha1.LastKill {
	return &v1alpha1.LastKill{
		Pod:     ending.Pod,
		Time:    metav1.NewTime(ending.At),
		Reason:  ending.Reason,
		Job:     ending.JobText(),
		Message: ending.Text(),
	}
}

// laterDrain is the later one; of two in the same second the second argument.
func laterDrain(a, b *v1alpha1.LastDrain) *v1alpha1.LastDrain {
	if b == nil || a != nil && b.FinishTime.Before(&a.FinishTime) {
		return a
	}
	return b
}

func laterKill(a, b *v1alpha1.LastKill) *v1alpha1.LastKill {
	if b == nil || a != nil && b.Time.Before(&a.Time) {
		return a
	}
	return b
}

// lastWords tells what was seen of the pods of a QueueWorker that is gone; its
// workers drain after it.
func (r *Reconciler) lastWords(ctx context.Context, worker types.NamespacedName) {
	for _, ending := range r.endings.take(worker).endings {
		if ending.Kind != outcome.Killed || ending.mayBeOld {
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Worker of a deleted QueueWorker was killed", "pod", ending.Pod, "reason", ending.Reason)
		pod := podReference(worker.Namespace, ending.Pod, ending.UID)
		r.events.Eventf(pod, nil, corev1.EventTypeWarning, string(ending.Reason), action, "%s", ending.Text())
	}
}
