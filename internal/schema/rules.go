// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// ValidateRules judges a new object by the CEL rules of the CRD. It must be
// completed, and its shape must be valid: the API server does not run rules on
// an object that has the wrong shape.
func (s *Schema) ValidateRules(ctx context.Context, object map[string]any) field.ErrorList {
	errs, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// ValidateRulesUpdate judges a change. A rule is passed over where nothing that
// it reads has changed.
func (s *Schema) ValidateRulesUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	errs, _ := s.rules.Validate(ctx, nil, s.structural, object, old, celconfig.RuntimeCELCostBudget,
		cel.WithRatcheting(s.correlate(object, old)))
	return errs
}
