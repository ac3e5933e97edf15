// SPDX-License-Identifier: Apache-2.0

// Package status says what a QueueWorker's status should be: one function per
// condition, from what was observed and planned. It is pure; transition times
// are set by whoever stores it.
package status
