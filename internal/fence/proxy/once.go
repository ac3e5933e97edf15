// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/queueworker/operator/internal/fence/points"
)

// once is the permission to write one request, to one connection. It is asked
// at the first byte, so it knows for certain whether anything was written, and
// nothing can be written after it said that nothing was. http.Transport sends a
// request again by itself when a kept connection breaks and the request carries
// an Idempotency-Key; it then finds the permission used.
type once struct {
	until time.Time
	now   func() time.Time
	state atomic.Int32
}

const (
	nothingWritten int32 = iota
	maybeWritten
	neverToBe
)

var (
	errTooLate = errors.New("the time to send was over before a connection was there")
	errAgain   = errors.New("the request was written before and is not sent again")
	errSealed  = errors.New("the call had ended before the request was written")
	errNobody  = errors.New("bytes without a request")
)

// take is asked by a connection before the first byte of the request.
func (o *once) take() error {
	if o.now().After(o.until) {
		o.expire()
		return errTooLate
	}
	switch {
	case o.state.CompareAndSwap(nothingWritten, maybeWritten):
		return nil
	case o.state.Load() == maybeWritten:
		return errAgain
	}
	return errSealed
}

// expire ends the permission if it was not used, and reports whether it did.
func (o *once) expire() bool { return o.state.CompareAndSwap(nothingWritten, neverToBe) }

// seal ends the call and reports whether it is certain that not one byte was
// written, and that none will be.
func (o *once) seal() bool {
	return o.expire() || o.state.Load() == neverToBe
}

// guarded is a connection that writes only for a request that holds a
// permission. HTTP/1.1 has one request on a connection at a time.
type guarded struct {
	net.Conn
	request atomic.Pointer[once] // until its first byte
	open    atomic.Bool          // the first byte was allowed
}

// begin is called when the connection is given to a request.
func (c *guarded) begin(o *once) {
	c.open.Store(false)
	c.request.Store(o)
}

func (c *guarded) Write(b []byte) (int, error) {
	if !c.open.Load() {
		o := c.request.Load()
		if o == nil {
			return 0, errNobody
		}
		if err := o.take(); err != nil {
			return 0, err
		}
		c.open.Store(true)
	}
	return c.Conn.Write(b)
}

// withOnce binds the permission to the request's connection.
func withOnce(ctx context.Context, o *once) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if c, ok := info.Conn.(*guarded); ok {
				c.begin(o)
			}
		},
	})
}

// idleFor is how long a connection is kept. It is shorter than what servers
// usually keep, since a request on a connection that the server closes at the
// same moment has an unknown outcome.
const idleFor = 4 * time.Second

// dialLimit ends dials whose request has given up long before.
const dialLimit = 10 * time.Second

// newPlainTransport is for requests without an effect, which may be repeated.
func newPlainTransport(config *tls.Config) *http.Transport {
	t := newTransport(config)
	dialer := &net.Dialer{Timeout: dialLimit, KeepAlive: 15 * time.Second}
	t.DialContext, t.DialTLSContext, t.TLSClientConfig = points.Dial(dialer.DialContext), nil, config
	return t
}

// newTransport speaks HTTP/1.1 over guarded connections. It follows no
// redirect, decodes nothing, and uses no proxy from the environment: an answer
// of a proxy in between could not be told from the provider's.
func newTransport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialLimit, KeepAlive: 15 * time.Second}
	guard := func(conn net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: conn}, nil
	}
	plain, secure := points.Dial(dialer.DialContext), &tls.Dialer{NetDialer: dialer, Config: config}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return guard(plain(ctx, network, addr))
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return guard(secure.DialContext(ctx, network, addr))
		},
		DisableCompression: true,
		// A call does little but wait, and holds both buffers while it does.
		ReadBufferSize:         1 << 10,
		WriteBufferSize:        2 << 10,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        idleFor,
		MaxResponseHeaderBytes: 256 << 10,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}
