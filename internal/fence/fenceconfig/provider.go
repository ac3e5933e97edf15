// SPDX-License-Identifier: Apache-2.0

package fenceconfig

import (
	"fmt"
	"net/url"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
)

// Provider is one API that is called through the fence.
type Provider struct {
	// Name is the first part of the path that the app calls.
	Name string `json:"name"`
	// URL is where the rest of the path goes.
	URL string `json:"url"`
	// Key is a CEL expression that makes the key where the app sends none, over
	// method, path, headers and body: string(body.order_id) + "/charge". It
	// must come from the business operation.
	Key string `json:"key"`
	// KeyHeader is the header in which this provider expects the key. Empty:
	// the key is not sent.
	KeyHeader string `json:"keyHeader"`

	// TimeoutSeconds is how long a reply is waited for, at most HTTPSeconds
	// less SendWindowSeconds and twice StatementSeconds; 0: that much. A copy
	// that finds the key free or unknown has asked the database once before it
	// claims: without time for that, no key could ever be sent a second time.
	TimeoutSeconds int `json:"timeoutSeconds"`
	// SendWindowSeconds may pass from the claim to the first byte. Default 1.
	SendWindowSeconds int `json:"sendWindowSeconds"`
	// StatementSeconds is what the database may take for both statements of a
	// call. Default 1.
	StatementSeconds int `json:"statementSeconds"`
	// MaxInFlightSeconds is how long after its start a request may still act,
	// everything in between included. Default 300, at least the timeout + 30.
	MaxInFlightSeconds int `json:"maxInFlightSeconds"`

	// KeyTTLSeconds is how long the provider remembers a key. 0: it does not.
	KeyTTLSeconds int `json:"keyTTLSeconds"`
	// StoresErrors: the provider replays errors as well, not only successes.
	StoresErrors bool `json:"storesErrors"`
	// ActsOn5xx: an answer of 5xx may follow an effect. Left out: it may.
	ActsOn5xx *bool `json:"actsOn5xx"`
	// ResendLimit is how often one key is sent again before a person is asked.
	// Default 3.
	ResendLimit int `json:"resendLimit"`
	// ReviewAfterSeconds ends the machine's attempts. 0: they go on.
	ReviewAfterSeconds int `json:"reviewAfterSeconds"`

	// ProviderID is a CEL expression over status, headers and body that finds,
	// in a reply of success, the provider's own id for the effect.
	ProviderID string `json:"providerId"`
	// Lookup is how the provider is asked about a key. Left out: it cannot be.
	Lookup *Lookup `json:"lookup"`
	// LookupLagSeconds is the longest time from an effect to a lookup that shows
	// it. Left out: a lookup that finds nothing proves nothing.
	LookupLagSeconds *int `json:"lookupLagSeconds"`

	// DidNotAct are those of 401, 403, 407, 429 and 503 (with Retry-After) with
	// which this provider promises that nothing happened.
	DidNotAct []int `json:"didNotAct"`
	// FinalRefusals are further 4xx that refuse for good.
	FinalRefusals []int `json:"finalRefusals"`
	// KeepHeaders are those of a reply that are stored and passed on. Left
	// out: the usual ones.
	KeepHeaders []string `json:"keepHeaders"`
	// MaxStoredBytes is the longest body that is stored; default 262144.
	MaxStoredBytes int `json:"maxStoredBytes"`
}

// Lookup is a request template and what its reply means. Each expression is CEL
// over status, headers (by lower-case name), body (the JSON, or null), key and
// sentKey. A reply for which not exactly one of succeeded, processing, absent
// and refused holds, or one of them cannot be evaluated, tells nothing.
type Lookup struct {
	// Method is GET, or POST for a search without an effect. Default GET.
	Method string `json:"method"`
	// Path goes behind the provider's url, with its query. In path and body,
	// {key} stands for the key as the app named it, for providers that are
	// searched by what the app's own request carries, and {sentKey} for what
	// keyHeader carried.
	Path string `json:"path"`
	// Body of a POST; the key is put in as part of a JSON text.
	Body    string         `json:"body"`
	Headers []LookupHeader `json:"headers"`

	// Succeeded: the effect is there. Required.
	Succeeded string `json:"succeeded"`
	// Processing: the original is still at work.
	Processing string `json:"processing"`
	// Absent: there is nothing. It counts only for a lookup that began when no
	// request could act any more, and only with lookupLagSeconds.
	Absent string `json:"absent"`
	// Refused: a final failure without an effect.
	Refused string `json:"refused"`
	// ProviderID finds the provider's own id for the effect.
	ProviderID string `json:"providerId"`
	// Result makes the body that later copies of the call are told, as JSON.
	// Left out: they are told the status and the id.
	Result string `json:"result"`
}

// LookupHeader has a value or a file that holds it, as a mounted Secret; the
// file is read for each lookup.
type LookupHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	File  string `json:"file"`
}

// inFlightMargin is what a request may outlive the wait for its reply at least.
const inFlightMargin = 30

