// SPDX-License-Identifier: Apache-2.0

// Package chainsource turns a QueueWorker into the chain that the rules judge,
// and a finding's link back into the field where it was written.
package chainsource
