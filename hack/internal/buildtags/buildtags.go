// SPDX-License-Identifier: Apache-2.0

// Package buildtags names the tags that the operator's programs are built with.
package buildtags

// Operator lets equal managed fields, which every object carries and which are a
// fifth of a cached Deployment, be in memory once: k8s.io/apimachinery has two
// forms of metav1.FieldsV1. Without the tag everything works as well.
const Operator = "fieldsv1string"
