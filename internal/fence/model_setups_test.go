// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// declare builds what the fence is told. One tick is a second; the lease is
// two ticks, the send window one.
func declare(k kind) fence.Provider {
	p := fence.Provider{
		Scope: modelKey.Scope, MaxResends: 2, DidNotAct: []int{401},
		Times: fence.Times{
			SendWindow: tick, ProviderTimeout: tick / 2, StatementBudget: tick / 2,
			ClientLimit: 1e9 * tick, InFlight: ticks(k.inFlight),
		},
	}
	if k.keyed {
		p.Times.KeyLife = ticks(k.keyLife)
	}
	return p
}

func ticks(n int) time.Duration { return time.Duration(n) * tick }

func withLookup(p fence.Provider, k kind) fence.Provider {
	p.Lookup, p.LagDeclared, p.Times.LookupLag = true, true, ticks(k.lag)
	return p
}

// A key life of six ticks is the least that lets a resend happen both before
// and after quiet.

// kindA remembers results and errors with the key, kindB successes only.
func kindA() kind {
	return kind{keyed: true, storesErrors: true, errorMayAct: true, inFlight: 1, keyLife: 6, refuses: true, fails: true, unauthorized: true}
}

func kindB() kind {
	return kind{keyed: true, inFlight: 1, keyLife: 6, refuses: true, fails: true, unauthorized: true, inProgress: true}
}

// kindC ignores keys but can be asked; kindD offers nothing.
func kindC() kind {
	return kind{errorMayAct: true, inFlight: 1, lag: 1, refuses: true, fails: true, unauthorized: true}
}

func kindD() kind {
	return kind{errorMayAct: true, inFlight: 1, refuses: true, fails: true, unauthorized: true}
}

func setupOf(name string, k kind, copies, faults int) setup {
	p := declare(k)
	return setup{name: name, kind: k, declared: p, copies: copies, faults: faults, sweeper: true, maxGen: 1}
}

func setupA(copies, faults int) setup { return setupOf("A", kindA(), copies, faults) }
func setupB(copies, faults int) setup { return setupOf("B", kindB(), copies, faults) }
func setupD(copies, faults int) setup { return setupOf("D", kindD(), copies, faults) }

func setupC(copies, faults int) setup {
	s := setupOf("C", kindC(), copies, faults)
	s.declared = withLookup(s.declared, s.kind)
	return s
}

// setupStrict: the lag is not declared, so "absent" never concludes; and the
// provider may take far longer than anyone believes.
func setupStrict(copies, faults int) setup {
	s := setupC(copies, faults)
	s.name = "C-strict"
	s.declared.LagDeclared, s.declared.Times.LookupLag = false, 0
	s.kind.lag, s.kind.inFlight = 6, 6
	return s
}

func keyedWithLookup(name string, k kind, copies, faults int) setup {
	k.lag = 1
	s := setupOf(name+" with lookup", k, copies, faults)
	s.declared = withLookup(s.declared, k)
	return s
}

func with(s setup, change func(*setup)) setup {
	change(&s)
	return s
}

// keyedOnly narrows a kind to effects and one other answer, which is enough
// for one harm and keeps the search short.
func keyedOnly(k kind, other int) setup {
	k.refuses, k.fails, k.unauthorized, k.inProgress = other == 422, false, other == 401, other == 409
	return setupOf("narrow keyed", k, 2, 0)
}

// keyedAndLookup has a slow lookup between the read and the resend.
func keyedAndLookup() setup {
	s := keyedWithLookup("narrow keyed", kindA(), 2, 0)
	s.kind.refuses, s.kind.fails, s.kind.unauthorized = false, false, false
	return s
}

func lookupOnly(others ...int) setup {
	s := setupC(2, 0)
	s.name = "narrow lookup"
	s.kind.refuses, s.kind.fails, s.kind.unauthorized = len(others) > 0, false, false
	return s
}

// retention: deliveries end, copies end, and only then done rows go.
func retention() setup {
	s := setupD(2, 0)
	s.name = "retention"
	s.forgets, s.window, s.handlerMax, s.keep = true, 3, 3, 6
	return s
}
