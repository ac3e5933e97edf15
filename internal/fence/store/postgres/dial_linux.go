// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// direct reads and writes a socket without telling Go's scheduler. A socket
// never blocks, so there is nothing to tell; but each time the program was idle
// before, as it is between a statement and its answer, the telling wakes the
// runtime's monitor thread, and that costs more than the read.
func direct(c net.Conn) net.Conn {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return c
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return c
	}
	d := &directConn{Conn: c, raw: raw}
	d.reading.try, d.writing.try = d.reading.read, d.writing.write
	return d
}

type directConn struct {
	net.Conn
	raw              syscall.RawConn
	reading, writing transfer
}

// transfer is one read or write under way.
type transfer struct {
	mu     sync.Mutex
	buf    []byte // what is left
	done   int
	failed syscall.Errno
	try    func(fd uintptr) bool // false: not yet
}

// Read implements net.Conn.
func (c *directConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := c.reading.run(c.raw.Read, b, "read")
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *directConn) Write(b []byte) (int, error) {
	return c.writing.run(c.raw.Write, b, "write")
}

// run calls try until it is done, the deadline is over or the socket is closed.
func (t *transfer) run(wait func(func(fd uintptr) bool) error, b []byte, name string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf, t.done, t.failed = b, 0, 0
	err := wait(t.try)
	t.buf = nil
	if err == nil && t.failed != 0 {
		err = os.NewSyscallError(name, t.failed)
	}
	return t.done, err
}

func (t *transfer) read(fd uintptr) bool {
	n, failed := t.call(syscall.SYS_READ, fd)
	if failed == syscall.EAGAIN {
		return false
	}
	t.done, t.failed = n, failed
	return true
}

func (t *transfer) write(fd uintptr) bool {
	for len(t.buf) > 0 {
		n, failed := t.call(syscall.SYS_WRITE, fd)
		if failed == syscall.EAGAIN {
			return false
		}
		if failed != 0 {
			t.failed = failed
			return true
		}
		t.done += n
		t.buf = t.buf[n:]
	}
	return true
}

func (t *transfer) call(number, fd uintptr) (int, syscall.Errno) {
	for {
		n, _, failed := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.buf))), uintptr(len(t.buf))) //nolint:gosec // how a buffer is handed to the kernel
		if failed == 0 {
			return int(n), 0
		}
		if failed != syscall.EINTR {
			return 0, failed
		}
	}
}
