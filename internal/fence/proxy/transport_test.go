// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// breaking answers the first request of a connection and cuts the connection
// after it has read the second. It counts every request it reads.
func breaking(t *testing.T) (url string, posts *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	posts = new(atomic.Int32)
	serve := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		r := bufio.NewReader(conn)
		for n := 0; ; n++ {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			posts.Add(1)
			if n == 1 {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + l.Addr().String(), posts
}

// TestBrokenKeepAlive: net/http would send the second request again on a new
// connection, since its header says that it may be repeated.
func TestBrokenKeepAlive(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "body": `{"amount":1}`} {
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			t.Run(method+", "+name, func(t *testing.T) {
				base, posts := breaking(t)
				f := start(t, inMemory(), declared(t, base))
				f.call(t, method, "/stripe/charges", "first", body).want(t, 201, "")
				f.call(t, method, "/stripe/charges", "second", body).want(t, 504, "outcome-unknown")
				if n := posts.Load(); n != 2 || f.watch.posted.Load() != 2 {
					t.Errorf("the provider read %d requests, the fence counted %d; want 2", n, f.watch.posted.Load())
				}
				if row := f.row(t, "second"); row.State != fence.Unknown {
					t.Errorf("the row is %s", row.State)
				}
			})
		}
	}
}

// TestClosedPortIsNotSent: nobody listens, so nothing can be written.
func TestClosedPortIsNotSent(t *testing.T) {
	p := charging(t, 0)
	d := declared(t, p.URL)
	p.Close()
	f := start(t, inMemory(), d)
	f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 502, "not-sent")
	if row := f.row(t, "k"); row.State != fence.Released || f.watch.posted.Load() != 0 {
		t.Errorf("the row is %s, %d posted", row.State, f.watch.posted.Load())
	}
}

// slow is a provider whose handshakes end when they are told to.
func slow(t *testing.T) (p *httptest.Server, posts *atomic.Int32, shakeHands func()) {
	t.Helper()
	posts = new(atomic.Int32)
	told := make(chan struct{})
	shakeHands = sync.OnceFunc(func() { close(told) })
	p = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		w.WriteHeader(http.StatusCreated)
	}))
	p.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		<-told
		return nil, nil
	}}
	p.StartTLS()
	t.Cleanup(p.Close)
	t.Cleanup(shakeHands)
	return p, posts, shakeHands
}

// TestSendDeadline: the connection stands only after the time to send, so not
// one byte of the request may be written, not even later.
func TestSendDeadline(t *testing.T) {
	t.Run("in time", func(t *testing.T) {
		t.Parallel()
		p, _, shakeHands := slow(t)
		d := declared(t, p.URL)
		d.TLS = p.Client().Transport.(*http.Transport).TLSClientConfig
		f := start(t, inMemory(), d)
		time.AfterFunc(100*time.Millisecond, shakeHands)
		f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 201, "")
	})
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		p, posts, shakeHands := slow(t)
		d := declared(t, p.URL)
		d.TLS = p.Client().Transport.(*http.Transport).TLSClientConfig
		d.Times.SendWindow, d.Times.ProviderTimeout = 4*time.Second, time.Minute
		f := start(t, inMemory(), d)
		began := time.Now()
		f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 502, "not-sent")
		if took := time.Since(began); took < d.Times.SendWindow || took > d.Times.ProviderTimeout {
			t.Errorf("the answer took %s, the time to send is %s", took, d.Times.SendWindow)
		}
		shakeHands()
		time.Sleep(500 * time.Millisecond)
		if row := f.row(t, "k"); posts.Load() != 0 || row.State != fence.Released {
			t.Errorf("%d requests, the row is %s", posts.Load(), row.State)
		}
		f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 201, "") // on the connection that came late
	})
}
