// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/queueworker/operator/internal/fence"
)

// kept is what a row's headers column holds.
type kept struct {
	Header http.Header `json:"header,omitempty"`
	Cut    bool        `json:"cut,omitempty"` // the body was too long to be stored
}

func (k kept) encode() []byte {
	text, err := json.Marshal(k)
	if err != nil { // maps of strings always encode
		return nil
	}
	return text
}

// decodeKept reads what another version, or a person, may have written.
func decodeKept(text []byte) kept {
	var k kept
	if len(text) == 0 || json.Unmarshal(text, &k) != nil {
		return kept{}
	}
	return k
}

// response is what is stored, and passed on, of a reply.
func (p *Provider) response(status int, header http.Header, body []byte) fence.Response {
	if body == nil {
		body = []byte{}
	}
	return fence.Response{Status: status, Headers: kept{Header: p.keep(header)}.encode(), Body: body, BodyDigest: sha256.Sum256(body)}
}

// responseWithoutBody is for a body that is too long to be read.
func (p *Provider) responseWithoutBody(status int, header http.Header) fence.Response {
	return fence.Response{Status: status, Headers: kept{Header: p.keep(header), Cut: true}.encode(), Body: []byte{}}
}

func (p *Provider) keep(header http.Header) http.Header {
	some := http.Header{}
	for _, name := range p.Keep {
		if values := header.Values(name); len(values) > 0 {
			some[name] = values
		}
	}
	return some
}

// cutting stores no body above a limit, only its digest. Who made the call
// still gets all of it.
type cutting struct {
	fence.Store
	limit int
}

func (c cutting) Apply(ctx context.Context, s fence.Statement) (bool, error) {
	if r := s.Response; r != nil && len(r.Body) > c.limit {
		short := *r
		k := decodeKept(r.Headers)
		k.Cut = true
		short.Headers, short.Body = k.encode(), []byte{}
		s.Response = &short
	}
	return c.Store.Apply(ctx, s)
}

// Headers that tell an app what it was given.
const (
	headerReplayed = "Idempotency-Replayed"    // true: the answer is the stored one
	headerBody     = "Idempotency-Body"        // omitted: the provider's body is not there any more
	headerDigest   = "Repr-Digest"             // of the omitted body (RFC 9530)
	headerID       = "Idempotency-Provider-Id" // the provider's own id for the effect, where one is known
)

// writeResponse tells the app what the provider said.
func writeResponse(w http.ResponseWriter, a fence.Answer) {
	r := a.Response
	if r == nil {
		r = &fence.Response{}
	}
	k := decodeKept(r.Headers)
	for name, values := range k.Header {
		w.Header()[name] = values
	}
	if a.Replayed {
		w.Header().Set(headerReplayed, "true")
	}
	if r.ProviderID != "" {
		w.Header().Set(headerID, r.ProviderID)
	}
	if k.Cut || r.Body == nil || r.Status == 0 {
		w.Header().Set(headerBody, "omitted")
		if r.BodyDigest != (fence.Digest{}) {
			w.Header().Set(headerDigest, "sha-256=:"+base64.StdEncoding.EncodeToString(r.BodyDigest[:])+":")
		}
		w.Header().Del("Content-Encoding")
	}
	status := r.Status
	if status == 0 { // a person settled the key and knew only the provider's id
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, _ = w.Write(r.Body)
}
