// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// Limits of one answer, in keys.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

const storeLimit = 5 * time.Second

// Handler serves GET /v1/review?scope=…&limit=…, oldest first.
func Handler(from fence.Reviewer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := defaultLimit
		if text := r.FormValue("limit"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxLimit {
				problem.Write(w, problem.Request, http.StatusBadRequest, "limit is "+strconv.Quote(text)+": must be from 1 to "+strconv.Itoa(maxLimit))
				return
			}
			limit = n
		}
		ctx, cancel := context.WithTimeout(r.Context(), storeLimit)
		defer cancel()
		rows, err := from.Unsettled(ctx, fence.Unsettled{Scope: r.FormValue("scope"), Limit: limit})
		if err != nil {
			problem.RetryAfter(w, time.Second)
			problem.Write(w, string(fence.AnswerStoreUnavailable), http.StatusServiceUnavailable, "")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			Keys []Entry `json:"keys"`
		}{EntriesOf(rows)})
	})
}
