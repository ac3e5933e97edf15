// SPDX-License-Identifier: Apache-2.0

// Package freeport picks ports for servers that tests and the demo start.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The kernel takes the ports of outgoing connections from 32768 up, and
// Kubernetes those of NodePorts from 30000 up: between the choice of a port and
// the start of its server, neither takes one of these.
const first, count = 20000, 10000

// next differs from process to process, since tests of several packages run at once.
var next atomic.Uint32

func init() { next.Store(rand.Uint32N(count)) } //nolint:gosec // not a secret

// Take returns a port of the loopback interface on which nobody listens. It
// returns no port twice before all others were taken.
func Take() (int, error) {
	for range count {
		port := first + int(next.Add(1)%count)
		if listener, err := net.Listen("tcp", Address(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no port from " + strconv.Itoa(first) + " to " + strconv.Itoa(first+count-1) + " is free")
}

// TakeAddress is Take as an address of the loopback interface.
func TakeAddress() (string, error) {
	port, err := Take()
	return Address(port), err
}

// Address is a port of the loopback interface.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
