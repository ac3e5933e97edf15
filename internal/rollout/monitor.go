// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/workload"
)

// Watch is what was observed of a monitor's objects; each has the name of ours,
// whoever made it. Nil = none.
type Watch struct {
	Deployment     *appsv1.Deployment
	ServiceAccount *corev1.ServiceAccount
	Role           *rbacv1.Role
	RoleBinding    *rbacv1.RoleBinding
	// PullSecrets are those of the workers' own account. They are read only where
	// a template is to be rendered.
	PullSecrets []corev1.LocalObjectReference
}

// Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// MonitorPart is one object of a monitor.
type MonitorPart struct {
	Kind string
	// Wanted is an apply configuration; nil = Live is to be removed.
	Wanted any
	// Live is the object as it is; nil = there is none.
	Live Object
}

// MonitorPlan is what a monitor's objects should be.
type MonitorPlan struct {
	// Parts are to be written in this order; what is not named is not touched.
	Parts []MonitorPart
	// Problem is why there cannot be a monitor, one sentence; empty = there can.
	Problem string
}

// PlanMonitor decides what a monitor's objects should be. It never holds up the
// workers: what is wrong is only told. Its template, like theirs, is rendered
// anew only where the user's input changed.
func PlanMonitor(o *Observed, render workload.Renderer) (MonitorPlan, error) {
	var plan MonitorPlan
	monitored := o.QueueWorker.Spec.Monitored()
	if monitored && o.Broken() {
		return plan, nil
	}
	parts, err := o.monitorParts(render, monitored)
	if err != nil {
		return plan, err
	}
	for _, part := range parts {
		if part.Live == nil {
			if part.Wanted != nil {
				plan.Parts = append(plan.Parts, part)
			}
			continue
		}
		switch workload.OwnershipOf(o.QueueWorker, part.Live) {
		case workload.Foreign:
			if part.Wanted != nil {
				return MonitorPlan{Problem: fmt.Sprintf("%s %s was not made by this operator for it and is left alone; rename the QueueWorker or remove that %s.",
					part.Kind, part.Live.GetName(), part.Kind)}, nil
			}
		case workload.Leftover: // the garbage collector removes it
		case workload.Ours, workload.Orphaned:
			if part.Live.GetDeletionTimestamp() == nil {
				plan.Parts = append(plan.Parts, part)
			}
		}
	}
	return plan, nil
}

// monitorParts are the objects in the order in which they are made: who may
// before who does.
func (o *Observed) monitorParts(render workload.Renderer, monitored bool) ([]MonitorPart, error) {
	parts := []MonitorPart{
		part("ServiceAccount", o.Watch.ServiceAccount),
		part("Role", o.Watch.Role),
		part("RoleBinding", o.Watch.RoleBinding),
		part("Deployment", o.Watch.Deployment),
	}
	if !monitored {
		slices.Reverse(parts)
		return parts, nil
	}
	if account := workload.MonitorServiceAccount(o.QueueWorker); account != nil {
		parts[0].Wanted = account
	} else { // the older monitor may still need it, or it is the very one that is named: it goes with the monitor
		parts[0].Live = nil
	}
	parts[1].Wanted = workload.MonitorRole(o.QueueWorker)
	older, err := o.olderAccounts()
	if err != nil {
		return nil, err
	}
	parts[2].Wanted = workload.MonitorRoleBinding(o.QueueWorker, older...)
	template, err := o.monitorTemplate(render)
	parts[3].Wanted = workload.MonitorDeployment(o.QueueWorker, template)
	return parts, err
}

// olderAccounts are those, other than the monitor's own, that we gave the role
// to, as long as a monitor that has one of them may be the one that speaks.
func (o *Observed) olderAccounts() ([]string, error) {
	if o.Watch.RoleBinding == nil {
		return nil, nil
	}
	owned, err := rbacv1ac.ExtractRoleBinding(o.Watch.RoleBinding, v1alpha1.FieldManager)
	if err != nil {
		return nil, fmt.Errorf("reading the applied fields of RoleBinding %s: %w", o.Watch.RoleBinding.Name, err)
	}
	var older []string
	for _, subject := range owned.Subjects {
		if name := ptr.Deref(subject.Name, ""); name != workload.MonitorAccount(o.QueueWorker) {
			older = append(older, name)
		}
	}
	if len(older) > 0 && o.onlyNewestMonitor() {
		return nil, nil
	}
	return older, nil
}

