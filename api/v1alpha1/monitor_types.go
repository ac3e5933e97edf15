// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Monitor watches the queue from a pod of its own.
type Monitor struct {
	// Enabled says whether the queue is watched. The workers' own metrics go with
	// it, from their next rollout on. Default true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// IntervalSeconds is the time from one look at the queue to the next, in
	// seconds. Default 30.
	// +optional
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`

	// StuckAfterSeconds is for how long jobs may wait while workers are there and
	// none of them gets anywhere before the queue is called stuck, in seconds.
	// Above jobSeconds and retryAfterSeconds, or one long job looks like a stuck
	// queue. Default 3 x the longer of the two.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=31536000
	StuckAfterSeconds *int32 `json:"stuckAfterSeconds,omitempty"`

	// ServiceAccountName is the account of the monitor's pod, where the queue can
	// be read only as somebody, such as SQS. It is allowed to write the state of
	// this QueueWorker, and nothing else. Not the workers' own account: they would
	// be allowed it too. Default: one is made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Labels of the monitor's pod, such as those by which a network policy lets
	// pods reach the queue. It has none of the template's: whatever selects the
	// workers must not find it. Default none.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`

	// Resources of the monitor's container, in which the application boots.
	// Default: 10m and 64Mi are requested, the limits are 500m and 256Mi.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// State is what a queue does.
// +kubebuilder:validation:Enum=Empty;Busy;Stuck;Stopped;Paused;Unknown
type State string

// The states. They are stable API, and reasons of the condition Consuming too.
const (
	// StateEmpty: nothing to do.
	StateEmpty State = "Empty"
	// StateBusy: there is work, and it moves.
	StateBusy State = "Busy"
	// StateStuck: work waits and workers are there, but none gets anywhere.
	StateStuck State = "Stuck"
	// StateStopped: work waits, and no worker is there.
	StateStopped State = "Stopped"
	// StatePaused: somebody paused the queue, or wants no worker.
	StatePaused State = "Paused"
	// StateUnknown: the queue could not be asked.
	StateUnknown State = "Unknown"
)

// States are all states.
func States() []State {
	return []State{StateEmpty, StateBusy, StateStuck, StateStopped, StatePaused, StateUnknown}
}

// QueueState is what the monitor saw of the queue. A number that the driver
// cannot tell is left out.
type QueueState struct {
	// State is what the queue does: the reason of Consuming.
	// +optional
	State State `json:"state,omitempty"`

	// Since is when it began to do what state says.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// ObservedTime is when the monitor wrote this: after every change worth
	// showing, at least every five minutes.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// Depth is the number of jobs that wait or are being worked on: all but the
	// delayed ones.
	// +optional
	Depth *int64 `json:"depth,omitempty"`

	// Ready is the number of jobs that a worker can take.
	// +optional
	Ready *int64 `json:"ready,omitempty"`

	// Delayed is the number of jobs whose time has not come.
	// +optional
	Delayed *int64 `json:"delayed,omitempty"`

	// Reserved is the number of jobs that workers have taken and have time for.
	// +optional
	Reserved *int64 `json:"reserved,omitempty"`

	// Due is the number of delayed jobs whose time has come and which no worker
	// has moved yet.
	// +optional
	Due *int64 `json:"due,omitempty"`

	// Expired is the number of reserved jobs that were not done in time, so that
	// another worker may take them.
	// +optional
	Expired *int64 `json:"expired,omitempty"`

	// OldestSeconds is for how long the oldest job that waits could have been
	// taken, in seconds.
	// +optional
	OldestSeconds *int64 `json:"oldestSeconds,omitempty"`

	// Failed is the number of jobs that failed within the last hour.
	// +optional
	Failed *int64 `json:"failed,omitempty"`

	// Failing are the kinds of failure of the last hour, the most frequent first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Failing []FailingJob `json:"failing,omitempty"`

	// Message says what cannot be told and why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// FailingJob is a kind of failure.
type FailingJob struct {
	// Class is the job's class.
	// +kubebuilder:validation:MaxLength=256
	Class string `json:"class"`

	// Error is the class of what it failed by.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Error string `json:"error,omitempty"`

	// Count is how many jobs failed so.
	Count int64 `json:"count"`

	// FirstTime is when the first did.
	// +optional
	FirstTime *metav1.Time `json:"firstTime,omitempty"`

	// LastTime is when the last did.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
}
