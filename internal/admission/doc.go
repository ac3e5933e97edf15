// SPDX-License-Identifier: Apache-2.0

// Package admission judges whole QueueWorkers: what is broken blocks, what is
// risky warns, and what was already broken before a change does not stand in
// the way of another. It is pure: the webhook, the controller's guard and the
// command line call the same functions.
package admission
