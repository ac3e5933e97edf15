// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/queueworker/operator/internal/fence/store/postgres"
)

// socketPair is one end as the store has it, and the other as it comes.
func socketPair(network, address string) (direct, plain net.Conn, err error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = l.Close() }()
	dialled, err := net.Dial(network, l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	plain, err = l.Accept()
	return postgres.Direct(dialled), plain, err
}

func mustPair(t *testing.T) (direct, plain net.Conn) {
	t.Helper()
	direct, plain, err := socketPair("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close(); _ = plain.Close() })
	return direct, plain
}

// TestDirectIsANetConn: deadlines, closing and goroutines, as for any other.
func TestDirectIsANetConn(t *testing.T) {
	for name, address := range map[string]func(t *testing.T) string{
		"tcp":  func(*testing.T) string { return "127.0.0.1:0" },
		"unix": func(t *testing.T) string { return filepath.Join(t.TempDir(), "s") },
	} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, c2, err = socketPair(name, address(t))
				return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, err
			})
		})
	}
}

// TestDirectSendsMoreThanTheSocketHolds: a write goes on where the last one
// stopped.
func TestDirectSendsMoreThanTheSocketHolds(t *testing.T) {
	direct, plain := mustPair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	go func() {
		_, _ = direct.Write(sent)
		_ = direct.Close()
	}()
	time.Sleep(50 * time.Millisecond) // the buffers fill up
	got, err := io.ReadAll(plain)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes: %v", len(got), len(sent), err)
	}
}

func TestDirectSeesTheEnd(t *testing.T) {
	direct, plain := mustPair(t)
	_, _ = plain.Write([]byte("x"))
	_ = plain.Close()
	if got, err := io.ReadAll(direct); string(got) != "x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDirectErrors(t *testing.T) {
	direct, plain := mustPair(t)
	_ = plain.(*net.TCPConn).SetLinger(0)
	_ = plain.Close() // resets the connection
	if _, err := direct.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after a reset: %v", err)
	}
	if n, err := direct.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after a reset: %d, %v", n, err)
	}
	_ = direct.Close()
	if _, err := direct.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after closing: %v", err)
	}
}
