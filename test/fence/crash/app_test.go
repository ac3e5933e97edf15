// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// What the first holder of a claim does. Every later one works.
const (
	works      behaviour = "works"
	diesBefore behaviour = "dies before its work"
	diesAfter  behaviour = "dies after its work"
	worksLate  behaviour = "stands still and works late"
	declines   behaviour = "releases"
	cannotTell behaviour = "works and cannot tell"
)

// claimAnswer is what the claims API says.
type claimAnswer struct {
	status              int
	Answer, Token, Type string
	DoWithinSeconds     float64
}

// attempt is one run of a job that works under a claim.
func (r *run) attempt(ctx context.Context, s *sidecar) (told, error) {
	began := time.Now()
	r.mu.Lock()
	r.nonces++
	nonce := fmt.Sprint("n", r.nonces)
	r.mu.Unlock()
	a, err := r.ask(ctx, s, "", map[string]string{"key": r.id, "nonce": nonce})
	if err != nil {
		return told{}, err
	}
	switch a.Answer {
	case "granted":
		within := time.Duration(a.DoWithinSeconds * float64(time.Second))
		return r.hold(ctx, s, a.Token, began.Add(within))
	case "check":
		return r.look(ctx, s, a.Token)
	case "done":
		return told{Status: a.status}, nil
	}
	return told{Status: a.status, Problem: a.Type}, nil
}

// hold is the life of a holder, who begins no work when its time is over.
func (r *run) hold(ctx context.Context, s *sidecar, token string, until time.Time) (told, error) {
	as := r.behaviourOf(token)
	switch c := r.h.bank.counts(r.id); {
	case as == "":
		return told{}, errors.New("I7: one grant for two attempts")
	case c.effects > 0 || c.open > 0:
		return told{}, fmt.Errorf("I4: granted with %d effects and %d holders at work", c.effects, c.open)
	case as == diesBefore || killed(ctx) || time.Now().After(until):
		return told{}, nil
	case as == declines:
		_, err := r.ask(ctx, s, "release", map[string]string{"token": token})
		return told{}, err
	}
	r.h.bank.work(r.id, as == worksLate)
	switch as {
	case diesAfter, worksLate:
		return told{}, nil
	case cannotTell:
		_, err := r.ask(ctx, s, "unknown", map[string]string{"token": token})
		return told{}, err
	}
	return r.complete(ctx, s, token)
}

// behaviourOf is what the holder of a new grant does; empty for a known one.
func (r *run) behaviourOf(token string) behaviour {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.granted[token]:
		return ""
	case len(r.granted) == 0:
		r.granted[token] = true
		return r.first
	}
	r.granted[token] = true
	return works
}

func (r *run) complete(ctx context.Context, s *sidecar, token string) (told, error) {
	a, err := r.ask(ctx, s, "complete", map[string]string{"token": token, "providerId": r.id})
	if a.status != http.StatusOK {
		return told{}, err
	}
	return told{Status: a.status}, err
}

// look finds out what a holder that vanished has done, and says so.
func (r *run) look(ctx context.Context, s *sidecar, token string) (told, error) {
	if r.h.bank.counts(r.id).effects > 0 {
		return r.complete(ctx, s, token)
	}
	r.mu.Lock()
	r.looked = append(r.looked, token)
	r.mu.Unlock()
	_, err := r.ask(ctx, s, "release", map[string]string{"token": token})
	return told{}, err
}

// sayAgain is an app that looked in an earlier delivery, found nothing, stood
// still, and says so only now.
func (r *run) sayAgain(ctx context.Context, s *sidecar) error {
	r.mu.Lock()
	looked := r.looked
	r.mu.Unlock()
	for _, token := range looked {
		if _, err := r.ask(ctx, s, "release", map[string]string{"token": token}); err != nil {
			return err
		}
	}
	return nil
}

// ask asks until there is an answer, like an app that does not give up at once:
// what it says is the same each time.
func (r *run) ask(ctx context.Context, s *sidecar, ending string, says map[string]string) (claimAnswer, error) {
	says["scope"] = r.kind.name
	body, err := json.Marshal(says)
	if err != nil {
		return claimAnswer{}, err
	}
	path := "/v1/claims"
	if ending != "" {
		path += "/" + r.id + "/" + ending
	}
	var a claimAnswer
	for range 3 {
		base, err := s.serve(r.h.binary)
		if err != nil {
			return a, err
		}
		if a = r.post(ctx, base+path, body); killed(ctx) || a.status != 0 && a.status != http.StatusServiceUnavailable {
			break
		}
	}
	return a, nil
}

func killed(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// post returns an empty answer where there was none.
func (r *run) post(ctx context.Context, url string, body []byte) claimAnswer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return claimAnswer{}
	}
	request.Header.Set("X-Run", r.id)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return claimAnswer{}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	a := claimAnswer{status: response.StatusCode}
	if err != nil || json.Unmarshal(text, &a) != nil {
		return claimAnswer{}
	}
	a.Type = strings.TrimPrefix(a.Type, "urn:queueworker:fence:")
	return a
}
