// SPDX-License-Identifier: Apache-2.0

package scrape_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/exposition"
	"github.com/queueworker/operator/internal/agent/scrape"
)

func TestAnswers(t *testing.T) {
	scrapes := make(chan chan<- []byte)
	listener, err := scrape.Listen("127.0.0.1:0", scrapes)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for answer := range scrapes {
			answer <- []byte("up 1\n")
		}
	}()
	for path, want := range map[string]string{"/metrics": "200 up 1\n", "/metrics?x=y": "200 up 1\n", "/": "404 GET /metrics is all there is.\n", "/metricsx": "404 GET /metrics is all there is.\n"} {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if got := fmt.Sprint(response.StatusCode, " ", string(text)); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if kind := response.Header.Get("Content-Type"); path == "/metrics" && kind != exposition.ContentType {
			t.Errorf("content type %q", kind)
		}
	}
	// Whoever says nothing, or too much, holds nobody up for long.
	for range 3 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	loud, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(loud, "GET /metrics HTTP/1.1\r\nX: "+strings.Repeat("x", 9<<10))
	_ = loud.SetReadDeadline(time.Now().Add(time.Minute))
	if text, _ := io.ReadAll(loud); len(text) != 0 {
		t.Errorf("%q", text)
	}
	response, err := http.Get("http://" + listener.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := scrape.Listen(taken.Addr().String(), nil); err == nil {
		t.Error("two listen at one address")
	}
}
