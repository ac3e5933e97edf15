// SPDX-License-Identifier: Apache-2.0

// Package crd carries the CustomResourceDefinition of the QueueWorker, so that
// programs judge by the schema they were built with.
package crd

import _ "embed"

// QueueWorkers is the CustomResourceDefinition as YAML.
//
//go:embed queueworker.dev_queueworkers.yaml
var QueueWorkers []byte
