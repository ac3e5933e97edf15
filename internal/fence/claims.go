// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Claims lets an app fence an effect that is no call of a provider: the app
// claims a key, does the work itself and says how it ended. To the row it is a
// provider that offers nothing, with the app as the sender.
type Claims struct {
	Provider // Scope is the namespace; SendWindow + ProviderTimeout + StatementBudget is what a holder has

	// CanCheck: another copy of the job can find out what became of the work. An
	// unknown key is then offered to whoever asks, until ReviewAfter.
	CanCheck bool
}

// ClaimTimes are a claim's: doWithin is how long a holder may work, inFlight
// how long after its claim a holder that was stopped or frozen may still act.
func ClaimTimes(doWithin, inFlight, statements time.Duration) Times {
	const window = time.Millisecond // the work may begin at once
	return Times{
		SendWindow: window, ProviderTimeout: doWithin - window, StatementBudget: statements,
		ClientLimit: doWithin + statements, InFlight: inFlight - window,
	}
}

// DoWithin is how long a holder may work, from before it asked.
func (c *Claims) DoWithin() time.Duration { return c.Times.SendWindow + c.Times.ProviderTimeout }

// Settle declares what the upkeep may do about keys nobody came back for:
// nothing before ReviewAfter where the app can find out, else park them.
func (c *Claims) Settle() *Provider {
	p := c.Provider
	p.Lookup = c.CanCheck // by the app: the upkeep's own lookups tell nothing
	return &p
}

// ClaimRequest asks for a key. Nonce names the process attempt that asks, so
// that asking again after a lost reply gets the same grant.
type ClaimRequest struct {
	Key         Key
	Fingerprint Digest
	Owner       string
	Nonce       string
}

// MaxNonce bounds the nonce, in bytes; it is kept beside the owner.
const MaxNonce = 64

// Validate refuses what the row could not keep.
func (r ClaimRequest) Validate() error {
	if err := validPart("nonce", r.Nonce, MaxNonce); err != nil {
		return fmt.Errorf("%w: make one for each attempt of a process, never at dispatch", err)
	}
	if strings.Contains(r.Nonce, " ") {
		return errors.New("nonce holds a space")
	}
	return r.Key.Validate()
}

// holder is the row's owner: the pod, and the nonce behind it.
func (r ClaimRequest) holder() string {
	const room = 255 - MaxNonce - 1
	return r.Owner[:min(len(r.Owner), room)] + " " + r.Nonce
}

// ClaimKind is what a claim is answered with.
type ClaimKind string

// The answers to a claim; ClaimDiffers and ClaimNoStore are failures.
const (
	ClaimGranted ClaimKind = "granted" // do it, within DoWithin
	ClaimDone    ClaimKind = "done"    // it was done: Response says what came of it
	ClaimBusy    ClaimKind = "busy"    // another holder is at it
	ClaimCheck   ClaimKind = "check"   // nobody knows: find out, then complete or release
	ClaimReview  ClaimKind = "review"  // a person must decide
	ClaimDiffers ClaimKind = "differs"
	ClaimNoStore ClaimKind = "no store"
)

// ClaimAnswer is what the app is told.
type ClaimAnswer struct {
	Kind       ClaimKind
	Token      Token         // ClaimGranted and ClaimCheck
	Early      bool          // ClaimCheck: the holder that vanished may still act, so finding nothing proves nothing
	DoWithin   time.Duration // ClaimGranted: from before the request
	RetryAfter time.Duration // ClaimBusy
	Response   *Response     // ClaimDone
}

// Claim asks for the key. Every statement that grants carries a token of its
// own; a repeated request finds its grant by the nonce.
func (c *Claims) Claim(ctx context.Context, store Store, r ClaimRequest) ClaimAnswer {
	granting := Statement{
		Op: OpClaim, Key: r.Key, New: NewToken(), Fingerprint: r.Fingerprint, Owner: r.holder(),
		Lease: c.DoWithin(), Quiet: c.Times.Quiet(),
	}
	row, err := c.claim(ctx, store, granting)
	for range maxRounds {
		switch {
		case err != nil || row.State == NoRow:
			return ClaimAnswer{Kind: ClaimNoStore}
		case row.Token == granting.New && row.State == Claimed:
			return ClaimAnswer{Kind: ClaimGranted, Token: row.Token, DoWithin: c.left(row)}
		case row.Fingerprint != r.Fingerprint:
			return ClaimAnswer{Kind: ClaimDiffers}
		}
		if answer, final := c.judge(row, r); final {
			return answer
		}
		row, err = c.advance(ctx, store, row, &granting)
	}
	return ClaimAnswer{Kind: ClaimBusy, RetryAfter: leastRetryAfter}
}

// judge answers from the row, unless the row can be moved first.
func (c *Claims) judge(row Row, r ClaimRequest) (ClaimAnswer, bool) {
	switch {
	case row.State == Done:
		return ClaimAnswer{Kind: ClaimDone, Response: row.Response}, true
	case row.State == NeedsReview:
		return ClaimAnswer{Kind: ClaimReview}, true
	case row.State == Claimed && !row.LeaseOver() && row.Owner == r.holder():
		return ClaimAnswer{Kind: ClaimGranted, Token: row.Token, DoWithin: c.left(row)}, true
	case row.State == Claimed && !row.LeaseOver():
		return ClaimAnswer{Kind: ClaimBusy, RetryAfter: max(row.LeaseUntil.Sub(row.ReadAt), leastRetryAfter)}, true
	case row.State == Unknown && c.CanCheck && !c.overdue(row):
		return ClaimAnswer{Kind: ClaimCheck, Token: row.Token, Early: !row.Quiet()}, true
	}
	return ClaimAnswer{}, false
}

func (c *Claims) left(row Row) time.Duration { return row.LeaseUntil.Sub(row.ReadAt) }

// advance moves a row that is free, expired or to be parked, and reads it.
func (c *Claims) advance(ctx context.Context, store Store, row Row, granting *Statement) (Row, error) {
	s := Statement{Key: row.Key, Token: row.Token}
	switch row.State {
	case Released:
		granting.Op, granting.Token, granting.New = OpReclaim, row.Token, NewToken()
		s = *granting
	case Claimed:
		s.Op, s.Reason = OpExpire, reasonExpired
	default:
		s.Op, s.Reason = OpPark, c.parkReason(row)
	}
	if _, err := c.apply(ctx, store, s); err != nil {
		return Row{}, err
	}
	return c.read(ctx, store, row.Key)
}

func (c *Claims) claim(ctx context.Context, store Store, s Statement) (Row, error) {
	limit, cancel := context.WithTimeout(ctx, c.Times.StatementBudget)
	defer cancel()
	return store.Claim(limit, s)
}

func (c *Claims) apply(ctx context.Context, store Store, s Statement) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, c.Times.StatementBudget)
	defer cancel()
	return store.Apply(limit, s)
}

func (c *Claims) read(ctx context.Context, store Store, key Key) (Row, error) {
	limit, cancel := context.WithTimeout(ctx, c.Times.StatementBudget)
	defer cancel()
	row, err := store.Read(limit, key)
	if errors.Is(err, ErrNoRow) {
		return Row{Key: key}, nil
	}
	return row, err
}
