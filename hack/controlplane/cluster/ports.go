// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// port is reserved by a socket that is bound but never listens. With SO_REUSEPORT on both sides the component can listen there,
// and nobody else can take the number before it does or while it restarts.
type port struct{ socket, bound int }

func (p *port) number() int { return p.bound }

type ports struct{ etcdClient, etcdPeer, apiServer *port }

func reservePorts(apiServer int) (ports, error) {
	var (
		result ports
		err    error
	)
	if result.apiServer, err = reservePort(apiServer); err != nil {
		return result, err
	}
	if result.etcdClient, err = reservePort(0); err != nil {
		return result, err
	}
	result.etcdPeer, err = reservePort(0)
	return result, err
}

// reservePort takes the loopback port with this number, or a free one for 0.
func reservePort(number int) (*port, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	bound, err := bindLoopback(socket, number)
	if err != nil {
		_ = unix.Close(socket)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("port %d is in use: choose another one, or none to get a free one", number)
		}
		return nil, fmt.Errorf("reserving port %d: %w", number, err)
	}
	return &port{socket: socket, bound: bound}, nil
}

func bindLoopback(socket, number int) (int, error) {
	if number != 0 {
		if err := probeFree(number); err != nil {
			return 0, err
		}
	}
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return name.(*unix.SockaddrInet4).Port, nil
}

// probeFree binds without SO_REUSEPORT, since with it two control planes of one user could share a port unnoticed.
func probeFree(number int) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	return unix.Bind(socket, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}})
}

func (p *ports) release() {
	for _, reserved := range []*port{p.etcdClient, p.etcdPeer, p.apiServer} {
		if reserved != nil {
			_ = unix.Close(reserved.socket)
		}
	}
	*p = ports{}
}
