// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"time"

	"github.com/queueworker/operator/internal/fence"
)

type changes = map[fence.Op]func(*fence.Transition)

func noToken(t *fence.Transition)   { t.Guard.Token = false }
func noQuiet(t *fence.Transition)   { t.Guard.Quiet = false }
func noKeyLife(t *fence.Transition) { t.Guard.KeyAlive = false }
func anyDoubt(t *fence.Transition)  { t.Guard.MaxDoubt = fence.DoubtAlive }
func anyNotDone(t *fence.Transition) {
	t.Guard.From |= fence.StatesOf(allStates[:]...) &^ fence.StatesOf(fence.Done)
}
func fromClaimed(t *fence.Transition) { t.Guard.From |= fence.StatesOf(fence.Claimed) }
func fromReview(t *fence.Transition)  { t.Guard.From |= fence.StatesOf(fence.NeedsReview) }

var allStates = [...]fence.State{fence.Claimed, fence.Done, fence.Released, fence.Unknown, fence.NeedsReview}

// onEvent makes a handler hear one kind of event as another.
func onEvent(kind fence.EventKind, change func(a *actor, e *fence.Event)) func(*world, *actor, *fence.Event) {
	return func(_ *world, a *actor, e *fence.Event) {
		if e.Kind == kind && a.sweep == nil {
			change(a, e)
		}
	}
}

// heardAs makes a handler read one status as another, or as "not sent".
func heardAs(status, other int) func(*world, *actor, *fence.Event) {
	return onEvent(fence.EventReplied, func(_ *actor, e *fence.Event) {
		switch {
		case e.Reply.Response.Status != status:
		case other == 0:
			*e = fence.Event{Kind: fence.EventNotSent}
		default:
			e.Reply.Response.Status = other
		}
	})
}

// shortQuiet makes every grant forget a part of the quiet time.
func shortQuiet(by time.Duration) func(*world, *actor, fence.Step, fence.Event, *fence.Step) {
	return func(_ *world, _ *actor, _ fence.Step, _ fence.Event, s *fence.Step) {
		if s.Do == fence.DoRun && s.Statement.Quiet > 0 {
			s.Statement.Quiet -= by
		}
	}
}

// noDeadline lets a handler send however late it wakes up.
func noDeadline(_ *world, _ *actor, _ fence.Step, _ fence.Event, s *fence.Step) {
	if s.Do == fence.DoSend {
		s.SendBy = s.SendBy.Add(100 * tick)
	}
}

// afterStoreFailed replaces what follows an error of one statement.
func afterStoreFailed(op fence.Op, then func(a *actor) fence.Step) func(*world, *actor, fence.Step, fence.Event, *fence.Step) {
	return func(_ *world, a *actor, before fence.Step, e fence.Event, s *fence.Step) {
		if e.Kind == fence.EventStoreFailed && before.Do == fence.DoRun && before.Statement.Op == op {
			*s = then(a)
		}
	}
}

func ownStatement(a *actor, op fence.Op) fence.Step {
	return fence.Step{Do: fence.DoRun, Statement: fence.Statement{
		Op: op, Key: modelKey, Token: fence.View(&a.call).Me, By: fence.ByAttempt,
	}}
}

// mutants are known-wrong variants of the protocol. Each looks like a
// simplification somebody could make; each must break an invariant.
func mutants() []mutant {
	return append(append(mutantsOfCalls(), mutantsOfTime()...), mutantsOfRows()...)
}

