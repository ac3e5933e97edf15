// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/queueworker/operator/internal/fence"
)

// Provider is where the calls under /<scope>/ go.
type Provider struct {
	fence.Provider // Scope is also the first segment of the path

	Base       *url.URL // scheme, host and, where wanted, a path in front of the call's
	Key        string   // a CEL expression that makes the key where an app sends none; see compileKey
	KeyHeader  string   // under which the key is sent on; "" = it is not
	ProviderID string   // a CEL expression that finds the provider's id for an effect in its reply
	Ask        *Lookup  // nil: the provider cannot be asked
	Keep       []string // headers of the reply that are stored and passed on
	MaxBody    int64    // bytes of a request
	MaxReply   int64    // bytes of a reply's body that are passed on
	MaxStored  int      // bytes of a reply's body that are stored
	TLS        *tls.Config
}

// ReservedName is the first segment of the fence's own paths.
const ReservedName = "v1"

// Headers of a reply that are kept unless a provider says otherwise. Cookies
// and dates belong to one exchange.
var keptByDefault = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition",
	"Location", "Link", "Etag", "Retry-After", "Request-Id", "X-Request-Id",
}

const (
	defaultMaxBody   = 1 << 20
	defaultMaxReply  = 8 << 20
	defaultMaxStored = 256 << 10
)

// WithDefaults fills in what was left out.
func (p Provider) WithDefaults() Provider {
	if p.Keep == nil {
		p.Keep = keptByDefault
	}
	keep := make([]string, len(p.Keep))
	for i, name := range p.Keep {
		keep[i] = textproto.CanonicalMIMEHeaderKey(name)
	}
	p.Keep = keep
	if p.Ask != nil && p.Ask.Method == "" {
		ask := *p.Ask
		ask.Method = http.MethodGet
		p.Ask = &ask
	}
	p.Lookup = p.Ask != nil
	if p.MaxBody == 0 {
		p.MaxBody = defaultMaxBody
	}
	if p.MaxReply == 0 {
		p.MaxReply = defaultMaxReply
	}
	if p.MaxStored == 0 {
		p.MaxStored = defaultMaxStored
	}
	return p
}

// Validate refuses a declaration that cannot be kept.
func (p *Provider) Validate() error {
	if err := p.Provider.Validate(); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(p.Scope, "/?#%\\") || p.Scope == "." || p.Scope == "..":
		return fmt.Errorf("provider %q: the name is a segment of a path, it cannot hold / ? # %% or \\", p.Scope)
	case p.Scope == ReservedName:
		return fmt.Errorf("provider %s: the name is the fence's own: /%s/ is where claims and the review are", p.Scope, p.Scope)
	case p.Base == nil || p.Base.Scheme != "http" && p.Base.Scheme != "https" || p.Base.Host == "":
		return fmt.Errorf("provider %s: the base URL is %v, it must be http:// or https:// and a host", p.Scope, p.Base)
	case p.Base.User != nil || p.Base.RawQuery != "" || p.Base.Fragment != "":
		return fmt.Errorf("provider %s: the base URL %s may hold neither a user, nor a query, nor a fragment", p.Scope, p.Base.Redacted())
	case p.KeyHeader != "" && !httpguts.ValidHeaderFieldName(p.KeyHeader):
		return fmt.Errorf("provider %s: %q is no name of a header", p.Scope, p.KeyHeader)
	case p.Keyed() && p.KeyHeader == "":
		return fmt.Errorf("provider %s: it remembers keys, but no header is named to send them in", p.Scope)
	case p.MaxBody < 0 || p.MaxReply < 0 || p.MaxStored < 0:
		return fmt.Errorf("provider %s: limits of bodies cannot be negative", p.Scope)
	}
	if _, err := compileKey(p.Key); p.Key != "" && err != nil {
		return fmt.Errorf("provider %s: the key's expression: %w", p.Scope, err)
	}
	if err := p.validateAsking(); err != nil {
		return fmt.Errorf("provider %s: %w", p.Scope, err)
	}
	for _, name := range p.Keep {
		if !httpguts.ValidHeaderFieldName(name) || hopByHop(name) {
			return fmt.Errorf("provider %s: the header %q cannot be kept", p.Scope, name)
		}
	}
	return nil
}

// validateAsking judges what is needed to learn of an effect.
func (p *Provider) validateAsking() error {
	if _, err := compileID(p.ProviderID, replyVariables); p.ProviderID != "" && err != nil {
		return fmt.Errorf("providerId: %w", err)
	}
	switch {
	case p.Ask == nil && p.LagDeclared:
		return fmt.Errorf("lookupLagSeconds: %d: says how late a lookup may be, and there is none: leave it out or declare lookup", p.Times.LookupLag/time.Second)
	case p.Ask == nil:
		return nil
	case p.LagDeclared && p.Ask.Absent == "":
		return fmt.Errorf("lookupLagSeconds: %d: says when \"absent\" counts, and lookup.absent is not set: set it or leave the lag out", p.Times.LookupLag/time.Second)
	}
	return p.Ask.validate(p.KeyHeader)
}

// hopByHop headers are about one connection (RFC 9110, section 7.6.1).
func hopByHop(name string) bool {
	return slices.Contains([]string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
	}, textproto.CanonicalMIMEHeaderKey(name))
}

// endToEnd is the header without what is about the connection.
func endToEnd(from http.Header) http.Header {
	h := from.Clone()
	for _, list := range from.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for name := range h {
		if hopByHop(name) {
			delete(h, name)
		}
	}
	h.Del("Expect")
	return h
}
