// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// endRequest is the body of complete, release and unknown. Result and
// providerId belong to complete, reason to the others.
type endRequest struct {
	Scope      string          `json:"scope"`
	Token      string          `json:"token"`
	Result     json.RawMessage `json:"result"`
	ProviderID string          `json:"providerId"`
	Reason     string          `json:"reason"`
}

// endAnswer tells what the row says now.
type endAnswer struct {
	State string `json:"state"`
}

type ending func(*fence.Claims, context.Context, fence.Store, fence.Ending) fence.EndAnswer

func (h *Handler) end(name string, as ending) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from endRequest
		if !h.read(w, r, &from) {
			return
		}
		c := h.scope(w, from.Scope)
		if c == nil {
			return
		}
		e, err := h.ending(r.PathValue("key"), from)
		if err != nil {
			problem.Write(w, problem.Request, http.StatusBadRequest, err.Error())
			return
		}
		answer := as(c, context.WithoutCancel(r.Context()), h.config.Store, e)
		h.config.Watch.Ended(from.Scope, name, string(answer.Kind), answer.Conflict != "")
		if answer.Conflict != "" {
			h.config.Log.Error("a completion contradicts the fence's row", "scope", from.Scope, "key", e.Key.ID, "conflict", answer.Conflict)
		}
		h.config.Log.Info("claim ended", "scope", from.Scope, "key", e.Key.ID, "ending", name, "answer", answer.Kind)
		h.writeEnd(w, answer)
	}
}

func (h *Handler) ending(id string, from endRequest) (fence.Ending, error) {
	e := fence.Ending{Key: fence.Key{Scope: from.Scope, ID: id}, Owner: h.config.Owner, Reason: from.Reason}
	if len(from.Result) > MaxResult {
		return e, fmt.Errorf("result has %d bytes, at most %d are stored", len(from.Result), MaxResult)
	}
	e.Response = stored(from.Result, from.ProviderID)
	if err := parseToken(from.Token, &e); err != nil {
		return e, fmt.Errorf("token: %w: send the one that came with the claim", err)
	}
	return e, e.Key.Validate()
}

func (h *Handler) writeEnd(w http.ResponseWriter, a fence.EndAnswer) {
	switch a.Kind {
	case fence.EndSettled:
		write(w, endAnswer{a.State.String()})
	case fence.EndDone:
		write(w, struct {
			endAnswer
			claimAnswer
		}{endAnswer{a.State.String()}, done(a.Response)})
	case fence.EndNoClaim:
		problem.Write(w, problem.UnknownClaim, http.StatusNotFound, "")
	case fence.EndNotQuiet:
		problem.RetryAfter(w, max(a.Row.QuietUntil.Sub(a.Row.ReadAt), time.Second))
		problem.Write(w, problem.NotQuiet, http.StatusConflict, "")
	case fence.EndLost:
		problem.Write(w, problem.Lost, http.StatusConflict, "the key is "+a.State.String())
	default:
		noStore(w)
	}
}
