// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the QueueWorker: a queue worker with a declared
// timeout chain.
//
// +kubebuilder:object:generate=true
// +groupName=queueworker.dev
package v1alpha1
