// SPDX-License-Identifier: Apache-2.0

// Package preflight compares what a QueueWorker declares with what the
// application in the image would really run with.
//
// [Facts] are what a PHP process in the image said; [Declared] is what the
// QueueWorker says. [Judge] compares them by the ordered registry [Rules]. Where
// a fact replaces a number of the chain, such as a job class's own $timeout, the
// rules of internal/timeoutchain judge the chain with that number, and the
// finding carries their id.
//
// An error means that the declared chain would not hold, or that no worker would
// run. A warning is a risk beside the chain. Unverified is what nobody could
// see: it is told, and neither blocks nor counts as fine.
//
// The package is pure and uses the standard library only, since the agent
// inside the pod judges by it.
package preflight
