// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// rule is an error of the registry as CEL. Several may share an ID, one for
// each finding the rule can have. Expressions are written as if they stood on
// spec, with the words of terms.go in place of long paths.
type rule struct {
	// id is the rule's name in the registry, which also says what it reads.
	id string
	// holds is true for an object that keeps the rule.
	holds string
	// text is what a user is told after the id: problem, consequence and fix,
	// as the registry words them. {…} holds an expression.
	text string
	// with gives terms another meaning in this rule, such as what a fix sets.
	with vocabulary
	// field is where the error shows, below spec.
	field string
	// reason is the cause in the API server's answer.
	reason apiextensionsv1.FieldValueErrorReason
	// quotes says that text holds words of the user's. The API server drops a
	// text that is not one line; a fixed one then takes its place.
	quotes bool
}

// Causes of a refusal, as the API server names them.
const (
	invalid   = apiextensionsv1.FieldValueInvalid
	required  = apiextensionsv1.FieldValueRequired
	forbidden = apiextensionsv1.FieldValueForbidden
)

// addRules puts every rule where it belongs.
func addRules(root *schema) error {
	for _, r := range rules() {
		known, ok := timeoutchain.RuleByID(r.id)
		if !ok {
			return fmt.Errorf("rule %s is not in the registry", r.id)
		}
		place, validation := r.validation(known.Sections)
		if r.quotes {
			validation.Message = r.id + ": " + known.Doc.Remedy
		}
		if err := attach(root, place, validation); err != nil {
			return fmt.Errorf("rule %s: %w", r.id, err)
		}
	}
	return attach(root, nil, nameFits)
}

// nameFits holds the name to the length of a label value, since it is one on
// every pod. A name never changes, so only a new object is judged.
var nameFits = apiextensionsv1.ValidationRule{
	Rule:              "oldSelf.hasValue() || size(self.metadata.name) <= 63",
	MessageExpression: "'metadata.name has %d characters, at most 63 are allowed: it is the value of a label on every pod; choose a shorter name'.format([size(self.metadata.name)])",
	Reason:            reason(invalid),
	OptionalOldSelf:   yes(),
}

// validation renders the rule and says on which schema it goes: on one part of
// the spec where the rule and its text read nothing else, since the API server
// passes an unchanged part by itself; else on spec, with a comparison of the
// parts that the rule reads.
func (r rule) validation(reads timeoutchain.Section) (place []string, v apiextensionsv1.ValidationRule) {
	v = apiextensionsv1.ValidationRule{
		Rule:              r.with.condition(r.holds),
		MessageExpression: r.with.message(r.id + ": " + r.text),
		FieldPath:         "." + r.field,
		Reason:            reason(r.reason),
	}
	parts := partsOf(reads)
	if own := parts[0]; len(parts) == 1 && readsOnly(v.Rule+v.MessageExpression, own) && strings.HasPrefix(r.field, own+".") {
		v.Rule = strings.ReplaceAll(v.Rule, "self."+own, "self")
		v.MessageExpression = strings.ReplaceAll(v.MessageExpression, "self."+own, "self")
		v.FieldPath = strings.TrimPrefix(v.FieldPath, "."+own)
		return []string{"spec", own}, v
	}
	unchanged := make([]string, len(parts))
	for i, part := range parts {
		unchanged[i] = fmt.Sprintf("old.%s == self.%s", part, part)
	}
	// The rule first: it mostly holds, and comparing the parts costs as much.
	v.Rule = fmt.Sprintf("(%s) || oldSelf.optMap(old, %s).orValue(false)", v.Rule, strings.Join(unchanged, " && "))
	v.OptionalOldSelf = yes()
	return []string{"spec"}, v
}

// partsOf are the parts of the spec that a rule reads. On an update, Go and CEL
// alike judge a rule only when one of them has changed.
func partsOf(reads timeoutchain.Section) []string {
	var parts []string
	for _, s := range chainsource.Sections {
		if reads&s.Section != 0 {
			parts = append(parts, s.Field)
		}
	}
	return parts
}

var part = regexp.MustCompile(`\bself\.([a-z]+)`)

// readsOnly says whether an expression on spec looks at one part only.
func readsOnly(expression, own string) bool {
	for _, match := range part.FindAllStringSubmatch(expression, -1) {
		if match[1] != own {
			return false
		}
	}
	return true
}

func attach(root *schema, place []string, v apiextensionsv1.ValidationRule) error {
	target, err := at(root, place...)
	if err != nil {
		return err
	}
	target.XValidations = append(target.XValidations, v)
	return put(root, target, place...)
}

func reason(r apiextensionsv1.FieldValueErrorReason) *apiextensionsv1.FieldValueErrorReason {
	return &r
}

func yes() *bool {
	t := true
	return &t
}
