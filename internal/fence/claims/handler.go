// SPDX-License-Identifier: Apache-2.0

// Package claims is the fence's second door: an app claims a key for an effect
// that is no call of a provider, does the work itself, and says how it ended.
package claims

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	strictjson "sigs.k8s.io/json"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// Config is what a handler works with.
type Config struct {
	Claims []fence.Claims
	Store  fence.Store
	Clock  fence.Clock
	Owner  string       // the pod, for people
	Log    *slog.Logger // gets no payload and no result
	Watch  Watch
}

// Watch is told what happens, for metrics.
type Watch interface {
	Claimed(scope, answer string)
	Ended(scope, ending, answer string, conflict bool)
}

// Handler serves /v1/claims.
type Handler struct {
	config Config
	scopes map[string]*fence.Claims
	mux    *http.ServeMux
}

// MaxBody is the longest request in bytes, and MaxResult the longest result.
const (
	MaxBody   = 1 << 20
	MaxResult = 256 << 10
)

// New takes declarations that were validated.
func New(c Config) *Handler {
	h := &Handler{config: c, scopes: map[string]*fence.Claims{}, mux: http.NewServeMux()}
	for i := range c.Claims {
		h.scopes[c.Claims[i].Scope] = &c.Claims[i]
	}
	h.mux.HandleFunc("POST /v1/claims", h.claim)
	h.mux.HandleFunc("POST /v1/claims/{key}/complete", h.end("complete", (*fence.Claims).Complete))
	h.mux.HandleFunc("POST /v1/claims/{key}/release", h.end("release", (*fence.Claims).Release))
	h.mux.HandleFunc("POST /v1/claims/{key}/unknown", h.end("unknown", (*fence.Claims).Unknown))
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// claimRequest is the body of POST /v1/claims.
type claimRequest struct {
	Scope   string          `json:"scope"`
	Key     string          `json:"key"`
	Nonce   string          `json:"nonce"`
	Payload json.RawMessage `json:"payload"`
}

// claimAnswer is what granted, done and check are told with.
type claimAnswer struct {
	Answer          string          `json:"answer"`
	Token           string          `json:"token,omitempty"`
	DoWithinSeconds float64         `json:"doWithinSeconds,omitempty"`
	Result          json.RawMessage `json:"result,omitempty"`
	ProviderID      string          `json:"providerId,omitempty"`
}

func (h *Handler) claim(w http.ResponseWriter, r *http.Request) {
	var from claimRequest
	if !h.read(w, r, &from) {
		return
	}
	c := h.scope(w, from.Scope)
	if c == nil {
		return
	}
	request := fence.ClaimRequest{
		Key: fence.Key{Scope: from.Scope, ID: from.Key}, Owner: h.config.Owner, Nonce: from.Nonce,
		Fingerprint: fence.Fingerprint("CLAIM", from.Scope, compact(from.Payload)),
	}
	if err := request.Validate(); err != nil {
		problem.Write(w, problem.Request, http.StatusBadRequest, err.Error())
		return
	}
	began := h.config.Clock.Now()
	answer := c.Claim(context.WithoutCancel(r.Context()), h.config.Store, request)
	h.config.Watch.Claimed(from.Scope, string(answer.Kind))
	h.config.Log.Info("claim", "scope", from.Scope, "key", from.Key, "answer", answer.Kind, "seconds", h.config.Clock.Now().Sub(began).Seconds())
	writeClaim(w, answer, h.config.Clock.Now().Sub(began))
}

// writeClaim: what took time here is not the holder's any more.
func writeClaim(w http.ResponseWriter, a fence.ClaimAnswer, took time.Duration) {
	switch a.Kind {
	case fence.ClaimGranted:
		left := max(a.DoWithin-took, 0).Truncate(time.Millisecond)
		write(w, claimAnswer{Answer: string(a.Kind), Token: a.Token.String(), DoWithinSeconds: left.Seconds()})
	case fence.ClaimCheck:
		write(w, claimAnswer{Answer: string(a.Kind), Token: checkToken(a)})
	case fence.ClaimDone:
		write(w, done(a.Response))
	case fence.ClaimBusy:
		problem.RetryAfter(w, a.RetryAfter)
		problem.Write(w, string(fence.AnswerBusy), http.StatusConflict, "")
	case fence.ClaimReview:
		problem.Write(w, string(fence.AnswerReview), http.StatusConflict, "")
	case fence.ClaimDiffers:
		problem.Write(w, string(fence.AnswerPayloadDiffers), http.StatusUnprocessableEntity, "")
	default:
		noStore(w)
	}
}

func noStore(w http.ResponseWriter) {
	problem.RetryAfter(w, time.Second)
	problem.Write(w, string(fence.AnswerStoreUnavailable), http.StatusServiceUnavailable, "")
}

func done(r *fence.Response) claimAnswer {
	a := claimAnswer{Answer: string(fence.ClaimDone)}
	if r != nil {
		a.ProviderID = r.ProviderID
		if json.Valid(r.Body) { // else retention took it away
			a.Result = r.Body
		}
	}
	return a
}

func write(w http.ResponseWriter, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		problem.Write(w, problem.Request, http.StatusInternalServerError, "the answer cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// read takes one JSON object without unknown or repeated fields.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, to any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		problem.Write(w, problem.TooLarge, http.StatusRequestEntityTooLarge, fmt.Sprintf("the limit is %d bytes", MaxBody))
		return false
	case err != nil:
		problem.Write(w, problem.Body, http.StatusBadRequest, "")
		return false
	}
	unknown, err := strictjson.UnmarshalStrict(body, to)
	if err = errors.Join(append(unknown, err)...); err != nil {
		problem.Write(w, problem.Request, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

// scope finds a declaration; where there is none it answers and returns nil.
func (h *Handler) scope(w http.ResponseWriter, name string) *fence.Claims {
	c := h.scopes[name]
	if c == nil {
		problem.Write(w, problem.UnknownProvider, http.StatusNotFound, fmt.Sprintf("the scope is %q; it must be a name under claims in the configuration", name))
	}
	return c
}

// compact makes spaces between JSON's parts mean nothing.
func compact(payload json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, payload) != nil {
		return payload
	}
	return b.Bytes()
}

// A token's beginning tells that of a vanished holder from one's own, and
// whether that holder could still act when the token was given out.
const (
	checkPrefix = "check-"
	earlyPrefix = "early-"
)

func checkToken(a fence.ClaimAnswer) string {
	text := checkPrefix + a.Token.String()
	if a.Early {
		return earlyPrefix + text
	}
	return text
}

func parseToken(text string, e *fence.Ending) (err error) {
	text, e.Early = strings.CutPrefix(text, earlyPrefix)
	text, e.Checked = strings.CutPrefix(text, checkPrefix)
	e.Token, err = fence.ParseToken(text)
	if e.Early && !e.Checked {
		return fmt.Errorf("%q is no token", earlyPrefix+text)
	}
	return err
}

// stored is a completion as the row keeps it.
func stored(result json.RawMessage, id string) *fence.Response {
	if result == nil {
		result = json.RawMessage("null")
	}
	return &fence.Response{Status: http.StatusOK, Body: result, BodyDigest: sha256.Sum256(result), ProviderID: id}
}
