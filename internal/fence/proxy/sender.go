// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// sender sends one app's request. It is a fence.Sender for one call.
type sender struct {
	*asker
	id        *expression // the provider's id in a reply; nil: it gives none
	transport http.RoundTripper
	clock     fence.Clock
	posted    func() // called when a request may have been written

	method string
	url    *url.URL
	header http.Header // end to end, without a key
	body   []byte
}

var _ fence.Sender = (*sender)(nil)

// Send implements fence.Sender. It asks the transport once; see once.
func (s *sender) Send(ctx context.Context, order fence.Step) fence.Event {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	permission := &once{until: order.SendBy, now: s.clock.Now}
	timer := time.AfterFunc(order.SendBy.Sub(s.clock.Now()), func() {
		if permission.expire() {
			cancel(errTooLate)
		}
	})
	defer timer.Stop()
	response, err := s.transport.RoundTrip(s.request(withOnce(ctx, permission), order.Key))
	if permission.seal() {
		if err == nil { // a transport that answers by itself
			_ = response.Body.Close()
			err = errors.New("an answer without a request")
		}
		return fence.Event{Kind: fence.EventNotSent, Reason: reasonOf(ctx, err)}
	}
	s.posted()
	if err != nil {
		return fence.Event{Kind: fence.EventBroken, Reason: reasonOf(ctx, err)}
	}
	defer func() { _ = response.Body.Close() }()
	return s.hear(ctx, response)
}

func (s *sender) hear(ctx context.Context, response *http.Response) fence.Event {
	body, err := io.ReadAll(io.LimitReader(response.Body, s.provider.MaxReply+1))
	success := response.StatusCode >= 200 && response.StatusCode <= 299
	tooLong := int64(len(body)) > s.provider.MaxReply
	var reply fence.Reply
	switch {
	case err != nil:
		return fence.Event{Kind: fence.EventBroken, Reason: fmt.Sprintf("status %d, then %s", response.StatusCode, reasonOf(ctx, err))}
	case tooLong && !success:
		return fence.Event{Kind: fence.EventBroken, Reason: fmt.Sprintf("status %d with a body above %d bytes", response.StatusCode, s.provider.MaxReply)}
	case tooLong: // the effect is certain all the same
		reply.Response = s.provider.responseWithoutBody(response.StatusCode, response.Header)
	default:
		reply.Response = s.provider.response(response.StatusCode, response.Header, body)
		if success {
			reply.Response.ProviderID = s.providerID(response, body)
		}
	}
	reply.RetryAfter, reply.HasRetry = retryAfter(response.Header, s.clock.Now())
	return fence.Event{Kind: fence.EventReplied, Reply: reply}
}

// providerID of an effect. The effect is one without it, too.
func (s *sender) providerID(response *http.Response, body []byte) string {
	if s.id == nil {
		return ""
	}
	over, err := ofReply(response.StatusCode, response.Header, body)
	if err == nil {
		var id string
		if id, err = s.id.id(over); err == nil {
			return id
		}
	}
	s.log.Warn("providerId cannot be evaluated", "provider", s.provider.Scope, "status", response.StatusCode, "error", err)
	return ""
}

// request has no GetBody, so nothing can produce its body a second time.
func (s *sender) request(ctx context.Context, key string) *http.Request {
	r := (&http.Request{
		Method: s.method, URL: s.url, Host: s.provider.Base.Host, Header: s.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(s.body)),
	}).WithContext(ctx)
	if len(s.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(s.body))
	}
	if name := s.provider.KeyHeader; name != "" {
		r.Header.Set(name, key)
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header["User-Agent"] = nil // not Go's own
	}
	return r
}

// reasonOf names why, and never the request: an error may quote its URL.
func reasonOf(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var quoting *url.Error
	if errors.As(err, &quoting) {
		err = quoting.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no reply within the provider's timeout"
	}
	return err.Error()
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if when, err := http.ParseTime(value); err == nil {
		return max(0, when.Sub(now)), true
	}
	return 0, false
}
