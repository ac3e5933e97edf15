// SPDX-License-Identifier: Apache-2.0

// Package workload builds the objects that run a QueueWorker: one file per
// object, no client, no clock. What it returns are apply configurations, so
// that only the fields written here are owned.
package workload
