// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Options is what the cluster knows beyond the object.
type Options struct {
	// GraceCap is the longest grace, in seconds, that the platform grants; 0
	// means timeoutchain.DefaultGraceCap.
	GraceCap int64
	// Others are the QueueWorkers of the same namespace; the judged one may be
	// among them.
	Others []v1alpha1.QueueWorker
}

// Result is what a judgement found.
type Result struct {
	// Findings are all findings in the registry's order. Where a change is
	// judged, an error that the change has nothing to do with is a warning.
	Findings []timeoutchain.Finding

	qw *v1alpha1.QueueWorker
}

// Validate judges a new QueueWorker.
func Validate(qw *v1alpha1.QueueWorker, opts Options) Result {
	chain := chainsource.FromQueueWorker(qw, chainsource.Options{
		GraceCap: opts.GraceCap,
		Pollers:  chainsource.Pollers(qw, opts.Others),
	})
	return Result{Findings: timeoutchain.Check(chain), qw: qw}
}

// ValidateUpdate judges a change. A finding blocks only when a section that its
// rule reads has changed, so that an object which newer rules refuse can still
// be scaled, relabelled and patched elsewhere.
func ValidateUpdate(old, qw *v1alpha1.QueueWorker, opts Options) Result {
	result := Validate(qw, opts)
	if len(result.Errors()) == 0 {
		return result
	}
	changed := changedSections(&old.Spec, &qw.Spec)
	for i, f := range result.Findings {
		rule, known := timeoutchain.RuleByID(f.Rule)
		if known && rule.Sections&changed == 0 {
			result.Findings[i].Severity = timeoutchain.Warning
		}
	}
	return result
}

// Errors are the findings that block, each at its field.
func (r Result) Errors() field.ErrorList {
	var errs field.ErrorList
	for _, f := range timeoutchain.Blocking(r.Findings) {
		errs = append(errs, fieldError(r.qw, f))
	}
	return errs
}

// Warnings are the texts of the findings that do not block.
func (r Result) Warnings() []string {
	var texts []string
	for _, f := range timeoutchain.Risks(r.Findings) {
		texts = append(texts, chainsource.PathOf(r.qw, f).String()+": "+f.Message())
	}
	return texts
}

func fieldError(qw *v1alpha1.QueueWorker, f timeoutchain.Finding) *field.Error {
	path := chainsource.PathOf(qw, f)
	switch {
	case f.Subject != "" && f.Got == 0:
		return field.Invalid(path, f.Subject, f.Message())
	case f.Got == 0 && f.Need == 0:
		return field.Forbidden(path, f.Message())
	default:
		return field.Invalid(path, f.Got, f.Message())
	}
}

func changedSections(old, now *v1alpha1.QueueWorkerSpec) timeoutchain.Section {
	var changed timeoutchain.Section
	for _, s := range []struct {
		section  timeoutchain.Section
		old, now any
	}{
		{timeoutchain.SectionRuntime, old.Runtime, now.Runtime},
		{timeoutchain.SectionQueue, old.Queue, now.Queue},
		{timeoutchain.SectionTimeouts, old.Timeouts, now.Timeouts},
		{timeoutchain.SectionRetries, old.Retries, now.Retries},
		{timeoutchain.SectionLocks, old.Locks, now.Locks},
		{timeoutchain.SectionWorker, old.Worker, now.Worker},
		{timeoutchain.SectionDrain, old.Drain, now.Drain},
		{timeoutchain.SectionFence, old.Fence, now.Fence},
		{timeoutchain.SectionTemplate, old.Template, now.Template},
		{timeoutchain.SectionPreflight, old.Preflight, now.Preflight},
		{timeoutchain.SectionStrategy, old.Strategy, now.Strategy},
		{timeoutchain.SectionMonitor, old.Monitor, now.Monitor},
	} {
		if !equality.Semantic.DeepEqual(s.old, s.now) {
			changed |= s.section
		}
	}
	return changed
}
