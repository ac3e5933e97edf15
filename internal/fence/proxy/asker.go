// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/queueworker/operator/internal/fence"
)

// asker asks one provider about keys. It sends nothing that has an effect, so
// it is the fence.Sender of sweeps.
type asker struct {
	provider  *Provider
	lookup    *lookup // nil: the provider cannot be asked
	transport http.RoundTripper
	log       *slog.Logger
	watch     Watch
}

var _ fence.Sender = (*asker)(nil)

// Send implements fence.Sender.
func (a *asker) Send(context.Context, fence.Step) fence.Event {
	return fence.Event{Kind: fence.EventNotSent, Reason: "a sweep sends nothing"}
}

// LookUp implements fence.Sender. Whatever goes wrong means that nothing is
// sure.
func (a *asker) LookUp(ctx context.Context, order fence.Step) fence.Lookup {
	if a.lookup == nil {
		return fence.Lookup{}
	}
	found, err := a.ask(ctx, order)
	if err != nil {
		a.log.Warn("a lookup told nothing", "provider", a.provider.Scope, "key", order.ID, "error", reasonOf(ctx, err))
		found = fence.Lookup{}
	}
	a.watch.LookedUp(a.provider.Scope, found.Finding)
	return found
}

func (a *asker) ask(ctx context.Context, order fence.Step) (fence.Lookup, error) {
	request, err := a.request(ctx, order.ID, order.Key)
	if err != nil {
		return fence.Lookup{}, err
	}
	response, err := a.transport.RoundTrip(request)
	if err != nil {
		return fence.Lookup{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, a.provider.MaxReply+1))
	switch {
	case err != nil:
		return fence.Lookup{}, err
	case int64(len(body)) > a.provider.MaxReply:
		return fence.Lookup{}, fmt.Errorf("the reply is longer than %d bytes", a.provider.MaxReply)
	}
	over, err := ofReply(response.StatusCode, response.Header, body)
	if err != nil {
		return fence.Lookup{}, err
	}
	over["key"], over["sentKey"] = order.ID, order.Key
	finding, err := a.lookup.judge(over)
	if err != nil {
		return fence.Lookup{}, fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	return a.found(finding, over), nil
}

func (a *asker) request(ctx context.Context, key, sentKey string) (*http.Request, error) {
	l := a.lookup
	path, query, _ := strings.Cut(l.Path, "?")
	u := target(a.provider.Base, fill(path, key, sentKey, url.PathEscape), fill(query, key, sentKey, url.QueryEscape))
	r, err := http.NewRequestWithContext(ctx, l.Method, u.String(), strings.NewReader(l.bodyFor(key, sentKey)))
	if err != nil {
		return nil, err
	}
	for _, h := range l.Headers {
		value := h.Value
		if h.File != "" {
			text, err := os.ReadFile(h.File)
			if err != nil {
				return nil, fmt.Errorf("the header %s: %w", h.Name, err)
			}
			value = strings.TrimSpace(string(text))
		}
		r.Header.Set(h.Name, value)
	}
	return r, nil
}

// judge wants exactly one expression to be true. One that cannot be evaluated
// might have been true, so it leaves nothing sure.
func (l *lookup) judge(over map[string]any) (fence.Finding, error) {
	found, named := fence.FoundNothingSure, ""
	for _, e := range []struct {
		name    string
		is      *expression
		finding fence.Finding
	}{
		{"succeeded", l.succeeded, fence.FoundEffect}, {"processing", l.processing, fence.FoundProcessing},
		{"absent", l.absent, fence.FoundAbsent}, {"refused", l.refused, fence.FoundRefusal},
	} {
		if e.is == nil {
			continue
		}
		out, err := e.is.eval(over)
		if err != nil {
			return fence.FoundNothingSure, fmt.Errorf("%s: %w", e.name, err)
		}
		holds, isBool := out.(bool)
		switch {
		case !isBool:
			return fence.FoundNothingSure, fmt.Errorf("%s gives %T, not true or false", e.name, out)
		case holds && named != "":
			return fence.FoundNothingSure, fmt.Errorf("both %s and %s hold", named, e.name)
		case holds:
			found, named = e.finding, e.name
		}
	}
	if named == "" {
		return found, errors.New("no expression holds")
	}
	return found, nil
}

// Statuses of an answer that a lookup found.
const (
	statusFound   = http.StatusOK
	statusRefused = http.StatusUnprocessableEntity
)

// found is what copies of the call are told. An effect is one, even where its
// id or its body cannot be read.
func (a *asker) found(finding fence.Finding, over map[string]any) fence.Lookup {
	if finding != fence.FoundEffect && finding != fence.FoundRefusal {
		return fence.Lookup{Finding: finding}
	}
	response := fence.Response{Status: statusFound, Body: []byte{}, Headers: kept{Cut: true}.encode()}
	if finding == fence.FoundRefusal {
		response.Status = statusRefused
	}
	if a.lookup.result != nil {
		body, err := a.lookup.result.json(over)
		if err == nil {
			response.Body, response.BodyDigest = body, sha256.Sum256(body)
			response.Headers = kept{Header: http.Header{"Content-Type": {"application/json"}}}.encode()
		} else {
			a.log.Warn("lookup.result cannot be evaluated", "provider", a.provider.Scope, "error", err)
		}
	}
	if a.lookup.id != nil {
		id, err := a.lookup.id.id(over)
		if err != nil {
			a.log.Warn("lookup.providerId cannot be evaluated", "provider", a.provider.Scope, "error", err)
		}
		response.ProviderID = id
	}
	return fence.Lookup{Finding: finding, Response: response}
}
