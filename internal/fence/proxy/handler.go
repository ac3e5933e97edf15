// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// Config is what a handler works with.
type Config struct {
	Providers []Provider
	Store     fence.Store
	Clock     fence.Clock
	Owner     string       // the pod, for people
	Log       *slog.Logger // gets no body, header or query
	Watch     Watch
	// Transport stands between the fence and its connections; nil: nothing does.
	Transport func(http.RoundTripper) http.RoundTripper
}

// Watch is told what happens, for metrics. Its methods may run at once.
type Watch interface {
	Posted(provider string)                        // a request may have been written
	Answered(provider string, answer fence.Answer) // a call that needed a key is over
	Passed(provider string)                        // a safe request was passed on
	LookedUp(provider string, found fence.Finding) // the provider was asked about a key
	Waited(provider string, d time.Duration)       // a copy waited for another one of its key
}

// Handler is the fence as an app sees it.
type Handler struct {
	config    Config
	providers map[string]*route
	finisher  *finisher
}

type route struct {
	Provider
	transport http.RoundTripper
	pass      *httputil.ReverseProxy
	store     fence.Store
	key       *expression // nil: only the header
	id        *expression // nil: replies name no id
	asker     *asker
}

// New refuses a configuration that cannot be kept.
func New(c Config) (*Handler, error) {
	h := &Handler{config: c, providers: map[string]*route{}, finisher: newFinisher(c.Clock, c.Log)}
	for _, declared := range c.Providers {
		p := declared.WithDefaults()
		if err := p.Validate(); err != nil {
			return nil, err
		}
		if h.providers[p.Scope] != nil {
			return nil, fmt.Errorf("provider %s is declared twice", p.Scope)
		}
		h.providers[p.Scope] = newRoute(p, c)
	}
	return h, nil
}

// newRoute is for a provider that was validated, so its expressions compile.
func newRoute(p Provider, c Config) *route {
	between := c.Transport
	if between == nil {
		between = func(t http.RoundTripper) http.RoundTripper { return t }
	}
	to := &route{
		Provider: p, transport: between(newTransport(p.TLS)), pass: passing(&p, c.Log),
		store: cutting{c.Store, p.MaxStored},
	}
	if p.Key != "" {
		to.key, _ = compileKey(p.Key)
	}
	if p.ProviderID != "" {
		to.id, _ = compileID(p.ProviderID, replyVariables)
	}
	to.asker = &asker{provider: &to.Provider, transport: between(newPlainTransport(p.TLS)), log: c.Log, watch: c.Watch}
	if p.Ask != nil {
		to.asker.lookup, _ = p.Ask.compile()
	}
	return to
}

// Finish waits, when no call is under way any more, for outcomes that the
// database has not taken yet, at most until ctx ends, and returns the keys that
// count as unknown for that reason.
func (h *Handler) Finish(ctx context.Context) []fence.Key { return h.finisher.finish(ctx) }

// Asker asks a provider that was declared; it sends nothing.
func (h *Handler) Asker(scope string) fence.Sender { return h.providers[scope].asker }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scope, rest, err := split(r.URL)
	if err != nil {
		problem.Write(w, problem.Path, http.StatusBadRequest, err.Error())
		return
	}
	to := h.providers[scope]
	switch {
	case to == nil:
		problem.Write(w, problem.UnknownProvider, http.StatusNotFound, fmt.Sprintf("the first part of the path is %q", scope))
	case slices.Contains([]string{http.MethodConnect, http.MethodTrace}, r.Method):
		problem.Write(w, problem.Method, http.StatusMethodNotAllowed, r.Method+" is not passed on")
	case slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method):
		h.passOn(w, r, to)
	default:
		h.call(w, r, to, rest)
	}
}

// call is a request that may have an effect.
func (h *Handler) call(w http.ResponseWriter, r *http.Request, to *route, rest string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, to.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		problem.Write(w, problem.TooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the limit is %d bytes", to.MaxBody))
		return
	case err != nil:
		problem.Write(w, problem.Body, http.StatusBadRequest, "")
		return
	}
	path, _ := url.PathUnescape(rest) // the server has unescaped it before
	key, kind, err := to.keyOf(r, path, body)
	if err != nil {
		problem.Write(w, kind, http.StatusBadRequest, err.Error())
		return
	}
	s := &sender{
		asker: to.asker, id: to.id, transport: to.transport, clock: h.config.Clock,
		posted: func() { h.config.Watch.Posted(to.Scope) },
		method: r.Method, url: target(to.Base, rest, r.URL.RawQuery), header: endToEnd(r.Header), body: body,
	}
	s.header.Del(headerKey)
	request := fence.Request{
		Key: key, Owner: h.config.Owner,
		Fingerprint: fence.Fingerprint(r.Method, rest+"?"+r.URL.RawQuery, body), // not the base URL: it may move
	}
	began := h.config.Clock.Now()
	clock := &waiting{Clock: h.config.Clock}
	answer := fence.Run(r.Context(), fence.NewCall(&to.Provider.Provider, request, began), to.store, s, clock)
	if clock.waited > 0 {
		h.config.Watch.Waited(to.Scope, clock.waited)
	}
	if answer.Unsaved != nil {
		h.finisher.later(to.store, *answer.Unsaved)
	}
	if answer.Conflict != "" {
		h.config.Log.Error("a provider contradicts the fence's row", "provider", to.Scope, "key", key.ID, "conflict", answer.Conflict)
	}
	h.config.Log.Info("call", "provider", to.Scope, "key", key.ID, "answer", answer.Type, "status", answer.Status,
		"replayed", answer.Replayed, "seconds", h.config.Clock.Now().Sub(began).Seconds())
	h.config.Watch.Answered(to.Scope, answer)
	writeAnswer(w, answer)
}

// waiting adds up how long one call slept: calls sleep only for other copies.
type waiting struct {
	fence.Clock
	waited time.Duration
}

func (w *waiting) Sleep(ctx context.Context, d time.Duration) error {
	began := w.Now()
	err := w.Clock.Sleep(ctx, d)
	w.waited += w.Now().Sub(began)
	return err
}

// split takes the provider's name off the path. A path that leaves the
// provider's own is refused, however it is spelled.
func split(u *url.URL) (scope, rest string, err error) {
	for segment := range strings.SplitSeq(strings.ReplaceAll(u.Path, `\`, "/"), "/") {
		if segment == "." || segment == ".." {
			return "", "", errors.New("the path holds . or .. as a segment")
		}
	}
	escaped, _ := strings.CutPrefix(u.EscapedPath(), "/")
	scope, _, _ = strings.Cut(escaped, "/")
	return scope, restOf(u, scope), nil
}

// restOf is the escaped path behind the provider's name.
func restOf(u *url.URL, scope string) string {
	return strings.TrimPrefix(u.EscapedPath(), "/"+scope)
}

// target is the provider's URL for the rest of a path.
func target(base *url.URL, rest, query string) *url.URL {
	u := *base
	escaped := strings.TrimSuffix(base.EscapedPath(), "/") + rest
	if escaped == "" {
		escaped = "/"
	}
	path, err := url.PathUnescape(escaped)
	if err != nil { // it was unescaped before
		path = escaped
	}
	u.Path, u.RawPath, u.RawQuery = path, escaped, query
	return &u
}
