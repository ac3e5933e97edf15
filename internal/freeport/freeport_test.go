// SPDX-License-Identifier: Apache-2.0

package freeport_test

import (
	"net"
	"testing"

	"github.com/queueworker/operator/internal/freeport"
)

func TestNoPortTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 500 {
		port, err := freeport.Take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] || port < 20000 || port > 29999 {
			t.Fatalf("port %d, after %d others", port, len(seen))
		}
		seen[port] = true
	}
}

// TestTakenPorts: the next ports are in use.
func TestTakenPorts(t *testing.T) {
	before, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if listener, err := net.Listen("tcp", freeport.Address(before+1+i)); err == nil {
			defer func() { _ = listener.Close() }()
		}
	}
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	if port > before && port <= before+5 {
		t.Errorf("port %d is in use", port)
	}
}
