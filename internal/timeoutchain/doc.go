// SPDX-License-Identifier: Apache-2.0

// Package timeoutchain knows the timeouts of a queue worker, the order they
// must keep, and what happens when they do not.
//
// A queue delivers at least once. Whether a job also runs once is decided by
// four numbers that must lie inside each other: the longest call a job makes
// (H), the job's own limit (J), the reservation after which the queue hands the
// job to another worker (R), and the grace between the stop request and SIGKILL
// (G). The rule is H < J < R < G, and D + P + J < G, where D is a hook before
// the stop and P is a pop that may be under way when the stop arrives.
//
// [Check] judges a [Chain] by the ordered registry [Rules]. Findings speak of
// links, never of field paths, so that an admission webhook, a command line, a
// controller and a process inside the pod can all use the same rules; whoever
// built the chain knows where its links were written.
//
// The package is pure: standard library only, whole seconds in and out,
// arithmetic that saturates instead of overflowing, no panics, no clock.
package timeoutchain
