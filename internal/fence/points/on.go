// SPDX-License-Identifier: Apache-2.0

//go:build fencepoints

package points

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync"

	"github.com/queueworker/operator/internal/fence"
)

// The variable says where the test listens, and the header which run a request
// belongs to; statements tell it by their key.
const (
	variable  = "FENCE_POINTS"
	headerRun = "X-Run"
)

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// at reports a step and returns when the test says so.
func at(run, point string) {
	base := os.Getenv(variable)
	if base == "" || run == "" {
		return
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		base+"?run="+url.QueryEscape(run)+"&point="+url.QueryEscape(point), http.NoBody)
	if err != nil {
		return
	}
	response, err := client.Do(request)
	if err != nil { // the test is over
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// Store marks each statement's issue and its return.
func Store(s fence.Store) fence.Store { return store{s} }

type store struct{ fence.Store }

func (s store) Claim(ctx context.Context, st fence.Statement) (fence.Row, error) {
	at(st.Key.ID, "before "+st.Op.String())
	row, err := s.Store.Claim(ctx, st)
	at(st.Key.ID, "after "+st.Op.String())
	return row, err
}

func (s store) Apply(ctx context.Context, st fence.Statement) (bool, error) {
	at(st.Key.ID, "before "+st.Op.String())
	applied, err := s.Store.Apply(ctx, st)
	at(st.Key.ID, "after "+st.Op.String())
	return applied, err
}

func (s store) Read(ctx context.Context, key fence.Key) (fence.Row, error) {
	at(key.ID, "before read")
	row, err := s.Store.Read(ctx, key)
	at(key.ID, "after read")
	return row, err
}

// Transport marks the way of a request and of its reply.
func Transport(t http.RoundTripper) http.RoundTripper { return transport{t} }

type transport struct{ http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	run := r.Header.Get(headerRun)
	name := "send"
	if run == "" { // a lookup has the run in its query
		run, name = r.URL.Query().Get("run"), "lookup"
	}
	at(run, "before "+name)
	trace := &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			at(run, name+" written")
		}
	}}
	if name == "send" {
		trace.GotConn = func(httptrace.GotConnInfo) { at(run, "connected") }
	}
	response, err := t.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	at(run, "after "+name)
	if err == nil {
		response.Body = &body{ReadCloser: response.Body, end: func() { at(run, name+" read") }}
	}
	return response, err
}

type body struct {
	io.ReadCloser
	once sync.Once
	end  func()
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.end)
	return err
}

// Handler marks the beginning and the end of a call.
func Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := r.Header.Get(headerRun)
		at(run, "request")
		h.ServeHTTP(&answering{ResponseWriter: w, run: run}, r)
		at(run, "answered")
	})
}

type answering struct {
	http.ResponseWriter
	run string
}

func (a *answering) WriteHeader(status int) {
	at(a.run, "before answer")
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }
