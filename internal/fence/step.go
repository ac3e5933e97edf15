// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

// Do is what a step asks for.
type Do uint8

// The steps. Each is answered by one of the events named beside it.
const (
	DoAnswer Do = iota // none: the call is over
	DoRun              // OpClaim: EventRow; others: EventApplied, EventNotApplied; all: EventStoreFailed
	DoRead             // EventRow (state NoRow where there is none), EventStoreFailed
	DoSend             // EventNotSent, EventReplied, EventBroken
	DoLookUp           // EventLookedUp
	DoWait             // EventWoke
)

// Step is what to do next.
type Step struct {
	Do        Do
	Statement Statement     // DoRun
	Key       string        // DoSend, DoLookUp: the key as it is sent to the provider
	ID        string        // DoLookUp: the key as the app named it, without the generation
	SendBy    time.Time     // DoSend: past it, not one byte may be written
	GiveUpAt  time.Time     // DoSend: past it, the reply is not waited for
	Wait      time.Duration // DoWait
	Answer    Answer        // DoAnswer
}

// EventKind is what happened.
type EventKind uint8

// The events.
const (
	EventBegin       EventKind = iota
	EventRow                   // a row was read
	EventApplied               // the statement applied
	EventNotApplied            // the guard refused it
	EventStoreFailed           // an error: the statement may or may not have applied, or may still do so
	EventNotSent               // no byte of the request was written, and none will be
	EventReplied               // a complete reply
	EventBroken                // timeout, reset, shutdown, a reply that cannot be read
	EventLookedUp
	EventWoke
)

// Event carries what happened to the machine that asked for it.
type Event struct {
	Kind   EventKind
	Row    Row
	Reply  Reply
	Lookup Lookup
	Reason string // EventNotSent, EventBroken: for people
}
