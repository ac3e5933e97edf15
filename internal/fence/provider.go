// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"slices"
	"time"
)

// Times are the durations one provider's calls obey. docs/fence.md shows how
// they follow from the timeout chain.
type Times struct {
	SendWindow      time.Duration // S: from the issue of a granting statement to the first byte sent
	ProviderTimeout time.Duration // hp: from the first byte to giving up on the reply
	StatementBudget time.Duration // c: what both statements of a call may take together
	ClientLimit     time.Duration // the app's own limit for one call
	InFlight        time.Duration // X: how long after its start a request may still act
	LookupLag       time.Duration // V: from an effect to a lookup that shows it
	KeyLife         time.Duration // T: how long the provider remembers a key; 0 = it ignores keys
}

// Lease is how long others wait for an owner. It protects nothing by itself.
func (t Times) Lease() time.Duration {
	return t.SendWindow + t.ProviderTimeout + t.StatementBudget
}

// Quiet is how long after a grant every request of the attempt is dead and
// its effect visible.
func (t Times) Quiet() time.Duration { return t.Margin() + t.LookupLag }

// Margin is how long after a grant its request may still act.
func (t Times) Margin() time.Duration { return t.SendWindow + t.InFlight }

// Provider declares what may be believed about one provider.
type Provider struct {
	Scope       string
	Times       Times
	Lookup      bool  // effects can be looked up
	LagDeclared bool  // LookupLag is a promise; without it "absent" never concludes
	DidNotAct   []int // of 401, 403, 407, 429 and 503: replies that promise no effect
	Final       []int // further 4xx that refuse for good
	MaxResends  int   // same-key resends before a person is asked
	ReviewAfter time.Duration
}

// Keyed reports whether the provider recognises a repeated key.
func (p *Provider) Keyed() bool { return p.Times.KeyLife > 0 }

var (
	finalByDefault  = []int{400, 402, 404, 405, 410, 413, 415, 422}
	mayNotHaveActed = []int{401, 403, 407, 429, 503}
	neverFinal      = []int{408, 409, 423, 425}
)

// Validate refuses a declaration that the protocol cannot keep.
func (p *Provider) Validate() error {
	if err := validPart("scope", p.Scope, MaxScope); err != nil {
		return err
	}
	t := p.Times
	for name, d := range map[string]time.Duration{
		"send window": t.SendWindow, "provider timeout": t.ProviderTimeout,
		"statement budget": t.StatementBudget, "in-flight time": t.InFlight,
	} {
		if d <= 0 {
			return fmt.Errorf("provider %s: the %s is %s, it must be positive", p.Scope, name, d)
		}
	}
	switch {
	case t.LookupLag < 0 || t.KeyLife < 0 || p.ReviewAfter < 0 || p.MaxResends < 0:
		return fmt.Errorf("provider %s: lookup lag, key life, review time and resends cannot be negative", p.Scope)
	case t.ClientLimit < t.Lease():
		return fmt.Errorf("provider %s: the client gives up after %s, before the call's own limit of %s (send window + provider timeout + statement budget)",
			p.Scope, t.ClientLimit, t.Lease())
	case p.Keyed() && t.KeyLife <= t.Margin():
		return fmt.Errorf("provider %s: keys live %s, not longer than send window + in-flight time (%s): no key could ever be sent again",
			p.Scope, t.KeyLife, t.Margin())
	case p.Keyed() && p.MaxResends == 0:
		return fmt.Errorf("provider %s: keys are remembered but no resend is allowed: set the limit of resends to at least 1", p.Scope)
	}
	return p.validateReplies()
}

func (p *Provider) validateReplies() error {
	for _, status := range p.DidNotAct {
		if !slices.Contains(mayNotHaveActed, status) {
			return fmt.Errorf("provider %s: status %d cannot promise that nothing happened; only %v can", p.Scope, status, mayNotHaveActed)
		}
	}
	for _, status := range p.Final {
		switch {
		case status < 400 || status > 499 || slices.Contains(neverFinal, status):
			return fmt.Errorf("provider %s: status %d cannot be a final refusal", p.Scope, status)
		case slices.Contains(p.DidNotAct, status):
			return fmt.Errorf("provider %s: status %d is declared both final and without effect", p.Scope, status)
		}
	}
	return nil
}

// Reply is a complete answer of the provider.
type Reply struct {
	Response   Response
	RetryAfter time.Duration // from the header; HasRetry tells 0 from none
	HasRetry   bool
}

type replyMeaning uint8

const (
	meansNothingKnown replyMeaning = iota
	meansEffect
	meansRefusal
	meansNoAct
)

func (p *Provider) meaning(r Reply) replyMeaning {
	status := r.Response.Status
	switch {
	case status >= 200 && status <= 299:
		return meansEffect
	case slices.Contains(p.DidNotAct, status) && (status != 503 || r.HasRetry):
		return meansNoAct
	case slices.Contains(finalByDefault, status), slices.Contains(p.Final, status):
		return meansRefusal
	}
	return meansNothingKnown
}

// Finding is what a lookup says.
type Finding uint8

// The findings. FoundNothingSure stands for a failed lookup and for one whose
// expressions contradict each other.
const (
	FoundNothingSure Finding = iota
	FoundEffect
	FoundRefusal
	FoundProcessing
	FoundAbsent
)

var findingNames = [...]string{"nothing sure", "effect", "refusal", "processing", "absent"}

func (f Finding) String() string { return findingNames[f] }

// Lookup is the result of asking the provider about a key.
type Lookup struct {
	Finding  Finding
	Response Response // FoundEffect and FoundRefusal
}
