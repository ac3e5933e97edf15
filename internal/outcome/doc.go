// SPDX-License-Identifier: Apache-2.0

// Package outcome judges how the workers of a pod ended: drained, or killed and
// why. It is pure: it reads a pod as the API server showed it, and nothing else.
//
// The agent's termination message comes first, then the exit code, then the
// reason: containerd calls a container OOMKilled for ever once any process in
// it was, so a clean end may carry that reason too.
package outcome
