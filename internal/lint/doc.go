// SPDX-License-Identifier: Apache-2.0

// Package lint judges the QueueWorkers in YAML and JSON files without a
// cluster, by the same schema, defaults and rules as admission. It opens no
// file and knows no flags: the caller hands it readers and prints what it
// returns.
//
// An input passes four steps: bytes ([Read]), documents, objects of the kinds
// that are ours, and a typed QueueWorker that fits the schema. Whatever fails in
// one of them is a [Fault] with its line. What passes all four is judged
// together with all others ([Judge]), since workers can share a queue.
package lint