func mutantsOfCalls() []mutant {
	return []mutant{
		{
			id: "1", wrong: "an expired lease is free", in: setupD(2, 0), spare: "I8",
			event: onEvent(fence.EventRow, func(_ *actor, e *fence.Event) {
				if e.Row.State == fence.Claimed && e.Row.LeaseOver() {
					e.Row.State = fence.Released
				}
			}),
			transition: changes{fence.OpReclaim: fromClaimed},
		},
		{
			id: "2", wrong: "a timeout is written as released", in: setupD(2, 0),
			event: onEvent(fence.EventBroken, func(_ *actor, e *fence.Event) { e.Kind = fence.EventNotSent }),
		},
		{id: "3", wrong: "the client is gone, so the call is cancelled and released", in: setupD(2, 0), clientGone: true},
		{id: "4", wrong: "a 5xx means retry later", in: setupD(2, 0), event: heardAs(500, 0)},
		{
			id: "5", wrong: "an error of the claim is taken as granted", in: setupD(2, 1),
			event: onEvent(fence.EventStoreFailed, func(a *actor, e *fence.Event) {
				if a.step.Do == fence.DoRun && a.step.Statement.Op == fence.OpClaim {
					row, _ := fence.Apply(fence.Row{}, a.step.Statement, epoch)
					*e = fence.Event{Kind: fence.EventRow, Row: row}
				}
			}),
		},
		{
			id: "6", wrong: "an error of the completion is undone by a release", in: setupD(2, 1),
			step: afterStoreFailed(fence.OpEffect, func(a *actor) fence.Step { return ownStatement(a, fence.OpRelease) }),
		},
		{
			id: "13A", wrong: "doubt is dropped: not connected on a resend means released", in: keyedOnly(kindA(), 0),
			transition: changes{fence.OpRelease: anyDoubt}, step: releaseDespiteDoubt,
		},
		{
			id: "13B", wrong: "doubt is dropped where errors are not stored", in: keyedOnly(kindB(), 422),
			transition: changes{fence.OpRelease: anyDoubt}, step: releaseDespiteDoubt,
		},
		{
			id: "14", wrong: "a refusal is final although an earlier request may be alive", in: keyedOnly(kindB(), 422),
			transition: changes{fence.OpRefuse: anyDoubt},
		},
		{id: "15", wrong: "a 401 is stored as the answer", in: keyedOnly(kindA(), 401), event: heardAs(401, 422)},
		{
			id: "16", wrong: "409 in progress is stored as a refusal, whatever the doubt", in: keyedOnly(kindB(), 409),
			event: heardAs(409, 422), transition: changes{fence.OpRefuse: anyDoubt},
		},
		{
			id: "17", wrong: "tells the app refused without having stored it", in: with(keyedOnly(kindB(), 422), func(s *setup) { s.faults = 1 }),
			step: afterStoreFailed(fence.OpRefuse, func(*actor) fence.Step {
				return fence.Step{Do: fence.DoAnswer, Answer: fence.Answer{Type: fence.AnswerRefused}}
			}),
		},
		{id: "28", wrong: "unknown is sent again by time, and the provider ignores keys", in: with(setupD(2, 0), func(s *setup) { s.declared.Times.KeyLife = ticks(6) })},
		{
			id: "29", wrong: "review is treated as free", in: setupD(2, 0), spare: "I8",
			event: onEvent(fence.EventRow, func(_ *actor, e *fence.Event) {
				if e.Row.State == fence.NeedsReview {
					e.Row.State = fence.Released
				}
			}),
			transition: changes{fence.OpReclaim: fromReview},
		},
		{id: "30", wrong: "the transport sends again by itself", in: setupD(1, 0), sendsTwice: true},
		{id: "31", wrong: "there is no sweeper", in: with(setupD(1, 0), func(s *setup) { s.sweeper = false })},
	}
}

// releaseDespiteDoubt frees the key although the attempt was a resend.
func releaseDespiteDoubt(_ *world, _ *actor, before fence.Step, e fence.Event, s *fence.Step) {
	nothing := e.Kind == fence.EventNotSent || e.Kind == fence.EventReplied && e.Reply.Response.Status == 401
	if before.Do == fence.DoSend && nothing && s.Do == fence.DoRun && s.Statement.Op == fence.OpUnknown {
		s.Statement.Op = fence.OpRelease
	}
}

