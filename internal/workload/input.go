// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/queueworker/operator/api/v1alpha1"
)

// input is what the user wrote and the pod acts on: the source of the rendered
// template, never the rendering or a default, which may change with the
// operator. Values that only rules read are not part of it, nor is anything
// that the Deployment takes without new pods.
type input struct {
	Runtime         v1alpha1.Runtime       `json:"runtime"`
	Connection      string                 `json:"connection"`
	Driver          v1alpha1.Driver        `json:"driver,omitempty"`
	Queues          []string               `json:"queues,omitempty"`
	BlockFor        *int32                 `json:"blockFor,omitempty"`
	HTTP            *int32                 `json:"http,omitempty"`
	Job             int32                  `json:"job"`
	RetryAfter      *int32                 `json:"retryAfter,omitempty"`
	Grace           *int64                 `json:"grace,omitempty"`
	GraceOutlasts   v1alpha1.GraceOutlasts `json:"graceOutlasts,omitempty"`
	BeforeStop      *v1alpha1.BeforeStop   `json:"beforeStop,omitempty"`
	Tries           *int32                 `json:"tries,omitempty"`
	Backoff         []int32                `json:"backoff,omitempty"`
	PHP             string                 `json:"php,omitempty"`
	Artisan         string                 `json:"artisan,omitempty"`
	ExtraArgs       []string               `json:"extraArgs,omitempty"`
	MemoryMegabytes *int32                 `json:"memory,omitempty"`
	MaxTime         *int32                 `json:"maxTime,omitempty"`
	MaxJobs         *int32                 `json:"maxJobs,omitempty"`
	Sleep           *int32                 `json:"sleep,omitempty"`
	Rest            *int32                 `json:"rest,omitempty"`
	Wrapper         []string               `json:"wrapper,omitempty"`
	Supervision     v1alpha1.Supervision   `json:"supervision,omitempty"`
	Fence           *v1alpha1.Fence        `json:"fence,omitempty"`
	// Preflight is empty where it is enforced, declared or not.
	Preflight v1alpha1.PreflightPolicy `json:"preflight,omitempty"`
	// NoMetrics is set where monitoring is turned off.
	NoMetrics bool           `json:"noMetrics,omitempty"`
	Template  map[string]any `json:"template"`
}

// InputHash identifies what the user wrote and the pod acts on.
func InputHash(qw *v1alpha1.QueueWorker) (string, error) {
	spec := &qw.Spec
	template, err := toMap(&spec.Template)
	if err != nil {
		return "", fmt.Errorf("reading the template: %w", err)
	}
	in := input{
		Runtime:    spec.EffectiveRuntime(),
		Connection: spec.Queue.Connection,
		Driver:     spec.Queue.Driver,
		Queues:     spec.Queue.Names,
		BlockFor:   spec.Queue.BlockForSeconds,
		HTTP:       spec.Timeouts.HTTPSeconds,
		Job:        spec.Timeouts.JobSeconds,
		RetryAfter: spec.Timeouts.RetryAfterSeconds,
		Grace:      spec.Timeouts.TerminationGracePeriodSeconds,
		BeforeStop: spec.Drain.BeforeStop,
		NoMetrics:  !spec.MonitorEnabled(),
		Template:   template,
	}
	if in.Grace == nil { // only then is the grace derived from it
		in.GraceOutlasts = spec.EffectiveGraceOutlasts()
	}
	if in.Runtime != v1alpha1.RuntimeGeneric {
		in.PHP, in.Artisan, in.ExtraArgs = spec.Worker.PHP, spec.Worker.Artisan, spec.Worker.ExtraArgs
		if policy := spec.EffectivePreflightPolicy(); policy != v1alpha1.PreflightEnforce {
			in.Preflight = policy
		}
		in.Wrapper, in.Supervision = spec.Worker.Wrapper, spec.Worker.Supervision
	}
	if spec.EffectiveFenceMode() == v1alpha1.FenceModeProxy {
		in.Fence = fenceInput(&spec.Fence)
	}
	if in.Runtime == v1alpha1.RuntimeLaravel {
		in.Tries, in.Backoff = spec.Retries.Tries, spec.Retries.BackoffSeconds
		in.MemoryMegabytes, in.Sleep, in.Rest = spec.Worker.MemoryMegabytes, spec.Worker.SleepSeconds, spec.Worker.RestSeconds
		in.MaxTime, in.MaxJobs = spec.Worker.MaxTimeSeconds, spec.Worker.MaxJobs
	}
	text, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("writing the input: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