// KeysProtect reports whether sending the same key again can have no second
// effect. Keys do not protect where errors are not stored with them although
// one may hide an effect: such a provider is treated as if it ignored keys.
func (p *Provider) KeysProtect() bool {
	mayHide := p.ActsOn5xx == nil || *p.ActsOn5xx
	return p.KeyTTLSeconds > 0 && (p.StoresErrors || !mayHide)
}

// Kind is the short name of what a provider offers, as docs/fence.md has it.
func (p *Provider) Kind() string {
	asked := ""
	switch {
	case p.Lookup != nil && p.LookupLagSeconds == nil:
		asked = "can be asked, lag not declared"
	case p.Lookup != nil:
		asked = "can be asked"
	}
	switch {
	case p.KeysProtect() && p.StoresErrors:
		return join("stores results and errors", asked)
	case p.KeysProtect():
		return join("stores successes only", asked)
	case asked != "":
		return asked
	case p.KeyTTLSeconds > 0:
		return "keys do not protect"
	}
	return "nothing"
}

func join(kind, asked string) string {
	if asked == "" {
		return kind
	}
	return kind + ", " + asked
}

// Declared are the providers as the proxy takes them. The configuration was
// validated.
func (c *Config) Declared() []proxy.Provider {
	all := make([]proxy.Provider, len(c.Providers))
	for i := range c.Providers {
		all[i] = c.declared(&c.Providers[i])
	}
	return all
}

func (c *Config) declared(from *Provider) proxy.Provider {
	base, _ := url.Parse(from.URL) // nil is refused later
	p := proxy.Provider{
		Base: base, Key: from.Key, KeyHeader: from.KeyHeader, ProviderID: from.ProviderID, Ask: from.Lookup.declared(),
		Keep: from.KeepHeaders, MaxStored: from.MaxStoredBytes,
		Provider: fence.Provider{
			Scope: from.Name, DidNotAct: from.DidNotAct, Final: from.FinalRefusals,
			ReviewAfter: seconds(from.ReviewAfterSeconds),
			Times: fence.Times{
				SendWindow: seconds(or(from.SendWindowSeconds, 1)), StatementBudget: seconds(or(from.StatementSeconds, 1)),
				ClientLimit: seconds(c.HTTPSeconds), InFlight: seconds(or(from.MaxInFlightSeconds, 300)),
			},
		},
	}
	t := &p.Times
	if from.LookupLagSeconds != nil {
		p.LagDeclared, t.LookupLag = true, seconds(*from.LookupLagSeconds)
	}
	t.ProviderTimeout = seconds(from.TimeoutSeconds)
	if from.TimeoutSeconds == 0 {
		t.ProviderTimeout = longest(t)
	}
	if from.KeysProtect() {
		t.KeyLife, p.MaxResends = seconds(from.KeyTTLSeconds), or(from.ResendLimit, 3)
	}
	return p.WithDefaults()
}

func (l *Lookup) declared() *proxy.Lookup {
	if l == nil {
		return nil
	}
	ask := &proxy.Lookup{
		Method: l.Method, Path: l.Path, Body: l.Body, Succeeded: l.Succeeded, Processing: l.Processing,
		Absent: l.Absent, Refused: l.Refused, ProviderID: l.ProviderID, Result: l.Result,
	}
	for _, h := range l.Headers {
		ask.Headers = append(ask.Headers, proxy.LookupHeader{Name: h.Name, Value: h.Value, File: h.File})
	}
	return ask
}

// longest is the longest wait for a reply that lets a second copy send.
func longest(t *fence.Times) time.Duration {
	return t.ClientLimit - t.SendWindow - 2*t.StatementBudget
}

func (c *Config) validateProviders() []error {
	var all []error
	seen := map[string]bool{}
	for i := range c.Providers {
		from := &c.Providers[i]
		at := fmt.Sprintf("providers[%d]", i)
		p := c.declared(from)
		least := p.Times.ProviderTimeout + seconds(inFlightMargin)
		err := p.Validate()
		switch {
		case err != nil:
			all = append(all, fmt.Errorf("%s: %w", at, err))
		case seen[from.Name]:
			all = append(all, fmt.Errorf("%s: the name %s is used twice", at, from.Name))
		case p.Times.ProviderTimeout > longest(&p.Times):
			all = append(all, fmt.Errorf("%s.timeoutSeconds: %d: a copy that finds the key free or unknown would have no time left to send: at most %d (httpSeconds %d less sendWindowSeconds and twice statementSeconds)",
				at, from.TimeoutSeconds, longest(&p.Times)/time.Second, c.HTTPSeconds))
		case p.Times.InFlight < least:
			all = append(all, fmt.Errorf("%s.maxInFlightSeconds: %d: a request may act longer than its reply is waited for: at least %d",
				at, or(from.MaxInFlightSeconds, 300), least/time.Second))
		}
		seen[from.Name] = true
	}
	return all
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func or(n, unset int) int {
	if n == 0 {
		return unset
	}
	return n
}
