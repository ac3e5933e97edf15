// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// AnswerType is the stable last part of a problem type, or one of the two
// kinds of a real answer.
type AnswerType string

// What an app can be told.
const (
	AnswerEffect           AnswerType = "effect"            // the provider's 2xx
	AnswerRefused          AnswerType = "refused"           // the provider's final 4xx, stored
	AnswerBusy             AnswerType = "busy"              // another copy is at it
	AnswerUnknown          AnswerType = "outcome-unknown"   // nobody knows yet
	AnswerReview           AnswerType = "needs-review"      // a person must decide
	AnswerNotSent          AnswerType = "not-sent"          // no effect by this call
	AnswerStoreUnavailable AnswerType = "store-unavailable" // no effect by this call
	AnswerProviderBusy     AnswerType = "provider-busy"     // no effect by this call
	AnswerPayloadDiffers   AnswerType = "payload-differs"   // the key was used for something else
)

// Answer is the end of a call.
type Answer struct {
	Type       AnswerType
	Status     int
	RetryAfter time.Duration // 0: no Retry-After
	Response   *Response     // AnswerEffect and AnswerRefused
	Replayed   bool          // the response comes from the row, not from this call's request
	Unsaved    *Statement    // what the database did not take; it may be tried again, as it is, at any time
	Conflict   string        // an effect that contradicts the row; to be logged and alerted on
}

const leastRetryAfter = time.Second

func answerLater(kind AnswerType, status int, after time.Duration) Answer {
	return Answer{Type: kind, Status: status, RetryAfter: max(after, leastRetryAfter)}
}

func answerBusy(row Row) Answer {
	return answerLater(AnswerBusy, 409, row.LeaseUntil.Sub(row.ReadAt))
}

func answerUnknown(row Row) Answer {
	return answerLater(AnswerUnknown, 409, row.QuietUntil.Sub(row.ReadAt))
}

func answerReview() Answer { return Answer{Type: AnswerReview, Status: 409} }

func answerStoreUnavailable() Answer {
	return answerLater(AnswerStoreUnavailable, 503, leastRetryAfter)
}

func answerStored(outcome Outcome, response *Response, replayed bool) Answer {
	a := Answer{Type: AnswerEffect, Response: response, Replayed: replayed}
	if outcome == Refused {
		a.Type = AnswerRefused
	}
	if response != nil {
		a.Status = response.Status
	}
	return a
}
