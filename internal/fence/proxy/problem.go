// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// writeAnswer tells the app how its call ended.
func writeAnswer(w http.ResponseWriter, a fence.Answer) {
	if a.Type == fence.AnswerEffect || a.Type == fence.AnswerRefused {
		writeResponse(w, a)
		return
	}
	problem.RetryAfter(w, a.RetryAfter)
	problem.Write(w, string(a.Type), a.Status, "")
}
