// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
)

// lines collects a log that is written by many.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestLogHoldsNoSecrets: a line for each call, and nothing of what it carried.
func TestLogHoldsNoSecrets(t *testing.T) {
	const secret = "s3cret"
	b := newBank(t, true, func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"token":"`+secret+`"}`) })
	asks, gone := asked(t, b.URL), declared(t, "http://127.0.0.1:1")
	asks.Ask.Headers = append(asks.Ask.Headers, proxy.LookupHeader{Name: "X-Api-Key", Value: secret})
	asks.Ask.Succeeded, gone.Scope = "int(body.token) == 1", "gone" // the error would quote the value
	var log lines
	h, err := proxy.New(proxy.Config{
		Providers: []proxy.Provider{asks, gone}, Store: inMemory(), Clock: fence.SystemClock{}, Owner: "pod-a",
		Log: slog.New(slog.NewJSONHandler(&log, nil)), Watch: &watch{},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	f := fenced{Server: server}
	headers := map[string]string{"Authorization": "Bearer " + secret, "Idempotency-Key": "order-1"}
	for _, path := range []string{"/stripe/charges?token=" + secret, "/stripe/charges?token=" + secret, "/gone/charges?token=" + secret} {
		f.callWith(t, "POST", path, secret, headers)
	}
	f.callWith(t, "GET", "/gone/charges?token="+secret, "", headers)
	text := log.String()
	if strings.Contains(text, secret) {
		t.Error("the log holds what a call carried:\n" + text)
	}
	if n := strings.Count(text, `"msg":"call"`); n != 3 || !strings.Contains(text, "a lookup told nothing") || !strings.Contains(text, `"key":"order-1"`) {
		t.Errorf("%d calls are logged:\n%s", n, text)
	}
}
