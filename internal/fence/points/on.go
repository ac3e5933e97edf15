// SPDX-License-Identifier: Apache-2.0

//go:build fencepoints

package points

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

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
func Store(s fence.Store) fence.Store { return store{s, ""} }

// ofUpkeep begins the names of the upkeep's steps.
const ofUpkeep = "upkeep: "

// Upkeep marks the statements of the upkeep, and each row that it has found.
func Upkeep(s fence.Store) fence.Store { return upkeep{store{s, ofUpkeep}} }

type upkeep struct{ store }

func (u upkeep) Sweepable(ctx context.Context, which fence.Sweepable) ([]fence.Row, error) {
	rows, err := u.store.Sweepable(ctx, which)
	for _, row := range rows {
		at(row.Key.ID, ofUpkeep+"found")
	}
	return rows, err
}

// Asker marks the upkeep's lookups as its own.
func Asker(s fence.Sender) fence.Sender { return asker{s} }

type asker struct{ fence.Sender }

type whose struct{}

func (a asker) LookUp(ctx context.Context, row fence.Step) fence.Lookup {
	return a.Sender.LookUp(context.WithValue(ctx, whose{}, ofUpkeep), row)
}

// Every makes the upkeep's rounds come twenty times as often.
func Every(d time.Duration) time.Duration { return d / 20 }

type store struct {
	fence.Store
	by string
}

func (s store) Claim(ctx context.Context, st fence.Statement) (fence.Row, error) {
	at(st.Key.ID, s.by+"before "+st.Op.String())
	row, err := s.Store.Claim(ctx, st)
	at(st.Key.ID, s.by+"after "+st.Op.String())
	return row, err
}

func (s store) Apply(ctx context.Context, st fence.Statement) (bool, error) {
	at(st.Key.ID, s.by+"before "+st.Op.String())
	applied, err := s.Store.Apply(ctx, st)
	at(st.Key.ID, s.by+"after "+st.Op.String())
	return applied, err
}

func (s store) Read(ctx context.Context, key fence.Key) (fence.Row, error) {
	at(key.ID, s.by+"before read")
	row, err := s.Store.Read(ctx, key)
	at(key.ID, s.by+"after read")
	return row, err
}

// Dial marks the moment at which a request is on the wire. A transport's own
// trace comes earlier: the request may still be in a buffer of its own.
func Dial(f func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := f(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn{c}, nil
	}
}

type conn struct{ net.Conn }

// headerPoint carries run and point of a request to its connection.
const headerPoint = "X-Point"

func (c conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if _, rest, found := bytes.Cut(b, []byte("\r\n"+headerPoint+": ")); found && err == nil {
		line, _, _ := bytes.Cut(rest, []byte("\r\n"))
		run, name, _ := strings.Cut(string(line), " ")
		at(run, name+" written")
	}
	return n, err
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
	by, _ := r.Context().Value(whose{}).(string)
	at(run, by+"before "+name)
	trace := &httptrace.ClientTrace{}
	if name == "send" {
		trace.GotConn = func(httptrace.GotConnInfo) { at(run, "connected") }
	}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	r.Header = r.Header.Clone()
	r.Header.Set(headerPoint, run+" "+by+name)
	response, err := t.RoundTripper.RoundTrip(r)
	at(run, by+"after "+name)
	if err == nil {
		response.Body = &body{ReadCloser: response.Body, end: func() { at(run, by+name+" read") }}
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
	run   string
	begun bool
}

func (a *answering) WriteHeader(status int) {
	a.begun = true
	at(a.run, "before answer")
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Write(p []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }
