// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Options is what the files do not say.
type Options struct {
	// GraceCap is the longest grace, in seconds, that the platform grants; 0
	// means timeoutchain.DefaultGraceCap.
	GraceCap int64
	// Namespace is that of objects which name none.
	Namespace string
}

// Finding is a rule's finding at its place in a file.
type Finding struct {
	Rule     string
	Severity timeoutchain.Severity
	Field    string
	Line     int
	Message  string // the problem and its consequence
	Fix      string // the smallest change, as a sentence
	Set      []Change
}

// Change is one field of a fix.
type Change struct {
	Field string `json:"field"`
	// Value is the new number; nil means: leave the field out.
	Value *int64 `json:"value"`
}

// Report is the outcome of all inputs.
type Report struct{ Inputs []Input }

// Judge applies the rules to every QueueWorker that could be read. Workers that
// poll the same queue are judged together across all inputs.
func Judge(inputs []Input, opts Options) Report {
	namespaces := map[string][]v1alpha1.QueueWorker{}
	eachObject(inputs, func(o *Object) {
		if o.Namespace == "" {
			o.Namespace = opts.Namespace
		}
		if o.Worker() != nil {
			o.worker.Namespace = o.Namespace
			namespaces[o.Namespace] = append(namespaces[o.Namespace], *o.worker)
		}
	})
	eachObject(inputs, func(o *Object) {
		if o.Worker() != nil {
			o.judge(admission.Options{GraceCap: opts.GraceCap, Others: namespaces[o.Namespace]})
		}
	})
	return Report{Inputs: inputs}
}

func eachObject(inputs []Input, do func(*Object)) {
	for i := range inputs {
		for j := range inputs[i].Objects {
			do(&inputs[i].Objects[j])
		}
	}
}

func (o *Object) judge(opts admission.Options) {
	for _, f := range admission.Validate(o.worker, opts).Findings {
		path := chainsource.PathOf(o.worker, f).String()
		o.Findings = append(o.Findings, Finding{
			Rule:     f.Rule,
			Severity: f.Severity,
			Field:    path,
			Line:     o.lineOf(path),
			Message:  f.Problem + ": " + f.Consequence,
			Fix:      f.Fix.String(),
			Set:      changes(f.Fix, func(a timeoutchain.Assignment) *field.Path { return chainsource.PathOfChange(o.worker, a) }),
		})
	}
}

// Add takes in a finding that somebody else made; its line is looked up by its
// field.
func (o *Object) Add(f Finding) {
	f.Line = o.lineOf(f.Field)
	o.Findings = append(o.Findings, f)
}

// Named keeps the QueueWorker of one name, or namespace/name; an empty name
// keeps all. Objects that name no namespace get the given one.
func Named(inputs []Input, name, namespace string) []Input {
	eachObject(inputs, func(o *Object) {
		if o.Namespace == "" {
			o.Namespace = namespace
		}
	})
	for i := range inputs {
		inputs[i].Objects = slices.DeleteFunc(inputs[i].Objects, func(o Object) bool {
			return name != "" && name != o.Name && name != o.Namespace+"/"+o.Name
		})
	}
	return inputs
}

func changes(fix timeoutchain.Fix, path func(timeoutchain.Assignment) *field.Path) []Change {
	var set []Change
	for _, a := range fix.Set {
		change := Change{Field: path(a).String()}
		if a.Value.Declared() {
			n := a.Value.Or(0)
			change.Value = &n
		}
		set = append(set, change)
	}
	return set
}

// Verdict is what admission would say.
type Verdict string

// The verdicts.
const (
	Accept Verdict = "accept"
	Reject Verdict = "reject"
)

// Verdict says whether the object would be admitted.
func (o *Object) Verdict() Verdict {
	if len(o.Faults) > 0 || o.count(timeoutchain.Error) > 0 {
		return Reject
	}
	return Accept
}

func (o *Object) count(s timeoutchain.Severity) int {
	n := 0
	for _, f := range o.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Counts sum a report up.
type Counts struct {
	Workers, Accepted, Refused, Unreadable int // Workers is the sum of the other three
	Warnings, PassedOver                   int
	Faults                                 int // of QueueWorkers and of files
}

// Counts sums the report up.
func (r Report) Counts() Counts {
	var c Counts
	for _, in := range r.Inputs {
		c.PassedOver += in.PassedOver
		c.Faults += len(in.Faults)
		for i := range in.Objects {
			o := &in.Objects[i]
			c.Workers++
			c.Faults += len(o.Faults)
			c.Warnings += o.count(timeoutchain.Warning)
			switch {
			case len(o.Faults) > 0:
				c.Unreadable++
			case o.Verdict() == Reject:
				c.Refused++
			default:
				c.Accepted++
			}
		}
	}
	return c
}

// Faults are all faults, in the order of the inputs and their lines.
func (r Report) Faults() []Fault {
	var faults []Fault
	for _, in := range r.Inputs {
		faults = append(faults, in.sortedFaults()...)
	}
	return faults
}