// onlyNewestMonitor says that the monitor of the wanted template has ended a
// first look, whatever the queue answered, and that there is no other.
func (o *Observed) onlyNewestMonitor() bool {
	d := o.Watch.Deployment
	return d != nil && !o.RendersMonitor() && d.Status.ObservedGeneration >= d.Generation &&
		d.Status.AvailableReplicas > 0 && d.Status.UpdatedReplicas == d.Status.Replicas
}

// part keeps a nil pointer from becoming an object.
func part[T any, P interface {
	*T
	Object
}](kind string, live P) MonitorPart {
	if live == nil {
		return MonitorPart{Kind: kind}
	}
	return MonitorPart{Kind: kind, Live: live}
}

// monitorTemplate is the applied template, or another where the input is.
func (o *Observed) monitorTemplate(render workload.Renderer) (workload.Template, error) {
	if applied, current := o.appliedMonitor(); current {
		return applied, nil
	}
	return workload.RenderMonitor(o.QueueWorker, render, o.Watch.PullSecrets)
}

// RendersMonitor says that the monitor's template is to be rendered.
func (o *Observed) RendersMonitor() bool {
	_, current := o.appliedMonitor()
	return !current
}

// appliedMonitor is the applied template, and whether it is of the user's input.
func (o *Observed) appliedMonitor() (applied workload.Template, current bool) {
	if o.Watch.Deployment == nil {
		return applied, false
	}
	applied, err := workload.Recall(o.Watch.Deployment)
	if err != nil {
		return applied, false
	}
	hash, err := workload.MonitorHash(o.QueueWorker)
	return applied, err == nil && hash == applied.InputHash
}

// HasMonitor says that there is a monitor of ours, whether it works or not.
func (o *Observed) HasMonitor() bool {
	d := o.Watch.Deployment
	return d != nil && workload.OwnershipOf(o.QueueWorker, d) <= workload.Orphaned
}

// MonitorWorks says that a monitor of ours, of whatever template, can go on.
func (o *Observed) MonitorWorks() bool {
	return o.HasMonitor() && o.Watch.Deployment.Status.AvailableReplicas > 0
}

// MonitorRefused is why a pod of the monitor cannot be made, one sentence; empty
// = nothing says so. Where the newest template has no such failure, the
// controller of Deployments tells that of an older one.
func (o *Observed) MonitorRefused() string {
	if c := o.monitorCondition(appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		return "Its pod cannot be made: " + c.Message + "."
	}
	return ""
}

// MonitorLate says that the pod of the newest monitor has not ended a first look
// within the time that a Deployment gives it.
func (o *Observed) MonitorLate() bool {
	c := o.monitorCondition(appsv1.DeploymentProgressing)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == ReasonDeadlineExceeded
}

// monitorCondition is what the controller of Deployments says of our monitor
// since its last change; nil = nothing yet.
func (o *Observed) monitorCondition(kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	d := o.Watch.Deployment
	if !o.HasMonitor() || d.Status.ObservedGeneration < d.Generation {
		return nil
	}
	return DeploymentCondition(d, kind)
}

const (
	// monitorHeartbeat is the longest time between two writes of a monitor whose
	// numbers stay.
	monitorHeartbeat = 5 * time.Minute
	// monitorAway is how long a monitor's pod may be away, as when its node is
	// drained.
	monitorAway = 2 * time.Minute
)

// SilentAt is when a monitor that says nothing more counts as silent: two
// heartbeats after its last word, sooner where its pod is away, and two
// heartbeats after it was made where it has said nothing yet. Zero = there is no
// monitor.
func (o *Observed) SilentAt() time.Time {
	qw, deployment := o.QueueWorker, o.Watch.Deployment
	interval := time.Duration(qw.Spec.EffectiveInterval()) * time.Second
	patience := 2*max(monitorHeartbeat, interval) + interval
	var last time.Time
	if state := qw.Status.QueueState; state != nil && state.ObservedTime != nil {
		last = state.ObservedTime.Time
	}
	if last.IsZero() {
		if deployment == nil {
			return time.Time{}
		}
		return deployment.CreationTimestamp.Add(patience)
	}
	at := last.Add(patience)
	if deployment == nil {
		return at
	}
	if c := DeploymentCondition(deployment, appsv1.DeploymentAvailable); c != nil && c.Status == corev1.ConditionFalse && !last.After(c.LastTransitionTime.Time) {
		if away := c.LastTransitionTime.Add(max(monitorAway, 3*interval)); away.Before(at) {
			at = away
		}
	}
	return at
}
