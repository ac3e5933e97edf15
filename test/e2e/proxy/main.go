// SPDX-License-Identifier: Apache-2.0

// The command proxy stands in for a database proxy beside a worker: proxy LISTEN TARGET. Like most, it ends at once when it is
// asked to, whoever still has a connection.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: proxy LISTEN TARGET")
		os.Exit(64)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, os.Args[2])
		}
	}()
	<-stop
}

func forward(outer net.Conn, target string) {
	defer func() { _ = outer.Close() }()
	inner, err := net.Dial("tcp", target)
	if err != nil {
		return // the client sees its connection end
	}
	defer func() { _ = inner.Close() }()
	go func() {
		_, _ = io.Copy(inner, outer)
		_ = inner.Close()
	}()
	_, _ = io.Copy(outer, inner)
}
