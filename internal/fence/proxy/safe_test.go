// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestNoTunnel: a request without an effect does not turn its connection into
// one on which anything may be sent.
func TestNoTunnel(t *testing.T) {
	for name, c := range map[string]struct {
		asks, told string
		want       int
	}{
		"asked for":     {"Connection: Upgrade\r\nUpgrade: raw\r\n", "Connection: Upgrade\r\nUpgrade: raw\r\n", http.StatusOK},
		"not asked for": {"X-Tunnel: yes\r\n", "", http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			var tunnelled atomic.Int32
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Upgrade") == "" && r.Header.Get("X-Tunnel") == "" {
					return
				}
				conn, buffered, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\n%s\r\n", c.told)
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				if _, err := buffered.ReadByte(); err == nil {
					tunnelled.Add(1)
				}
			})
			f := start(t, inMemory(), declared(t, p.URL))
			conn, err := net.Dial("tcp", f.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "GET /stripe/charges HTTP/1.1\r\nHost: x\r\n%s\r\n", c.asks)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != c.want {
				t.Errorf("status %d, want %d", response.StatusCode, c.want)
			}
			if response.StatusCode == http.StatusSwitchingProtocols {
				_, _ = io.WriteString(conn, "POST /charges HTTP/1.1\r\n\r\n")
				time.Sleep(100 * time.Millisecond)
			}
			if tunnelled.Load() != 0 {
				t.Error("the provider read what no fence saw")
			}
		})
	}
}

// TestSafeMethodThatIsAnother: what a provider may take for a POST is none that
// passes without a key.
func TestSafeMethodThatIsAnother(t *testing.T) {
	p := charging(t, 0)
	f := start(t, inMemory(), declared(t, p.URL))
	for _, name := range []string{"X-HTTP-Method-Override", "x-http-method", "X-Method-Override"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+"/stripe/charges", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(name, http.MethodPost)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed || p.effects.Load() != 0 {
			t.Errorf("%s: status %d, %d effects", name, response.StatusCode, p.effects.Load())
		}
	}
}
