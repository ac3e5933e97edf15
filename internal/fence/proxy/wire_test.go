// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// TestGzipInChunks: what the provider compressed is stored and replayed byte by
// byte, with its encoding.
func TestGzipInChunks(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"id":"ch_1"}`)
	_ = z.Close()
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusCreated)
		for _, b := range packed.Bytes() {
			_, _ = w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
	})
	f := start(t, inMemory(), declared(t, p.URL))
	for _, again := range []bool{false, true} {
		a := f.callWith(t, "POST", "/stripe/charges", "{}", map[string]string{"Idempotency-Key": "k", "Accept-Encoding": "gzip"})
		if a.status != 201 || a.body != packed.String() || a.header.Get("Content-Encoding") != "gzip" || (a.header.Get("Idempotency-Replayed") == "true") != again {
			t.Errorf("again %t: %d, %d bytes, %v", again, a.status, len(a.body), a.header)
		}
	}
}

// TestChunkedRequest: a body without a length is read to its end, then sent
// with one.
func TestChunkedRequest(t *testing.T) {
	length := make(chan int64, 1)
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		length <- r.ContentLength
		w.WriteHeader(http.StatusCreated)
	})
	f := start(t, inMemory(), declared(t, p.URL))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/stripe/charges", io.MultiReader(bytes.NewReader([]byte("12345"))))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = -1
	r.Header.Set("Idempotency-Key", "k")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if n := <-length; n != 5 || response.StatusCode != http.StatusCreated {
		t.Errorf("length %d, status %d", n, response.StatusCode)
	}
	f.call(t, "POST", "/stripe/charges", "k", "12345").want(t, 201, "") // the same bytes, so the same request
}

// TestSlowClient: nothing is claimed or sent for a request that is not whole.
func TestSlowClient(t *testing.T) {
	p := charging(t, 0)
	f := start(t, inMemory(), declared(t, p.URL))
	conn, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "POST /stripe/charges HTTP/1.1\r\nHost: x\r\nIdempotency-Key: slow\r\nContent-Length: 10\r\n\r\nhalf")
	for range 2 {
		time.Sleep(100 * time.Millisecond)
		if row := f.row(t, "slow"); row.State != fence.NoRow || p.posts.Load() != 0 {
			t.Errorf("the row is %s, %d requests", row.State, p.posts.Load())
		}
		_ = conn.Close()
	}
}

// TestHeadersCannotBeInjected by a provider's body.
func TestHeadersCannotBeInjected(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"ch_1\r\nSet-Cookie: evil=1"}`)
	})
	d := declared(t, p.URL)
	d.ProviderID = "body.id"
	f := start(t, inMemory(), d)
	for range 2 {
		if a := f.call(t, "POST", "/stripe/charges", "k", "{}"); a.status != 201 || a.header.Get("Set-Cookie") != "" || a.header.Get("Idempotency-Provider-Id") == "" {
			t.Errorf("%d %v", a.status, a.header)
		}
	}
}

// TestIDThatCannotBeRead: the effect is one all the same.
func TestIDThatCannotBeRead(t *testing.T) {
	p := charging(t, 0)
	d := declared(t, p.URL)
	d.ProviderID = "body.charge.id"
	f := start(t, inMemory(), d)
	f.call(t, "POST", "/stripe/charges", "k", "{}").want(t, 201, "")
	if row := f.row(t, "k"); row.State != fence.Done || row.Response.ProviderID != "" {
		t.Errorf("the row: %+v", row)
	}
}
