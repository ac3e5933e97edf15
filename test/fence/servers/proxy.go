// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"io"
	"net"
	"sync"
	"time"
)

// Proxy stands between a client and a server and breaks connections at the
// worst moment.
type Proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	next    fault
	held    func() // returns when a late statement may go on
	letGo   func() // makes it so; nil where time does
	late    sync.WaitGroup
	clients map[net.Conn]bool
}

type fault int

const (
	none fault = iota
	loseReply
	arriveLate
)

// NewProxy listens on a free port of loopback.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, clients: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// Port is where clients connect.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// LoseNextReply forwards the next statement and cuts the connection when the
// server answers: it has committed, and the client will not know.
func (p *Proxy) LoseNextReply() { p.arm(loseReply, nil, nil) }

// DelayNext cuts the connection when the next statement comes, and forwards
// the statement later.
func (p *Proxy) DelayNext(by time.Duration) {
	p.arm(arriveLate, func() { time.Sleep(by) }, nil)
}

// HoldNext cuts the connection when the next statement comes, and forwards the
// statement when somebody waits for it with WaitLate.
func (p *Proxy) HoldNext() {
	going := make(chan struct{})
	p.arm(arriveLate, func() { <-going }, func() { close(going) })
}

// Cut breaks every connection that is open.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.clients {
		_ = client.Close()
	}
	clear(p.clients)
}

// WaitLate returns when every delayed statement has been answered. One that was
// never sent is not waited for.
func (p *Proxy) WaitLate() {
	p.mu.Lock()
	if p.next == arriveLate {
		p.next = none
		p.late.Done()
	}
	if p.letGo != nil {
		p.letGo()
		p.letGo = nil
	}
	p.mu.Unlock()
	p.late.Wait()
}

// Close ends the proxy.
func (p *Proxy) Close() { _ = p.listener.Close() }

func (p *Proxy) arm(f fault, held, letGo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.held, p.letGo = f, held, letGo
	if f == arriveLate {
		p.late.Add(1)
	}
}

func (p *Proxy) take() (f fault, held func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f = p.next
	p.next = none
	return f, p.held
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.clients[client] = true
		p.mu.Unlock()
		go func() {
			p.serve(client, server)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.clients, client)
		}()
	}
}

// serve copies both ways. A fault armed before a client's message hits that
// message.
func (p *Proxy) serve(client, server net.Conn) {
	var cut sync.Once
	var mute bool
	var mu sync.Mutex
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			mu.Lock()
			silent := mute
			mu.Unlock()
			if n > 0 && silent || err != nil {
				cut.Do(func() { _ = client.Close() })
				_ = server.Close()
				return
			}
			_, _ = client.Write(buf[:n])
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			_ = server.Close()
			return
		}
		switch f, held := p.take(); f {
		case loseReply:
			mu.Lock()
			mute = true
			mu.Unlock()
			_, _ = server.Write(buf[:n]) // the other half cuts when the answer comes
			return
		case arriveLate:
			mu.Lock()
			mute = true
			mu.Unlock()
			cut.Do(func() { _ = client.Close() })
			held()
			_, _ = server.Write(buf[:n])
			_ = server.SetReadDeadline(time.Now().Add(time.Minute))
			_, _ = io.Copy(io.Discard, server)
			p.late.Done()
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
