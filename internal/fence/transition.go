// SPDX-License-Identifier: Apache-2.0

package fence

// Op is one of the statements that may change a row.
type Op uint8

// The statements. The comments name who runs them.
const (
	OpClaim           Op = iota // a call that finds no row
	OpReclaim                   // a call that finds the key released
	OpExpire                    // anyone who finds a claim past its lease
	OpEffect                    // any attempt or lookup that knows of an effect
	OpRelease                   // the owner: certainly nothing was sent, or it did nothing
	OpRefuse                    // the owner: the provider refused for good
	OpUnknown                   // the owner: it cannot tell what happened
	OpResend                    // a call that may send the same key again
	OpAbsent                    // a lookup that began quiet and found nothing
	OpRefuseByLookup            // a lookup that began quiet and found a final failure
	OpNote                      // a lookup that could not conclude
	OpPark                      // anyone: only a person can tell
	OpResolveDone               // a person
	OpResolveReleased           // a person
	OpForceReleased             // a person who does not wait for quiet
	opCount
)

var opNames = [...]string{
	"claim", "reclaim", "expire", "effect", "release", "refuse", "unknown", "resend",
	"absent", "refuse by lookup", "note", "park", "resolve done", "resolve released", "force released",
}

func (o Op) String() string { return opNames[o] }

// Ops lists every statement.
func Ops() []Op {
	all := make([]Op, opCount)
	for i := range all {
		all[i] = Op(i)
	}
	return all
}

// States is a set of states.
type States uint8

// StatesOf builds a set.
func StatesOf(states ...State) States {
	var set States
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// Has reports whether the set holds the state.
func (s States) Has(state State) bool { return s&(1<<state) != 0 }

// Guard is what must hold of the row, judged inside the statement and by the
// database's clock, for the statement to apply.
type Guard struct {
	From      States
	Token     bool // the row's token is the statement's Token
	MaxDoubt  int  // the row's doubt is at most this
	LeaseOver bool // lease_until < now
	Quiet     bool // quiet_until < now
	KeyAlive  bool // first_sent_at + KeyLife > now + Margin
}

// Change is what the statement writes.
type Change struct {
	To             State // NoRow: the state stays
	Grant          bool  // new token, owner, lease and quiet time; attempt + 1
	Restart        bool  // a new chain: first_sent_at = now, no doubt, evidence cleared
	Doubt          bool  // doubt by whether the row is quiet now; resends + 1
	EndLease       bool  // lease_until = now
	NextGeneration bool
	Outcome        Outcome // with the statement's Response
	Settled        bool    // settled_by, settled_who, settled_at
	Reason         bool
	Checked        bool // checked_at = now
}

// Transition is one line of the protocol: when it applies and what it writes.
type Transition struct {
	Guard  Guard
	Change Change
}

var (
	unsettled = StatesOf(Claimed, Unknown, NeedsReview)
	notDone   = StatesOf(Claimed, Released, Unknown, NeedsReview)
)

// OpClaim has an empty guard: it inserts, and applies where there is no row.
var transitions = [opCount]Transition{
	OpClaim: {
		Change: Change{To: Claimed, Grant: true, Restart: true},
	},
	OpReclaim: {
		Guard:  Guard{From: StatesOf(Released), Token: true, MaxDoubt: DoubtAlive},
		Change: Change{To: Claimed, Grant: true, Restart: true},
	},
	OpExpire: {
		Guard:  Guard{From: StatesOf(Claimed), Token: true, MaxDoubt: DoubtAlive, LeaseOver: true},
		Change: Change{To: Unknown, Reason: true},
	},
	// No token: an effect is true for ever, whoever learned of it.
	OpEffect: {
		Guard:  Guard{From: notDone, MaxDoubt: DoubtAlive},
		Change: Change{To: Done, Outcome: Effect, Settled: true},
	},
	// With doubt, "nothing was sent by me" says nothing about the attempt before.
	OpRelease: {
		Guard:  Guard{From: unsettled, Token: true, MaxDoubt: NoDoubt},
		Change: Change{To: Released, EndLease: true, Settled: true, Reason: true},
	},
	// A refusal is not final while an older request may still be accepted.
	OpRefuse: {
		Guard:  Guard{From: unsettled, Token: true, MaxDoubt: DoubtQuiet},
		Change: Change{To: Done, Outcome: Refused, Settled: true},
	},
	OpUnknown: {
		Guard:  Guard{From: StatesOf(Claimed), Token: true, MaxDoubt: DoubtAlive},
		Change: Change{To: Unknown, EndLease: true, Reason: true},
	},
	// The provider's memory of the key must outlive the resend's last moment.
	OpResend: {
		Guard:  Guard{From: StatesOf(Unknown), Token: true, MaxDoubt: DoubtAlive, KeyAlive: true},
		Change: Change{To: Claimed, Grant: true, Doubt: true},
	},
	OpAbsent: {
		Guard:  Guard{From: StatesOf(Unknown), Token: true, MaxDoubt: DoubtAlive, Quiet: true},
		Change: Change{To: Released, NextGeneration: true, Settled: true, Checked: true, Reason: true},
	},
	OpRefuseByLookup: {
		Guard:  Guard{From: StatesOf(Unknown), Token: true, MaxDoubt: DoubtAlive, Quiet: true},
		Change: Change{To: Done, Outcome: Refused, Settled: true, Checked: true},
	},
	OpNote: {
		Guard:  Guard{From: StatesOf(Unknown), Token: true, MaxDoubt: DoubtAlive},
		Change: Change{Checked: true},
	},
	OpPark: {
		Guard:  Guard{From: StatesOf(Unknown), Token: true, MaxDoubt: DoubtAlive},
		Change: Change{To: NeedsReview, Reason: true},
	},
	OpResolveDone: {
		Guard:  Guard{From: StatesOf(NeedsReview), Token: true, MaxDoubt: DoubtAlive},
		Change: Change{To: Done, Outcome: Effect, Settled: true, Reason: true},
	},
	OpResolveReleased: {
		Guard:  Guard{From: StatesOf(NeedsReview), Token: true, MaxDoubt: DoubtAlive, Quiet: true},
		Change: Change{To: Released, NextGeneration: true, Settled: true, Reason: true},
	},
	OpForceReleased: {
		Guard:  Guard{From: StatesOf(NeedsReview), Token: true, MaxDoubt: DoubtAlive},
		Change: Change{To: Released, NextGeneration: true, Settled: true, Reason: true},
	},
}

// TransitionOf returns the protocol's line for a statement.
func TransitionOf(op Op) Transition { return transitions[op] }
