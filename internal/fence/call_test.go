// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

func provider(change ...func(*fence.Provider)) *fence.Provider {
	p := &fence.Provider{
		Scope: "stripe", MaxResends: 3, DidNotAct: []int{401, 429, 503}, Final: []int{403},
		Times: fence.Times{
			SendWindow: time.Second, ProviderTimeout: 18 * time.Second, StatementBudget: time.Second,
			ClientLimit: 20 * time.Second, InFlight: 300 * time.Second, KeyLife: 24 * time.Hour,
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// drive feeds events to a call and returns its last step. "now" does not move.
func drive(p *fence.Provider, events ...fence.Event) (fence.Step, fence.Call) {
	call := fence.NewCall(p, fence.Request{Key: fence.Key{Scope: "stripe", ID: "k"}, Owner: "pod-1"}, epoch)
	step := call.Next(fence.Event{Kind: fence.EventBegin}, epoch, token)
	for _, e := range events {
		step = call.Next(e, epoch, token)
	}
	return step, call
}

var tokens byte

func token() fence.Token { tokens++; return fence.Token{tokens, 1} }

// granted makes the claim's own token the row's.
func granted(p *fence.Provider) (fence.Call, fence.Row) {
	step, call := drive(p)
	row, _ := fence.Apply(fence.Row{}, step.Statement, epoch)
	row.ReadAt = epoch
	return call, row
}

func replied(status int) fence.Event {
	return fence.Event{Kind: fence.EventReplied, Reply: fence.Reply{Response: fence.Response{Status: status}}}
}

// TestMeaningOfReplies: what each reply writes and tells, on a first attempt
// and on one that was sent again.
func TestMeaningOfReplies(t *testing.T) {
	const effect, refused, notSent, busy, unknown = fence.AnswerEffect, fence.AnswerRefused, fence.AnswerNotSent, fence.AnswerProviderBusy, fence.AnswerUnknown
	for _, c := range []struct {
		name         string
		event        fence.Event
		first, again string // statement and answer
	}{
		{"not sent", fence.Event{Kind: fence.EventNotSent}, say(fence.OpRelease, notSent, 502), say(fence.OpUnknown, unknown, 409)},
		{"timeout", fence.Event{Kind: fence.EventBroken}, say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"200", replied(200), say(fence.OpEffect, effect, 200), say(fence.OpEffect, effect, 200)},
		{"299", replied(299), say(fence.OpEffect, effect, 299), say(fence.OpEffect, effect, 299)},
		{"300", replied(300), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"199", replied(199), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"422", replied(422), say(fence.OpRefuse, refused, 422), say(fence.OpRefuse, refused, 422)},
		{"403 declared final", replied(403), say(fence.OpRefuse, refused, 403), say(fence.OpRefuse, refused, 403)},
		{"401 declared without effect", replied(401), say(fence.OpRelease, busy, 503), say(fence.OpUnknown, unknown, 409)},
		{"407 not declared", replied(407), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"409", replied(409), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"408", replied(408), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"500", replied(500), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"503 without Retry-After", replied(503), say(fence.OpUnknown, unknown, 504), say(fence.OpUnknown, unknown, 504)},
		{"503 with Retry-After", fence.Event{Kind: fence.EventReplied, Reply: fence.Reply{Response: fence.Response{Status: 503}, HasRetry: true}},
			say(fence.OpRelease, busy, 503), say(fence.OpUnknown, unknown, 409)},
	} {
		for _, resend := range []bool{false, true} {
			want := c.first
			if resend {
				want = c.again
			}
			if got := outcomeOf(t, c.event, resend); got != want {
				t.Errorf("%s, sent again %t: %s, want %s", c.name, resend, got, want)
			}
		}
	}
}

func say(op fence.Op, answer fence.AnswerType, status int) string {
	return fmt.Sprintf("%s then %d %s", op, status, answer)
}

func outcomeOf(t *testing.T, e fence.Event, resend bool) string {
	t.Helper()
	call, row := granted(provider())
	granting := fence.Event{Kind: fence.EventRow, Row: row}
	if resend {
		row.State, row.Token = fence.Unknown, fence.Token{99}
		if step := call.Next(fence.Event{Kind: fence.EventRow, Row: row}, epoch, token); step.Statement.Op != fence.OpResend {
			t.Fatalf("%+v", step)
		}
		granting = fence.Event{Kind: fence.EventApplied}
	}
	if step := call.Next(granting, epoch, token); step.Do != fence.DoSend || step.Key != "k" ||
		!step.SendBy.Equal(epoch.Add(time.Second)) || !step.GiveUpAt.Equal(epoch.Add(19*time.Second)) {
		t.Fatalf("%+v", step)
	}
	write := call.Next(e, epoch, token)
	answer := call.Next(fence.Event{Kind: fence.EventApplied}, epoch, token).Answer
	return say(write.Statement.Op, answer.Type, answer.Status)
}

// TestAnswersFromTheRow: what a new copy is told.
func TestAnswersFromTheRow(t *testing.T) {
	row := fence.Row{State: fence.Claimed, Token: fence.Token{99}, LeaseUntil: epoch.Add(7 * time.Second), QuietUntil: epoch.Add(90 * time.Second), FirstSentAt: epoch, ReadAt: epoch}
	of := func(change func(*fence.Row)) fence.Row { r := row; change(&r); return r }
	tight := provider()
	loose := provider(func(p *fence.Provider) { p.Times.ClientLimit = 60 * time.Second })
	stored := &fence.Response{Status: 422}
	for name, c := range map[string]struct {
		p    *fence.Provider
		row  fence.Row
		want string
	}{
		"busy, no time":    {tight, row, "answer 409 busy, 7s"},
		"busy, time":       {loose, row, "wait 250ms"},
		"lease about over": {loose, of(func(r *fence.Row) { r.LeaseUntil = epoch.Add(time.Millisecond) }), "wait 2ms"},
		"lease over":       {tight, of(func(r *fence.Row) { r.LeaseUntil = epoch.Add(-1) }), "run expire"},
		"done":             {tight, of(func(r *fence.Row) { r.State, r.Outcome, r.Response = fence.Done, fence.Refused, stored }), "answer 422 refused replayed"},
		"review":           {tight, of(func(r *fence.Row) { r.State = fence.NeedsReview }), "answer 409 needs-review"},
		"released":         {tight, of(func(r *fence.Row) { r.State = fence.Released }), "run reclaim"},
		"other payload":    {tight, of(func(r *fence.Row) { r.State, r.Fingerprint = fence.Done, fence.Digest{1} }), "answer 422 payload-differs"},
		"unknown":          {tight, of(func(r *fence.Row) { r.State = fence.Unknown }), "run resend"},
		"resends used up":  {tight, of(func(r *fence.Row) { r.State, r.Resends = fence.Unknown, 3 }), "run park"},
		"key about to end": {tight, of(func(r *fence.Row) { r.State, r.FirstSentAt = fence.Unknown, epoch.Add(301*time.Second-24*time.Hour) }), "run park"},
		"key just alive":   {tight, of(func(r *fence.Row) { r.State, r.FirstSentAt = fence.Unknown, epoch.Add(302*time.Second-24*time.Hour) }), "run resend"},
	} {
		step, _ := drive(c.p, fence.Event{Kind: fence.EventRow, Row: c.row})
		if got := describe(step); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func describe(s fence.Step) string {
	switch s.Do {
	case fence.DoRun:
		return "run " + s.Statement.Op.String()
	case fence.DoWait:
		return "wait " + s.Wait.String()
	case fence.DoAnswer:
		text := fmt.Sprintf("answer %d %s", s.Answer.Status, s.Answer.Type)
		if s.Answer.RetryAfter > 0 {
			text += ", " + s.Answer.RetryAfter.String()
		}
		if s.Answer.Replayed {
			text += " replayed"
		}
		return text
	}
	return fmt.Sprint("do ", s.Do)
}

// TestUnsavedOutcomes: what is told when the outcome cannot be written.
func TestUnsavedOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		event fence.Event
		want  string
	}{
		"an effect is true all the same":      {replied(201), "answer 201 effect"},
		"a refusal is not final before":       {replied(422), "answer 409 outcome-unknown, 5m1s"},
		"nothing happened by this call":       {fence.Event{Kind: fence.EventNotSent}, "answer 503 store-unavailable, 1s"},
		"nobody knows, written down or not":   {fence.Event{Kind: fence.EventBroken}, "answer 504 outcome-unknown, 5m1s"},
		"the provider's word that it did not": {replied(429), "answer 503 store-unavailable, 1s"},
	} {
		call, row := granted(provider())
		call.Next(fence.Event{Kind: fence.EventRow, Row: row}, epoch, token)
		step := call.Next(c.event, epoch, token)
		first := step.Statement
		for range 2 {
			if step = call.Next(fence.Event{Kind: fence.EventStoreFailed}, epoch, token); step.Do != fence.DoRun || step.Statement.Op != first.Op || step.Statement.Token != first.Token {
				t.Fatalf("%s: not the same statement again: %+v", name, step)
			}
		}
		if got := describe(call.Next(fence.Event{Kind: fence.EventStoreFailed}, epoch, token)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestConflictsAreTold: an effect that contradicts the row.
func TestConflictsAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		row  func(*fence.Row)
		want string
	}{
		"refused before": {func(r *fence.Row) { r.State, r.Outcome = fence.Done, fence.Refused }, "although the key was refused"},
		"another effect": {func(r *fence.Row) {
			r.State, r.Outcome, r.Response = fence.Done, fence.Effect, &fence.Response{ProviderID: "ch_1"}
		}, "two effects under one key: ch_1 and ch_2"},
		"the same effect": {func(r *fence.Row) {
			r.State, r.Outcome, r.Response = fence.Done, fence.Effect, &fence.Response{ProviderID: "ch_2"}
		}, ""},
		"the row is gone":   {func(r *fence.Row) { r.State = fence.NoRow }, "could not be written"},
		"no id to compare":  {func(r *fence.Row) { r.State, r.Outcome, r.Response = fence.Done, fence.Effect, &fence.Response{} }, ""},
		"still not settled": {func(r *fence.Row) { r.State = fence.Unknown }, "could not be written"},
	} {
		call, row := granted(provider())
		call.Next(fence.Event{Kind: fence.EventRow, Row: row}, epoch, token)
		reply := replied(201)
		reply.Reply.Response.ProviderID = "ch_2"
		call.Next(reply, epoch, token)
		call.Next(fence.Event{Kind: fence.EventNotApplied}, epoch, token)
		c.row(&row)
		answer := call.Next(fence.Event{Kind: fence.EventRow, Row: row}, epoch, token).Answer
		if answer.Type != fence.AnswerEffect || (c.want == "") != (answer.Conflict == "") || !strings.Contains(answer.Conflict, c.want) {
			t.Errorf("%s: %+v, want conflict %q", name, answer, c.want)
		}
	}
}

func TestKeysAndFingerprints(t *testing.T) {
	for id, good := range map[string]bool{
		"order-1/charge": true, "": false, "a\nb": false, "a\x00b": false, "\xff": false,
		strings.Repeat("k", 255): true, strings.Repeat("k", 256): false, strings.Repeat("é", 128): false,
	} {
		if err := (fence.Key{Scope: "s", ID: id}).Validate(); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
	if fence.Fingerprint("POST", "/a", []byte("b")) == fence.Fingerprint("POST", "/", []byte("ab")) {
		t.Error("a part flows into the next")
	}
	if (fence.Row{Key: fence.Key{ID: "k"}, Generation: 2}).SentKey() != "k~2" {
		t.Error("the generation is not part of the key that is sent")
	}
}

func TestDeclarationsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*fence.Provider){
		"scope is empty":                         func(p *fence.Provider) { p.Scope = "" },
		"send window is 0s":                      func(p *fence.Provider) { p.Times.SendWindow = 0 },
		"the client gives up after 19s":          func(p *fence.Provider) { p.Times.ClientLimit = 19 * time.Second },
		"no key could ever be sent again":        func(p *fence.Provider) { p.Times.KeyLife = 301 * time.Second },
		"limit of resends to at least 1":         func(p *fence.Provider) { p.MaxResends = 0 },
		"status 409 cannot be a final refusal":   func(p *fence.Provider) { p.Final = []int{409} },
		"status 500 cannot promise":              func(p *fence.Provider) { p.DidNotAct = []int{500} },
		"declared both final and without effect": func(p *fence.Provider) { p.Final = []int{401} },
		"cannot be negative":                     func(p *fence.Provider) { p.ReviewAfter = -1 },
	} {
		if err := provider(change).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not hold %q", err, want)
		}
	}
	if err := provider().Validate(); err != nil {
		t.Error(err)
	}
}
