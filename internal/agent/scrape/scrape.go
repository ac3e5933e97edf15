// SPDX-License-Identifier: Apache-2.0

// Package scrape answers "GET /metrics" and nothing else. The agent is in every
// worker's pod, and the library's server would make it half as large again.
package scrape

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/agent/exposition"
)

const (
	limit       = 5 * time.Second // for one conversation
	mostRequest = 8 << 10         // bytes
	atOnce      = 4               // conversations; more wait
)

// Listen answers at an address. For each scrape the channel gets a request, to
// be answered once.
func Listen(address string, scrapes chan<- chan<- []byte) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for scrapes: %w", err)
	}
	go func() {
		slots := make(chan struct{}, atOnce)
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors, say: others may be given back
				time.Sleep(10 * time.Millisecond)
				continue
			}
			slots <- struct{}{}
			go func() {
				defer func() { _ = conn.Close(); <-slots }()
				_ = conn.SetDeadline(time.Now().Add(limit))
				serve(conn, scrapes)
			}()
		}
	}()
	return listener, nil
}

func serve(conn net.Conn, scrapes chan<- chan<- []byte) {
	request := bufio.NewReader(io.LimitReader(conn, mostRequest))
	first, err := request.ReadString('\n')
	for line := first; err == nil && strings.TrimSpace(line) != ""; {
		line, err = request.ReadString('\n') // what else is said does not matter
	}
	if err != nil {
		return
	}
	words := strings.Fields(first)
	status, kind, body := "404 Not Found", "text/plain; charset=utf-8", []byte("GET /metrics is all there is.\n")
	if len(words) == 3 && words[0] == "GET" && (words[1] == "/metrics" || strings.HasPrefix(words[1], "/metrics?")) {
		answer := make(chan []byte, 1)
		select {
		case scrapes <- answer:
			status, kind, body = "200 OK", exposition.ContentType, <-answer
		case <-time.After(limit):
			return
		}
	}
	fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", status, kind, len(body))
	_, _ = conn.Write(body)
}
