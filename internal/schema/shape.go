// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/queueworker/operator/api/v1alpha1"
)

// UnknownFields lists the fields that the schema does not know. A strict client
// is refused for them, for another one they are dropped. The object is not
// changed.
func (s *Schema) UnknownFields(object map[string]any) field.ErrorList {
	copied := runtime.DeepCopyJSON(object)
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(copied, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata"), field.OmitValueType{}, err.Error())}
	}
	unknown = append(unknown, pruning.PruneWithOptions(copied, s.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	var errs field.ErrorList
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), field.OmitValueType{}, "unknown field"))
	}
	return errs
}

// Complete changes the object into what the API server would judge and store:
// unknown fields of the spec and nulls are dropped, defaults are set. The status
// is the server's own and starts anew.
func (s *Schema) Complete(object map[string]any) {
	delete(object, "status")
	pruning.Prune(object, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
}

// Validate judges the shape of a completed object: name, types, enumerations,
// bounds, patterns, required fields, and that no key of a keyed list repeats.
func (s *Schema) Validate(object map[string]any) field.ErrorList {
	errs := s.kindAndName(object)
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.shape)...)
	errs = append(errs, s.embedded(object)...)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
}

// ValidateUpdate is [Schema.Validate] for a change: what was wrong before and
// has not been changed is passed over.
func (s *Schema) ValidateUpdate(object, old map[string]any) field.ErrorList {
	errs := s.kindAndName(object)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object, old, s.shape,
		validation.WithRatcheting(s.correlate(object, old)))...)
	errs = append(errs, s.embedded(object)...)
	if len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) > 0 {
		return errs
	}
	return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
}

// kindAndName judges what no schema describes. An object from a file need not
// name its namespace.
func (s *Schema) kindAndName(object map[string]any) field.ErrorList {
	var errs field.ErrorList
	if version := v1alpha1.SchemeGroupVersion.String(); object["apiVersion"] != version {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), object["apiVersion"], "must be "+version))
	}
	if object["kind"] != v1alpha1.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), object["kind"], "must be "+v1alpha1.Kind))
	}
	path := field.NewPath("metadata")
	meta, found, err := objectmeta.GetObjectMeta(object, false)
	if err != nil {
		return append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	if !found {
		meta = &metav1.ObjectMeta{}
	}
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	return append(errs, apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, path)...)
}

func (s *Schema) embedded(object map[string]any) field.ErrorList {
	return objectmeta.Validate(context.Background(), nil, object, s.structural, false)
}

func (s *Schema) correlate(object, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
}
