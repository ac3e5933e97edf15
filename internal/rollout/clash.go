// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

// Clash is why older workers must be gone before the new ones start. With the
// Database driver whoever reads the table decides whether a reservation is over,
// so the smallest reservation of all workers that poll rules over the longest
// job of all.
type Clash struct {
	Old, New timeoutchain.Wire
	// Unreadable says that the numbers of an older worker are not known.
	Unreadable bool
}

// clashOf compares what will run with everything that may still poll: pods,
// those that drain included, and, before a new template is written, the present
// one, of which a pod may just be starting. Nil = they fit.
func clashOf(o *Observed, newTemplate bool) *Clash {
	present, err := workload.WireOf(&o.Deployment.Spec.Template.Spec)
	next := present
	if newTemplate {
		next = o.Chain.ToWire()
	}
	if next.Driver != timeoutchain.Database {
		return nil
	}
	if newTemplate {
		if clash := compare(present, next, err != nil); clash != nil {
			return clash
		}
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Ended || pod.WireUnreadable && !newTemplate && pod.Version == o.NewestVersion {
			continue
		}
		if clash := compare(pod.Wire, next, pod.WireUnreadable); clash != nil {
			return clash
		}
	}
	return nil
}

func compare(old, next timeoutchain.Wire, unreadable bool) *Clash {
	if unreadable {
		return &Clash{New: next, Unreadable: true}
	}
	if old.Driver != next.Driver {
		return nil
	}
	job := max(orEndless(old.JobSeconds), orEndless(next.JobSeconds))
	reservation := min(orEndless(old.RetryAfterSeconds), orEndless(next.RetryAfterSeconds))
	if job < reservation || reservation == endless {
		return nil
	}
	return &Clash{Old: old, New: next}
}

const endless = math.MaxInt64

func orEndless(seconds int64) int64 {
	if seconds == 0 {
		return endless
	}
	return seconds
}

// staysRecreate says that a rollout which began as Recreate is not over: going
// back earlier could let a new worker start beside an older one that the cache
// does not show yet.
func staysRecreate(o *Observed) bool {
	d := o.Deployment
	if o.Chain.Driver != timeoutchain.Database || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return false
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	status := &d.Status
	if status.ObservedGeneration < d.Generation || status.UpdatedReplicas != status.Replicas || status.Replicas != wanted {
		return true
	}
	if c := DeploymentCondition(d, appsv1.DeploymentProgressing); c != nil && c.Reason == ReasonDeploymentComplete {
		return false
	}
	return status.AvailableReplicas < wanted
}

// asksForRecreate says that every rollout is to drain first anyway.
func asksForRecreate(qw *v1alpha1.QueueWorker) bool {
	return qw.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}
