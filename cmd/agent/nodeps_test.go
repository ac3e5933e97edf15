// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"testing"

	"github.com/queueworker/operator/internal/agent/selfcopy/selfcopytest"
)

// The agent is copied into other people's images, so it stays small and depends
// on nothing but the standard library and the rules of the chain.
func TestImportsStayInTheStandardLibrary(t *testing.T) {
	selfcopytest.Imports(t, "cmd/agent", "internal/timeoutchain", "internal/preflight", "internal/monitor")
}

func TestBinaryIsSmall(t *testing.T) { selfcopytest.Size(t, 4<<20) }