func mutantsOfTime() []mutant {
	return []mutant{
		{id: "9S", wrong: "quiet lacks the send window", in: lookupOnly(), step: shortQuiet(tick)},
		{id: "9X", wrong: "quiet lacks the in-flight time", in: with(lookupOnly(), func(s *setup) {
			s.kind.inFlight, s.declared.Times.InFlight = 2, ticks(2)
		}), step: shortQuiet(2 * tick)},
		{id: "9V", wrong: "quiet lacks the lookup lag", in: with(lookupOnly(), func(s *setup) {
			s.kind.lag, s.declared.Times.LookupLag = 2, ticks(2)
		}), step: shortQuiet(2 * tick)},
		{id: "9", wrong: "quiet is the grant itself", in: lookupOnly(), step: shortQuiet(3 * tick)},
		{
			id: "10", wrong: "a lookup counts as quiet when its answer comes", in: lookupOnly(),
			event: func(w *world, a *actor, e *fence.Event) {
				if e.Kind == fence.EventLookedUp && a.sweep == nil {
					fence.SetBeganQuiet(&a.call, w.read().Row.Quiet())
				}
			},
		},
		{id: "11C", wrong: "no send deadline, lookup", in: lookupOnly(), step: noDeadline},
		{id: "11A", wrong: "no send deadline, keyed", in: keyedOnly(kindA(), 0), step: noDeadline},
		{
			id: "12", wrong: "the deadline restarts when a landed claim is adopted", in: with(lookupOnly(), func(s *setup) { s.faults = 1 }),
			step: func(w *world, _ *actor, before fence.Step, _ fence.Event, s *fence.Step) {
				if before.Do == fence.DoRead && s.Do == fence.DoSend {
					s.SendBy = at(w.now).Add(tick)
				}
			},
		},
		{
			id: "18", wrong: "key life is counted from the last send", in: keyedOnly(kindA(), 0), spare: "I8",
			written: func(st fence.Statement, row *fence.Row, now time.Time) {
				if st.Op == fence.OpResend {
					row.FirstSentAt = now
				}
			},
		},
		{
			id: "19a", wrong: "the key-life guard has no margin", in: keyedOnly(kindA(), 0),
			event: func(_ *world, _ *actor, e *fence.Event) {
				e.Row.FirstSentAt = e.Row.FirstSentAt.Add(2 * tick)
			},
			step: func(_ *world, _ *actor, _ fence.Step, _ fence.Event, s *fence.Step) { s.Statement.Margin = 0 },
		},
		{
			id: "19b", wrong: "key life is judged at the read, not in the statement", in: keyedAndLookup(),
			transition: changes{fence.OpResend: noKeyLife},
		},
	}
}

func mutantsOfRows() []mutant {
	return []mutant{
		{
			id: "7", wrong: "refusal and release are guarded by key and state", in: lookupOnly(422),
			transition: changes{fence.OpRefuse: noToken, fence.OpRelease: noToken},
		},
		{id: "8", wrong: "the lookup's release is guarded by state only", in: lookupOnly(), transition: changes{fence.OpAbsent: noToken}},
		{id: "20a", wrong: "done is deleted inside the window", in: with(retention(), func(s *setup) { s.keep = 0 })},
		{id: "20b", wrong: "done is deleted at the window's end while a copy runs", in: with(retention(), func(s *setup) { s.keep = s.window })},
		{id: "21", wrong: "unknown and parked rows are deleted", in: retention(), forgetsAll: true},
		{
			id: "22", wrong: "the guard is a counter that restarts after a deletion", spare: "I7",
			in: with(setupD(2, 1), func(s *setup) { s.forgets, s.keep = true, 1000 }),
			token: func(_ *world, a *actor, _ fence.Token) fence.Token {
				return fence.Token{byte(a.attempt + 1)}
			},
		},
		{
			id: "23", wrong: "a token is used again after an error", in: with(lookupOnly(), func(s *setup) { s.faults = 1 }),
			token: func(_ *world, a *actor, fresh fence.Token) fence.Token {
				if a.reused != (fence.Token{}) {
					return a.reused
				}
				return fresh
			},
		},
		{
			id: "24", wrong: "released is taken by a read, then an update by key", in: setupD(2, 0), spare: "I8",
			transition: changes{fence.OpReclaim: func(t *fence.Transition) { anyNotDone(t); noToken(t) }},
		},
		{
			id: "25", wrong: "a person may release before quiet", in: with(setupD(2, 0), func(s *setup) { s.persons = 1 }),
			hasty: true, transition: changes{fence.OpResolveReleased: noQuiet},
		},
		{
			id: "26", wrong: "a person's release is guarded by key only", in: with(setupD(2, 0), func(s *setup) { s.persons = 2 }),
			transition: changes{fence.OpResolveReleased: noToken},
		},
		{
			id: "27", wrong: "a late refusal is allowed from any state", in: lookupOnly(422),
			transition: changes{fence.OpRefuse: func(t *fence.Transition) { anyNotDone(t); noToken(t); anyDoubt(t) }},
		},
	}
}
