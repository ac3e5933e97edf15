// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package postgres

import "net"

func direct(c net.Conn) net.Conn { return c }
