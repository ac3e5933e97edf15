// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// forward lets this machine reach the API server. The socket was made outside and stays in that network, while what is dialled
// here is in the node's: so nothing has to join the two.
func (s settings) forward() error {
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return err
	}
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			go s.join(outer.(*net.TCPConn))
		}
	}()
	return nil
}

func (s settings) join(outer *net.TCPConn) {
	defer func() { _ = outer.Close() }()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return // the client sees its connection end, as with a server that is down
	}
	inner := conn.(*net.TCPConn)
	defer func() { _ = inner.Close() }()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{outer, inner}, {inner, outer}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].CloseWrite()
		})
	}
	both.Wait()
}
