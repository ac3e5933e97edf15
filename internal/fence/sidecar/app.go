// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"net/http"
	"strings"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/claims"
	"github.com/queueworker/operator/internal/fence/proxy"
	"github.com/queueworker/operator/internal/fence/review"
)

// app is what the app sees on loopback: providers by their names, and the
// fence's own paths under a name that no provider may have.
func (s *Sidecar) app(store fence.Store, from fence.Reviewer, provider http.Handler) http.Handler {
	own := http.NewServeMux()
	claim := claims.New(claims.Config{
		Claims: s.Config.DeclaredClaims(), Store: store, Clock: s.Clock, Owner: s.Owner, Log: s.Log, Watch: s.metric,
	})
	own.Handle("/v1/claims", claim)
	own.Handle("/v1/claims/", claim)
	own.Handle("GET /v1/review", review.Handler(from))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/"+proxy.ReservedName+"/") {
			own.ServeHTTP(w, r)
			return
		}
		provider.ServeHTTP(w, r)
	})
}
