// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// StatementCounts holds each path to the number of statements it may cost, as
// counted by the server.
func StatementCounts(t *testing.T, o Opened, count func() int) {
	t.Helper()
	p := patientProvider()
	never := newStub(func(int) bool { return false })
	ask := func(id string, provider *stub) fence.Answer {
		call := fence.NewCall(p, fence.Request{Key: fence.Key{Scope: scope, ID: id}}, time.Now())
		return fence.Run(t.Context(), call, o.Store, provider, fence.SystemClock{})
	}
	ask("warm", never)
	always := newStub(func(int) bool { return true })
	o.put(t, situation{state: fence.Released, mine: true}.row(fence.Key{Scope: scope, ID: "released"}, time.Now().UTC()))
	o.put(t, situation{state: fence.NeedsReview, mine: true}.row(fence.Key{Scope: scope, ID: "parked"}, time.Now().UTC()))
	for _, c := range []struct {
		path, id string
		provider *stub
		want     int
		answer   fence.AnswerType
	}{
		{"a first call", "one", never, 2, fence.AnswerEffect},
		{"a replay", "one", never, 1, fence.AnswerEffect},
		{"a timeout", "two", always, 2, fence.AnswerUnknown},
		{"a lookup that finds the effect", "two", never, 2, fence.AnswerEffect},
		{"a call of a released key", "released", never, 3, fence.AnswerEffect},
		{"a parked key", "parked", never, 1, fence.AnswerReview},
	} {
		if c.path == "a lookup that finds the effect" {
			c.provider = always
		}
		before := count()
		answer := ask(c.id, c.provider)
		if n := count() - before; n != c.want || answer.Type != c.answer {
			t.Errorf("%s: %d statements, want %d (answer %s)", c.path, n, c.want, answer.Type)
		}
	}
}
