// SPDX-License-Identifier: Apache-2.0

package fenceconfig

import (
	"fmt"
	"strings"

	"github.com/queueworker/operator/internal/fence"
)

// Claims is a namespace of keys for effects that are no call of a provider.
type Claims struct {
	// Name is the scope that the app names; no provider may have it, too.
	Name string `json:"name"`
	// DoWithinSeconds is how long a holder may work. Default 60.
	DoWithinSeconds int `json:"doWithinSeconds"`
	// MaxInFlightSeconds is how long after its claim a holder that was stopped
	// or frozen may still act: the job's timeout, one HTTP call and the margin
	// of whoever kills it. Default 300, at least doWithinSeconds + 30.
	MaxInFlightSeconds int `json:"maxInFlightSeconds"`
	// CanCheck: the app can find out what a holder that vanished has done. Left
	// out, such a key is parked for a person.
	CanCheck bool `json:"canCheck"`
	// ReviewAfterSeconds ends the offer to check. Default 3600.
	ReviewAfterSeconds int `json:"reviewAfterSeconds"`
}

// claimStatement is what the database may take for one statement of a claim.
const claimStatement = 1

// DeclaredClaims are the namespaces as package fence takes them.
func (c *Config) DeclaredClaims() []fence.Claims {
	all := make([]fence.Claims, len(c.Claims))
	for i := range c.Claims {
		all[i] = c.Claims[i].declared()
	}
	return all
}

func (c *Claims) declared() fence.Claims {
	d := fence.Claims{CanCheck: c.CanCheck, Provider: fence.Provider{
		Scope: c.Name, LagDeclared: c.CanCheck,
		Times: fence.ClaimTimes(seconds(or(c.DoWithinSeconds, 60)), seconds(or(c.MaxInFlightSeconds, 300)), seconds(claimStatement)),
	}}
	if c.CanCheck {
		d.ReviewAfter = seconds(or(c.ReviewAfterSeconds, 3600))
	}
	return d
}

func (c *Config) validateClaims() []error {
	var all []error
	seen := map[string]bool{}
	for i := range c.Providers {
		seen[c.Providers[i].Name] = true
	}
	for i := range c.Claims {
		from := &c.Claims[i]
		at := fmt.Sprintf("claims[%d]", i)
		do, flight := or(from.DoWithinSeconds, 60), or(from.MaxInFlightSeconds, 300)
		d := from.declared()
		err := d.Validate()
		switch {
		case do < 1:
			all = append(all, fmt.Errorf("%s.doWithinSeconds: %d: must be at least 1", at, do))
		case flight < do+inFlightMargin:
			all = append(all, fmt.Errorf("%s.maxInFlightSeconds: %d: a holder may act longer than it should: at least %d (doWithinSeconds + %d)", at, flight, do+inFlightMargin, inFlightMargin))
		case from.ReviewAfterSeconds != 0 && !from.CanCheck:
			all = append(all, fmt.Errorf("%s.reviewAfterSeconds: %d: without canCheck an unknown key is parked at once: leave it out or set canCheck", at, from.ReviewAfterSeconds))
		case from.CanCheck && or(from.ReviewAfterSeconds, 3600) <= flight:
			all = append(all, fmt.Errorf("%s.reviewAfterSeconds: %d: nobody could release a key before it is parked: more than maxInFlightSeconds %d", at, or(from.ReviewAfterSeconds, 3600), flight))
		case err != nil:
			all = append(all, fmt.Errorf("%s: %w", at, err))
		case strings.ContainsAny(from.Name, "/?#%\\"):
			all = append(all, fmt.Errorf("%s.name: %q: cannot hold / ? # %% or \\", at, from.Name))
		case seen[from.Name]:
			all = append(all, fmt.Errorf("%s: the name %s is used twice", at, from.Name))
		}
		seen[from.Name] = true
	}
	return all
}
