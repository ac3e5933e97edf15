// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

const (
	pollEvery     = 250 * time.Millisecond // how often a waiting copy looks again
	maxRounds     = 8                      // lost races before a call gives way
	maxWriteTries = 3                      // of the statement that writes an outcome
	reasonExpired = "the owner did not come back before its lease ended"
)

// Request is what the app asks for.
type Request struct {
	Key         Key
	Fingerprint Digest
	Owner       string // the pod, for people
}

type phase uint8

const (
	phaseBegin      phase = iota
	phaseGranting         // a granting statement was issued
	phaseRereading        // its reply was lost
	phaseReading          // a plain read
	phaseSettling         // a statement about somebody else's attempt was issued
	phaseLooking          // a lookup is under way
	phaseWaiting          // for another copy's lease
	phaseSending          // the request is under way
	phaseWriting          // the outcome's statement was issued
	phaseRechecking       // the outcome's statement did not apply
	phaseOver
)

// Call is one delivery of one request, from the claim to the answer. It is a
// plain value: a copy is an independent call in the same situation.
type Call struct {
	provider *Provider
	request  Request
	began    time.Time

	phase  phase
	row    Row       // what is known of the row
	rounds int       // decisions taken so far
	me     Token     // of the last granting statement
	issued time.Time // just before that statement
	resent bool      // it was OpResend: an earlier attempt is unsettled
	know   knowledge

	running Statement // in phaseGranting, phaseSettling and phaseWriting
	tries   int       // of running, in phaseWriting
	answer  Answer    // when running has applied
}

// NewCall prepares a call; the first Next takes EventBegin. now is the local
// monotonic clock's, as in every Next.
func NewCall(p *Provider, r Request, now time.Time) Call {
	return Call{provider: p, request: r, began: now}
}

// Next takes what happened and says what to do. fresh must return a token
// that was never returned before.
func (c *Call) Next(e Event, now time.Time, fresh func() Token) Step {
	switch c.phase {
	case phaseBegin:
		return c.grant(OpClaim, now, fresh)
	case phaseGranting:
		return c.afterGrant(e, now, fresh)
	case phaseRereading:
		return c.afterReread(e)
	case phaseReading:
		if e.Kind == EventStoreFailed {
			return c.end(answerStoreUnavailable())
		}
		return c.decide(e.Row, now, fresh)
	case phaseSettling:
		return c.afterSettling(e, now, fresh)
	case phaseLooking:
		c.know.looked, c.know.lookup = true, e.Lookup
		return c.decide(c.row, now, fresh)
	case phaseWaiting:
		return c.read(phaseReading)
	case phaseSending:
		return c.afterSend(e)
	case phaseWriting:
		return c.afterWrite(e, now)
	case phaseRechecking:
		return c.afterRecheck(e)
	}
	return c.end(c.answer)
}

// decide acts on what the row says.
func (c *Call) decide(row Row, now time.Time, fresh func() Token) Step {
	if row.Token != c.row.Token || row.State != Unknown {
		c.know = knowledge{} // a lookup is about one attempt only
	}
	c.row = row
	c.rounds++
	switch {
	case row.State == NoRow && c.rounds <= maxRounds:
		return c.grant(OpClaim, now, fresh)
	case row.State == NoRow:
		return c.end(answerStoreUnavailable())
	case row.Fingerprint != c.request.Fingerprint:
		return c.end(Answer{Type: AnswerPayloadDiffers, Status: 422})
	case row.State == Done:
		return c.end(answerStored(row.Outcome, row.Response, true))
	case row.State == NeedsReview:
		return c.end(answerReview())
	case c.rounds > maxRounds:
		return c.end(answerLater(AnswerBusy, 409, leastRetryAfter))
	case row.State == Released:
		if !c.timeToSend(now) {
			return c.end(answerLater(AnswerBusy, 409, leastRetryAfter))
		}
		return c.grant(OpReclaim, now, fresh)
	case row.State == Claimed && row.LeaseOver():
		return c.settle(c.statement(OpExpire, reasonExpired))
	case row.State == Claimed:
		return c.wait(now)
	}
	return c.decideUnknown(now, fresh)
}

func (c *Call) decideUnknown(now time.Time, fresh func() Token) Step {
	c.know.canResend = c.timeToSend(now)
	op, needLookup := c.provider.settle(c.row, c.know)
	switch {
	case needLookup:
		c.phase, c.know.beganQuiet = phaseLooking, c.row.Quiet()
		return Step{Do: DoLookUp, Key: c.row.SentKey(), ID: c.row.Key.ID}
	case op == OpResend:
		return c.grant(OpResend, now, fresh)
	}
	return c.settle(settleStatement(c.provider, c.row, op, c.know))
}

