// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"log/slog"
	"net/http"
	"net/http/httputil"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// passOn is for a request without an effect.
func (h *Handler) passOn(w http.ResponseWriter, r *http.Request, to *route) {
	for _, name := range overrides {
		if r.Header.Get(name) != "" {
			problem.Write(w, problem.Method, http.StatusMethodNotAllowed,
				"the header "+name+" asks for another method than "+r.Method+": use that method, with a key")
			return
		}
	}
	h.config.Watch.Passed(to.Scope)
	to.pass.ServeHTTP(w, r)
}

// overrides are headers by which some servers take a request for another one.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// passing hands requests without an effect to the provider as they are. It
// opens no tunnel: nobody would fence what goes through it.
func passing(p *Provider, log *slog.Logger) *httputil.ReverseProxy {
	transport := newPlainTransport(p.TLS)
	return &httputil.ReverseProxy{
		Transport: transport, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = target(p.Base, restOf(r.In.URL, p.Scope), r.In.URL.RawQuery), p.Base.Host
			r.Out.Header.Del("Connection")
			r.Out.Header.Del("Upgrade") // a switch that was not asked for is an error
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.Warn("a safe request failed", "provider", p.Scope, "error", reasonOf(r.Context(), err))
			writeAnswer(w, fence.Answer{Type: fence.AnswerNotSent, Status: http.StatusBadGateway})
		},
	}
}
