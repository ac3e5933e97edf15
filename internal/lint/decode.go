// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"slices"
	"strings"

	nodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/schema"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Object is a QueueWorker of an input. It has faults, or it was judged.
type Object struct {
	File            string
	Line            int // where it begins
	Namespace, Name string
	// Faults are why it is no valid QueueWorker; then nothing was judged.
	Faults []Fault
	// Findings are what the rules found, in the registry's order.
	Findings []Finding

	worker *v1alpha1.QueueWorker
	node   *nodes.Node
	offset int
}

// Worker is the QueueWorker as the API server would store it; nil where the
// object has faults.
func (o *Object) Worker() *v1alpha1.QueueWorker {
	if len(o.Faults) > 0 {
		return nil
	}
	return o.worker
}

// object reads one QueueWorker and says everything that its schema refuses.
func (in *Input) object(t tree, value map[string]any) Object {
	o := Object{File: in.Name, Line: t.offset + max(t.node.Line, 1), node: t.node, offset: t.offset}
	metadata, _ := value["metadata"].(map[string]any)
	o.Namespace, _ = metadata["namespace"].(string)
	if o.Name, _ = metadata["name"].(string); o.Name == "" {
		o.Name, _ = metadata["generateName"].(string)
	}
	for _, f := range duplicates(t.node, t.offset, "") {
		o.fault(f)
	}
	judge, err := schema.Load()
	if err != nil {
		o.fault(Fault{Message: oneLine(err.Error())})
		return o
	}
	worker, errs := decode(value, judge)
	e := explainer{value: value, fields: judge.Fields}
	for _, f := range e.faults(errs) {
		f.Line = o.lineOf(f.Field)
		o.fault(f)
	}
	slices.SortFunc(o.Faults, byLine)
	o.worker = worker
	return o
}

func (o *Object) fault(f Fault) {
	f.File = o.File
	o.Faults = append(o.Faults, f)
}

// lineOf is the line of the file that a field of the object stands on.
func (o *Object) lineOf(path string) int { return o.offset + lineOf(o.node, path) }

// decode judges a value by the schema, as the API server would, and gives it
// its type.
func decode(value map[string]any, s *schema.Schema) (*v1alpha1.QueueWorker, field.ErrorList) {
	errs := s.UnknownFields(value)
	completed := runtime.DeepCopyJSON(value)
	s.Complete(completed)
	nameIt(completed)
	errs = append(errs, s.Validate(completed)...)
	if len(errs) > 0 {
		return nil, errs // the API server asks no rule before the shape is right
	}
	worker := &v1alpha1.QueueWorker{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(completed, worker); err != nil {
		return nil, field.ErrorList{field.Invalid(nil, field.OmitValueType{}, err.Error())}
	}
	return worker, unregistered(s.ValidateRules(context.Background(), completed))
}

// nameIt does what the API server does before it judges an object that leaves
// its name to the server.
func nameIt(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	prefix, _ := metadata["generateName"].(string)
	if name, _ := metadata["name"].(string); name == "" && prefix != "" {
		metadata["name"] = prefix + "xxxxx"
	}
}

// unregistered keeps what the CRD refuses beyond the rules of the registry,
// which are judged later and with more to say.
func unregistered(errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		id, _, _ := strings.Cut(err.Detail, ":")
		_, registered := timeoutchain.RuleByID(id)
		return registered
	})
}