// latestSend is the last moment at which a send still ends before the client
// gives up.
func (c *Call) latestSend() time.Time {
	return c.began.Add(c.provider.Times.ClientLimit - c.provider.Times.Lease())
}

func (c *Call) timeToSend(now time.Time) bool { return !now.After(c.latestSend()) }

// wait lets another copy finish, as long as there is time to send afterwards.
func (c *Call) wait(now time.Time) Step {
	left := c.latestSend().Sub(now)
	if left <= 0 {
		return c.end(answerBusy(c.row))
	}
	lease := c.row.LeaseUntil.Sub(c.row.ReadAt) + time.Millisecond
	c.rounds-- // waiting is not a lost race
	c.phase = phaseWaiting
	return Step{Do: DoWait, Wait: min(left, lease, pollEvery)}
}

// grant issues a statement that would make this call the owner, under a token
// that no statement has carried before.
func (c *Call) grant(op Op, now time.Time, fresh func() Token) Step {
	t := c.provider.Times
	c.phase, c.me, c.issued, c.resent = phaseGranting, fresh(), now, op == OpResend
	c.running = Statement{
		Op: op, Key: c.request.Key, Token: c.row.Token,
		New: c.me, Fingerprint: c.request.Fingerprint, Owner: c.request.Owner,
		Lease: t.Lease(), Quiet: t.Quiet(), KeyLife: t.KeyLife, Margin: t.Margin(),
	}
	return Step{Do: DoRun, Statement: c.running}
}

func (c *Call) afterGrant(e Event, now time.Time, fresh func() Token) Step {
	switch {
	case e.Kind == EventStoreFailed:
		return c.read(phaseRereading)
	case e.Kind == EventApplied:
		return c.send()
	case e.Kind == EventRow && c.owns(e.Row):
		c.row = e.Row
		return c.send()
	case e.Kind == EventRow:
		return c.decide(e.Row, now, fresh)
	}
	return c.read(phaseReading)
}

func (c *Call) owns(row Row) bool { return row.State == Claimed && row.Token == c.me }

// afterReread: the token may be the row's already, or become it later. So it
// is adopted now or given up for ever; a further try needs a fresh one.
func (c *Call) afterReread(e Event) Step {
	if e.Kind != EventRow || !c.owns(e.Row) {
		return c.end(answerStoreUnavailable())
	}
	c.row = e.Row
	return c.send()
}

// send: the time to send runs from the issue of the grant, however late its
// reply came, because the row's quiet time is not counted from later either.
func (c *Call) send() Step {
	t := c.provider.Times
	c.phase = phaseSending
	sendBy := c.issued.Add(t.SendWindow)
	return Step{Do: DoSend, Key: c.row.SentKey(), SendBy: sendBy, GiveUpAt: sendBy.Add(t.ProviderTimeout)}
}

func (c *Call) settle(s Statement) Step {
	c.phase, c.running = phaseSettling, s
	return Step{Do: DoRun, Statement: s}
}

func (c *Call) afterSettling(e Event, now time.Time, fresh func() Token) Step {
	op := c.running.Op
	switch {
	case e.Kind == EventStoreFailed && op == OpNote:
		return c.end(answerUnknown(c.row))
	case e.Kind == EventStoreFailed && op == OpEffect: // true, saved or not
		a, s := answerStored(Effect, c.running.Response, true), c.running
		a.Unsaved = &s
		return c.end(a)
	case e.Kind == EventStoreFailed:
		return c.end(answerStoreUnavailable())
	case e.Kind == EventNotApplied:
		return c.read(phaseReading)
	case op == OpNote:
		return c.end(answerUnknown(c.row))
	}
	next, _ := Apply(c.row, c.running, c.row.ReadAt)
	return c.decide(next, now, fresh)
}

func (c *Call) read(p phase) Step {
	c.phase = p
	return Step{Do: DoRead}
}

func (c *Call) end(a Answer) Step {
	c.phase, c.answer = phaseOver, a
	return Step{Do: DoAnswer, Answer: a}
}

// statement names the attempt that was seen.
func (c *Call) statement(op Op, reason string) Statement {
	return Statement{Op: op, Key: c.request.Key, Token: c.row.Token, Reason: reason}
}

// settleStatement writes what settle decided about the attempt in the row.
func settleStatement(p *Provider, row Row, op Op, k knowledge) Statement {
	s := Statement{Op: op, Key: row.Key, Token: row.Token}
	switch op {
	case OpEffect, OpRefuseByLookup:
		response := k.lookup.Response
		s.Response, s.By = &response, ByLookup
	case OpAbsent:
		s.By, s.Reason = ByLookup, "the provider knows of no effect"
	case OpPark:
		s.Reason = p.parkReason(row)
	}
	return s
}
