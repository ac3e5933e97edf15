// SPDX-License-Identifier: Apache-2.0

// Package e2e tries workers on a real node: real pods with real PHP and Laravel, on Redis and on MariaDB, in real time. What a
// test claims it counts: in the journal that jobs write at the provider, in the queue's own tables, and in what the API server
// says of pods.
package e2e
