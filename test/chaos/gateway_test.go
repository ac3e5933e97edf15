// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queueworker/operator/hack/operator"
)

// gateway is the API server as one manager sees it. It records what is written
// and can kill the manager at a chosen write.
type gateway struct {
	kubeconfig string
	forward    http.Handler

	mu     sync.Mutex
	writes []write
	leased time.Time // when the lease was last written through here
	trap   *trap
}

// write is a request that changes something in a namespace.
type write struct {
	method, path string
	code         int // 0: no answer came
}

func (w write) String() string { return fmt.Sprintf("%s %s (%d)", w.method, w.path, w.code) }

// kind is the resource written, with the subresource.
func (w write) kind() string {
	parts := strings.Split(w.path, "/")
	for i, part := range parts {
		if part != "namespaces" || i+2 >= len(parts) {
			continue
		}
		if i+4 < len(parts) {
			return parts[i+2] + "/" + parts[i+4]
		}
		return parts[i+2]
	}
	return w.path
}

// moment says when the manager dies, seen from a write.
type moment string

const (
	// before: the API server never sees the write.
	before moment = "before"
	// after: the write is stored and the manager does not learn of it.
	after moment = "after"
	// late: the write is under way when the manager dies, and reaches the API
	// server when another one is at work already.
	late moment = "late"
)

// trap kills the manager at its n-th write of a kind. Events are written beside
// the rest, so a place among all writes would be another one each time.
type trap struct {
	kind    string
	n       int
	moment  moment
	kill    func()
	at      write         // that sprang it
	sprung  chan struct{} // closed when the manager is dead
	release chan struct{} // late only: close it to let the write go on
	arrived chan struct{} // late only: closed when the API server has answered
}

func newTrap(at *point, kill func()) *trap {
	return &trap{kind: at.kind, n: at.n, moment: at.when, kill: kill, sprung: make(chan struct{}), release: make(chan struct{}), arrived: make(chan struct{})}
}

// write is the write that sprang the trap, nil if none did.
func (t *trap) write() *write {
	select {
	case <-t.sprung:
		return &t.at
	default:
		return nil
	}
}

// newGateway listens until the test ends. It speaks plain HTTP on loopback and
// adds the operator's credentials.
func newGateway(t *testing.T) *gateway {
	t.Helper()
	target, err := url.Parse(controlPlane.RESTConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport = asOperator
	forward.FlushInterval = -1 // watches
	forward.ErrorLog = log.New(io.Discard, "", 0)
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {
		panic(http.ErrAbortHandler) // an API server that is down answers nothing
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{forward: forward, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: g, cluster: {server: "http://%s"}}]
contexts: [{name: g, context: {cluster: g}}]
current-context: g
`, listener.Addr())
	if err := os.WriteFile(g.kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: g, ErrorLog: forward.ErrorLog, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return g
}

func (g *gateway) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodGet {
		g.forward.ServeHTTP(response, request)
		return
	}
	if strings.Contains(request.URL.Path, "/leases") {
		g.forward.ServeHTTP(response, request)
		g.mu.Lock()
		g.leased = time.Now()
		g.mu.Unlock()
		return
	}
	if strings.Contains(request.URL.Path, "/"+operator.Namespace+"/") || !strings.Contains(request.URL.Path, "/namespaces/") {
		g.forward.ServeHTTP(response, request) // the webhook's registration
		return
	}
	if trap := g.step(write{method: request.Method, path: request.URL.Path}); trap != nil {
		g.spring(trap, request)
		panic(http.ErrAbortHandler) // nobody is left to answer
	}
	status := &statusRecorder{ResponseWriter: response}
	defer func() { g.record(request, status.code) }()
	// A manager that dies over an event may have another write under way: what becomes of that is to be known too.
	g.forward.ServeHTTP(status, request.WithContext(context.WithoutCancel(request.Context())))
}

// set sets a trap; nil takes it away.
func (g *gateway) set(trap *trap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trap = trap
}

// step counts a write and returns the trap that it springs, if any.
func (g *gateway) step(w write) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trap == nil || g.trap.kind != w.kind() {
		return nil
	}
	g.trap.n--
	if g.trap.n > 0 {
		return nil
	}
	sprung := g.trap
	g.trap = nil
	return sprung
}

// spring kills the manager before, after or during the write.
func (g *gateway) spring(trap *trap, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	pass := func() {
		again := request.Clone(context.WithoutCancel(request.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		g.forward.ServeHTTP(answer, again)
		g.record(request, answer.Code)
	}
	if trap.moment == after {
		pass()
	}
	trap.kill()
	trap.at = write{method: request.Method, path: request.URL.Path}
	close(trap.sprung)
	if trap.moment == late {
		<-trap.release
		pass()
		close(trap.arrived)
	}
}

func (g *gateway) record(request *http.Request, code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, write{method: request.Method, path: request.URL.Path, code: code})
}

// written are the writes so far that the API server accepted.
func (g *gateway) written() []write {
	g.mu.Lock()
	defer g.mu.Unlock()
	var accepted []write
	for _, w := range g.writes {
		if w.code >= 200 && w.code < 300 {
			accepted = append(accepted, w)
		}
	}
	return accepted
}

func (g *gateway) lastLease() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leased
}

type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (r *statusRecorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
