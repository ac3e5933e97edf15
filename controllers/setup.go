// SPDX-License-Identifier: Apache-2.0

// Package controllers reconciles QueueWorkers. It is the only package beside
// cmd that holds a Kubernetes client: it reads what is there, asks the pure
// packages what should be, writes the difference, and reports.
package controllers

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/metrics"
	"github.com/queueworker/operator/internal/workload"
)

const controllerName = "queueworker"

// Options tunes the controller. Only AgentImage must be set.
type Options struct {
	// GraceCap is the longest grace, in seconds, that the platform grants; 0
	// means timeoutchain.DefaultGraceCap.
	GraceCap int64
	// MaxConcurrentReconciles is how many QueueWorkers are handled at a time; 0
	// means 1.
	MaxConcurrentReconciles int
	// Metrics may be nil.
	Metrics *metrics.Metrics
	// Clock is the real one when nil.
	Clock clock.PassiveClock
	// AgentImage is the image of the agent that is added to each worker pod.
	AgentImage string
	// Render renders pods; workload.WithAgent(AgentImage) when nil. Tests put
	// another version's rendering here.
	Render workload.Renderer
	// RenderMonitor renders monitors; workload.WithMonitor(AgentImage) when nil.
	RenderMonitor workload.Renderer
}

// Setup adds the QueueWorker controller to the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	r := newReconciler(options)
	r.client, r.live = mgr.GetClient(), mgr.GetAPIReader()
	r.events = mgr.GetEventRecorder(v1alpha1.FieldManager)

	if err := indexByWorker(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	byLabel := handler.EnqueueRequestsFromMapFunc(workerOfPod)
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: max(options.MaxConcurrentReconciles, 1),
			// It would serve what was there at the start only while nothing else
			// changes: a QueueWorker made during a restart waited for minutes.
			UsePriorityQueue: ptr.To(false),
		}).
		For(&v1alpha1.QueueWorker{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, troubleChanged()))).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Watches(&appsv1.Deployment{}, byLabel, builder.WithPredicates(uncontrolled())).
		Watches(&corev1.Pod{}, r.endings.handler()).
		WatchesMetadata(&appsv1.ReplicaSet{}, byLabel, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(r.workersOfBudget),
			builder.WithPredicates(ofNoWorker())).
		Watches(&v1alpha1.QueueWorker{}, handler.EnqueueRequestsFromMapFunc(r.neighbours),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}
