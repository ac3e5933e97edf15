// SPDX-License-Identifier: Apache-2.0

// Package problem is how the fence says no over HTTP (RFC 9457). The types are
// stable: apps compare them.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

const prefix = "urn:queueworker:fence:"

// Problems of the request itself; the others are fence.AnswerType.
const (
	UnknownProvider = "provider-unknown"
	Path            = "path-invalid"
	Method          = "method-not-allowed"
	NoKey           = "key-missing"
	Key             = "key-invalid"
	TooLarge        = "body-too-large"
	Body            = "body-unreadable"
	Request         = "request-invalid"
	UnknownClaim    = "claim-unknown"
	Lost            = "claim-lost"
	NotQuiet        = "claim-not-quiet"
)

// titles say what the app may do. Only those that name a bug of the app mean
// that another try is of no use.
var titles = map[string]string{
	string(fence.AnswerBusy):             "Another copy of this call is at work. Try again later.",
	string(fence.AnswerUnknown):          "Nobody knows yet whether this call had an effect. Try again later with the same key; it was not refused.",
	string(fence.AnswerReview):           "A person must decide whether this call had an effect. Do not try again, and make no new key.",
	string(fence.AnswerNotSent):          "The provider was not reached. Nothing happened. Try again later.",
	string(fence.AnswerStoreUnavailable): "The fence's database did not answer. Nothing happened by this call. Try again later with the same key.",
	string(fence.AnswerProviderBusy):     "The provider did not act. Try again later.",
	string(fence.AnswerPayloadDiffers):   "The key was used for something else before. The same operation must send the same bytes.",
	UnknownProvider:                      "No such provider is declared.",
	Path:                                 "The path cannot be passed on.",
	Method:                               "The method cannot be passed on.",
	NoKey:                                "A call that may have an effect needs a key.",
	Key:                                  "The key cannot be used.",
	TooLarge:                             "The body is too large.",
	Body:                                 "The body could not be read. Nothing was sent.",
	Request:                              "The request cannot be understood.",
	UnknownClaim:                         "Nobody holds this key.",
	Lost:                                 "The key is no longer this attempt's, so it cannot say this of it.",
	NotQuiet:                             "The holder that vanished could still act when this was looked up. Claim again later, and look again.",
}

// document is what is written.
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// Write answers with a problem.
func Write(w http.ResponseWriter, kind string, status int, detail string) {
	text, err := json.Marshal(document{prefix + kind, titles[kind], status, detail})
	if err != nil {
		text = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// RetryAfter tells when another try makes sense, in whole seconds. It comes
// before Write.
func RetryAfter(w http.ResponseWriter, after time.Duration) {
	if after > 0 {
		seconds := (after + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
}
