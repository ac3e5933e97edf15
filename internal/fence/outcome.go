// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"time"
)

// This file is the second half of a Call: the request was sent, or certainly
// not, and the row has to hear of it.

func (c *Call) afterSend(e Event) Step {
	switch e.Kind {
	case EventNotSent:
		return c.nothingHappened(answerLater(AnswerNotSent, 502, leastRetryAfter), "not sent: "+e.Reason)
	case EventReplied:
		return c.afterReply(e.Reply)
	}
	return c.nobodyKnows("no reply: " + e.Reason)
}

func (c *Call) afterReply(r Reply) Step {
	response := r.Response
	switch c.provider.meaning(r) {
	case meansEffect:
		s := c.mine(OpEffect, "")
		s.Response = &response
		return c.write(s, answerStored(Effect, &response, false))
	case meansRefusal:
		s := c.mine(OpRefuse, "")
		s.Response = &response
		return c.write(s, answerStored(Refused, &response, false))
	case meansNoAct:
		return c.nothingHappened(answerLater(AnswerProviderBusy, 503, r.RetryAfter),
			fmt.Sprintf("the provider did not act: status %d", response.Status))
	}
	return c.nobodyKnows(fmt.Sprintf("the provider's status %d does not tell", response.Status))
}

// nothingHappened by this attempt. After a resend that says nothing about the
// key, since the attempt before it is unsettled.
func (c *Call) nothingHappened(a Answer, reason string) Step {
	if c.resent {
		return c.write(c.mine(OpUnknown, reason), answerUnknown(c.row))
	}
	return c.write(c.mine(OpRelease, reason), a)
}

func (c *Call) nobodyKnows(reason string) Step {
	after := c.provider.Times.Quiet()
	return c.write(c.mine(OpUnknown, reason), answerLater(AnswerUnknown, 504, after))
}

func (c *Call) mine(op Op, reason string) Statement {
	return Statement{Op: op, Key: c.request.Key, Token: c.me, Reason: reason, By: ByAttempt, Who: c.request.Owner}
}

func (c *Call) write(s Statement, a Answer) Step {
	c.phase, c.running, c.answer, c.tries = phaseWriting, s, a, 1
	return Step{Do: DoRun, Statement: s}
}

func (c *Call) afterWrite(e Event, now time.Time) Step {
	switch {
	case e.Kind == EventApplied:
		return c.end(c.answer)
	case e.Kind == EventNotApplied:
		return c.read(phaseRechecking)
	case c.tries < maxWriteTries && now.Before(c.issued.Add(c.provider.Times.Lease())):
		c.tries++
		return Step{Do: DoRun, Statement: c.running} // the same, never an undo
	}
	return c.end(c.unsaved())
}

// unsaved is what may be said although the row may not know it: an effect is
// true for ever, and so is that this call did nothing. A refusal is not final
// before it is stored, since another attempt may still succeed.
func (c *Call) unsaved() Answer {
	a := c.answer
	switch c.running.Op {
	case OpEffect:
	case OpRelease:
		a = answerStoreUnavailable()
	default:
		a = answerLater(AnswerUnknown, c.unknownStatus(), c.provider.Times.Quiet())
	}
	s := c.running
	a.Unsaved = &s
	return a
}

func (c *Call) unknownStatus() int {
	if c.answer.Type == AnswerUnknown {
		return c.answer.Status
	}
	return 409
}

// afterRecheck: the guard refused the outcome, so the row knows more, or this
// attempt knows less than it thought.
func (c *Call) afterRecheck(e Event) Step {
	row := e.Row
	switch {
	case e.Kind == EventStoreFailed:
		return c.end(c.unsaved())
	case c.running.Op == OpEffect:
		c.answer.Conflict = conflict(row, c.running.Response)
		return c.end(c.answer)
	case row.State == Done:
		return c.end(answerStored(row.Outcome, row.Response, true))
	case c.running.Op != OpUnknown && c.owns(row):
		c.row = row // refused, or not sent, under doubt
		return c.write(c.mine(OpUnknown, "an earlier attempt is unsettled"), answerUnknown(row))
	case row.State == NeedsReview:
		return c.end(answerReview())
	case c.running.Op == OpRelease:
		return c.end(c.answer)
	}
	return c.end(answerUnknown(row))
}

// conflict compares an effect with a row that was done before.
func conflict(row Row, effect *Response) string {
	switch {
	case row.State != Done:
		return fmt.Sprintf("an effect could not be written: the row is %s", row.State)
	case row.Outcome == Refused:
		return "the provider acted although the key was refused before"
	case row.Response != nil && row.Response.ProviderID != effect.ProviderID &&
		row.Response.ProviderID != "" && effect.ProviderID != "":
		return fmt.Sprintf("two effects under one key: %s and %s", row.Response.ProviderID, effect.ProviderID)
	}
	return ""
}
