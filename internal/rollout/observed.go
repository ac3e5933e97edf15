// SPDX-License-Identifier: Apache-2.0

// Package rollout decides what a QueueWorker's objects should be, from what was
// observed. It is pure: no client and no clock, so that every decision can be
// replayed in a test.
package rollout

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Observed is everything that a plan and a status are made from.
type Observed struct {
	QueueWorker *v1alpha1.QueueWorker
	// Chain is the QueueWorker's chain, Findings what the rules say about it.
	Chain    timeoutchain.Chain
	Findings []timeoutchain.Finding
	// Deployment has the QueueWorker's name, whoever made it; nil = none.
	Deployment *appsv1.Deployment
	// Budget has the QueueWorker's name, whoever made it; nil = none.
	Budget *policyv1.PodDisruptionBudget
	// Watch is what there is of its monitor.
	Watch Watch
	// OtherBudgets are the names of budgets of others that select its pods.
	OtherBudgets []string
	// Pods are all pods with the QueueWorker's label, also terminating ones.
	Pods []Pod
	// Trials are the pods that run only the preflight of a template of it.
	Trials []Trial
	// Preflight is what the preflight of the newest template said last; nil =
	// nothing yet.
	Preflight *preflight.Report
	// LastDrain and LastKill are the last known ones; nil = none yet.
	LastDrain *v1alpha1.LastDrain
	LastKill  *v1alpha1.LastKill
	// Now is when all this was so.
	Now time.Time
	// NewestVersion is the pod-template-hash of the newest ReplicaSet; empty
	// while there is none.
	NewestVersion string
}

// Broken says whether a rule finds an error.
func (o *Observed) Broken() bool { return len(timeoutchain.Blocking(o.Findings)) > 0 }
