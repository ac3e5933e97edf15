// SPDX-License-Identifier: Apache-2.0

package main

// What the manager itself needs; controllers and webhooks state their own.
// Rules with a namespace become a Role there: put it into the operator's own
// namespace. Names are the defaults of the configuration file.
//
// Leader election:
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=queueworker-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=queueworker-system,resources=leases,resourceNames=queueworker-operator,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=queueworker-system,resources=events,verbs=create
//
// Its certificate. The watch names the one Secret, so no other is readable. The
// Secret is installed, empty, with the operator: the right to create one cannot
// name it.
// +kubebuilder:rbac:groups="",namespace=queueworker-system,resources=secrets,resourceNames=queueworker-operator-webhook-cert,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=queueworker-operator,verbs=get;list;watch;patch
//
// The start-up check that the CRD is not older than the manager:
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=queueworkers.queueworker.dev,verbs=get
//
// Who may read the metrics:
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
