// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/claims"
	"github.com/queueworker/operator/internal/fence/store/memory"
)

// fenced is a running handler, its table, and a clock that only a test moves.
type fenced struct {
	*httptest.Server
	store *memory.Store
	began time.Time
	later atomic.Int64
	watch *watch
}

// Now implements fence.Clock.
func (f *fenced) Now() time.Time { return f.began.Add(time.Duration(f.later.Load())) }

// Sleep implements fence.Clock.
func (f *fenced) Sleep(_ context.Context, d time.Duration) error {
	f.pass(d)
	return nil
}

type watch struct {
	mu        sync.Mutex
	claimed   []string
	conflicts int
}

func (w *watch) Claimed(_, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed = append(w.claimed, answer)
}

func (w *watch) Ended(_, _, _ string, conflict bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if conflict {
		w.conflicts++
	}
}

func start(t *testing.T, wrap ...func(fence.Store) fence.Store) *fenced {
	t.Helper()
	f := &fenced{began: time.Now(), watch: &watch{}}
	f.store = memory.New(f.Now)
	var store fence.Store = f.store
	for _, w := range wrap {
		store = w(store)
	}
	times := fence.ClaimTimes(60*time.Second, 300*time.Second, time.Second)
	f.Server = httptest.NewServer(claims.New(claims.Config{
		Claims: []fence.Claims{
			{Provider: fence.Provider{Scope: "mail", Times: times}},
			{Provider: fence.Provider{Scope: "stock", Times: times, LagDeclared: true, ReviewAfter: time.Hour}, CanCheck: true},
		},
		Store: store, Clock: f, Owner: "pod-a", Log: slog.New(slog.DiscardHandler), Watch: f.watch,
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fenced) pass(d time.Duration) { f.later.Add(int64(d)) }

// answer is what the app got.
type answer struct {
	status     int
	retryAfter string

	Answer, Token, State, Type string
	Detail                     string
	DoWithinSeconds            float64
	Result                     json.RawMessage
	ProviderID                 string `json:"providerId"`
}

func (f *fenced) post(t *testing.T, path, body string) answer {
	t.Helper()
	response, err := http.Post(f.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	a := answer{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After")}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%d %s: %v", response.StatusCode, text, err)
	}
	a.Type = strings.TrimPrefix(a.Type, "urn:queueworker:fence:")
	return a
}

func (f *fenced) claim(t *testing.T, scope, nonce string) answer {
	t.Helper()
	return f.post(t, "/v1/claims", `{"scope":"`+scope+`","key":"order/1","nonce":"`+nonce+`","payload":{"to": "a"}}`)
}

func (f *fenced) end(t *testing.T, scope, how, token, more string) answer {
	t.Helper()
	return f.post(t, "/v1/claims/"+url.PathEscape("order/1")+"/"+how, `{"scope":"`+scope+`","token":"`+token+`"`+more+`}`)
}

func (a answer) want(t *testing.T, status int, answer string) {
	t.Helper()
	if got := a.Answer + a.Type; a.status != status || got != answer {
		t.Errorf("answer %d %q (%s), want %d %q", a.status, got, a.Detail, status, answer)
	}
}

func (f *fenced) state(t *testing.T, scope string, want fence.State) {
	t.Helper()
	row, err := f.store.Read(t.Context(), fence.Key{Scope: scope, ID: "order/1"})
	if err != nil || row.State != want {
		t.Errorf("the row is %s (%v), want %s", row.State, err, want)
	}
}

func TestDoneIsToldAgain(t *testing.T) {
	f := start(t)
	granted := f.claim(t, "mail", "a")
	granted.want(t, 200, "granted")
	if granted.DoWithinSeconds != 60 || len(granted.Token) != 32 {
		t.Errorf("%+v", granted)
	}
	busy := f.claim(t, "mail", "b")
	busy.want(t, 409, "busy")
	if busy.retryAfter != "60" || busy.Token != "" {
		t.Errorf("%+v", busy)
	}
	f.pass(10 * time.Second)
	again := f.claim(t, "mail", "a")
	again.want(t, 200, "granted")
	if again.Token != granted.Token || again.DoWithinSeconds != 50 {
		t.Errorf("asked again: %+v", again)
	}
	f.end(t, "mail", "complete", granted.Token, `,"result":{"id":12345678901234567},"providerId":"m-1"`).want(t, 200, "")
	f.state(t, "mail", fence.Done)
	for _, nonce := range []string{"a", "c"} {
		done := f.claim(t, "mail", nonce)
		done.want(t, 200, "done")
		if string(done.Result) != `{"id":12345678901234567}` || done.ProviderID != "m-1" {
			t.Errorf("%+v", done)
		}
	}
	f.post(t, "/v1/claims", `{"scope":"mail","key":"order/1","nonce":"d","payload":{"to": "b"}}`).want(t, 422, "payload-differs")
	f.post(t, "/v1/claims", `{"payload":{"to":"a"},"scope":"mail","key":"order/1","nonce":"d"}`).want(t, 200, "done") // spaces mean nothing
	if first := f.end(t, "mail", "complete", granted.Token, `,"providerId":"m-1"`); first.State != "done" || f.watch.conflicts != 0 {
		t.Errorf("said again: %+v, %d conflicts", first, f.watch.conflicts)
	}
	if second := f.end(t, "mail", "complete", granted.Token, `,"providerId":"m-2"`); second.ProviderID != "m-1" || f.watch.conflicts != 1 {
		t.Errorf("two effects: %+v, %d conflicts", second, f.watch.conflicts)
	}
	f.end(t, "mail", "release", granted.Token, "").want(t, 200, "done")
	f.state(t, "mail", fence.Done)
}

func TestReleasedIsGrantedToTheNext(t *testing.T) {
	f := start(t)
	first := f.claim(t, "mail", "a")
	for range 2 { // said again after a lost reply
		if a := f.end(t, "mail", "release", first.Token, `,"reason":"the server refused the connection"`); a.status != 200 || a.State != "released" {
			t.Errorf("%+v", a)
		}
	}
	second := f.claim(t, "mail", "b")
	second.want(t, 200, "granted")
	if second.Token == first.Token {
		t.Error("a token was given twice")
	}
	f.end(t, "mail", "release", first.Token, "").want(t, 409, "claim-lost")
	f.end(t, "mail", "unknown", first.Token, "").want(t, 409, "claim-lost")
	f.state(t, "mail", fence.Claimed)
	f.end(t, "mail", "complete", first.Token, "").want(t, 200, "") // true, whoever says it
	f.state(t, "mail", fence.Done)
}

func TestHolderThatVanishesIsAPersonsMatter(t *testing.T) {
	f := start(t)
	first := f.claim(t, "mail", "a")
	f.pass(61 * time.Second)
	f.claim(t, "mail", "b").want(t, 409, "needs-review")
	f.state(t, "mail", fence.NeedsReview)
	f.end(t, "mail", "release", first.Token, "").want(t, 200, "") // it comes back and knows
	f.state(t, "mail", fence.Released)
}

func TestHolderThatDoesNotKnow(t *testing.T) {
	f := start(t)
	first := f.claim(t, "mail", "a")
	for range 2 {
		if a := f.end(t, "mail", "unknown", first.Token, `,"reason":"timeout"`); a.status != 200 || a.State != "unknown" {
			t.Errorf("%+v", a)
		}
	}
	f.claim(t, "mail", "b").want(t, 409, "needs-review")
	row, _ := f.store.Read(t.Context(), fence.Key{Scope: "mail", ID: "order/1"})
	if !strings.Contains(row.Reason, "timeout") {
		t.Errorf("the reason is %q", row.Reason)
	}
}

// TestCheck: another copy finds out. Nothing is released while the holder that
// vanished may still act.
func TestCheck(t *testing.T) {
	f := start(t)
	f.claim(t, "stock", "a").want(t, 200, "granted")
	f.pass(61 * time.Second)
	check := f.claim(t, "stock", "b")
	check.want(t, 200, "check")
	early := f.end(t, "stock", "release", check.Token, "")
	early.want(t, 409, "claim-not-quiet")
	if early.retryAfter != "239" {
		t.Errorf("Retry-After %s", early.retryAfter)
	}
	f.end(t, "stock", "unknown", check.Token, "").want(t, 200, "")
	f.state(t, "stock", fence.Unknown)
	f.pass(240 * time.Second)
	// Whoever looked before has not seen what the holder did in its last moment.
	if a := f.end(t, "stock", "release", check.Token, ""); a.Type != "claim-not-quiet" || a.retryAfter != "1" {
		t.Errorf("released by an early look: %+v", a)
	}
	f.state(t, "stock", fence.Unknown)
	check = f.claim(t, "stock", "b")
	check.want(t, 200, "check")
	if a := f.end(t, "stock", "release", check.Token, ""); a.State != "released" {
		t.Errorf("%+v", a)
	}
	next := f.claim(t, "stock", "c")
	next.want(t, 200, "granted")
	f.end(t, "stock", "release", check.Token, "").want(t, 409, "claim-lost")
	f.state(t, "stock", fence.Claimed)
	f.pass(61 * time.Second)
	check = f.claim(t, "stock", "d")
	f.end(t, "stock", "complete", check.Token, "").want(t, 200, "") // what was found is true however early
	f.state(t, "stock", fence.Done)
}

func TestCheckEndsWithTheReviewTime(t *testing.T) {
	f := start(t)
	f.claim(t, "stock", "a")
	f.pass(62 * time.Minute)
	f.claim(t, "stock", "b").want(t, 409, "needs-review")
}

// TestParallelCopies: one of a hundred may do it.
func TestParallelCopies(t *testing.T) {
	f := start(t)
	var working sync.WaitGroup
	var granted atomic.Int32
	for i := range 100 {
		working.Go(func() {
			response, err := http.Post(f.URL+"/v1/claims", "", strings.NewReader(`{"scope":"mail","key":"p","nonce":"n`+string(rune('0'+i%10))+string(rune('0'+i/10))+`"}`))
			if err != nil {
				t.Error(err)
				return
			}
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				granted.Add(1)
			}
		})
	}
	working.Wait()
	if granted.Load() != 1 {
		t.Errorf("%d grants", granted.Load())
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	f := start(t)
	token := f.claim(t, "mail", "a").Token
	long := strings.Repeat("k", 256)
	for name, c := range map[string]struct {
		path, body string
		status     int
		kind       string
	}{
		"no JSON":        {"/v1/claims", `{`, 400, "request-invalid"},
		"unknown field":  {"/v1/claims", `{"scope":"mail","key":"k","nonce":"n","keys":1}`, 400, "request-invalid"},
		"no nonce":       {"/v1/claims", `{"scope":"mail","key":"k"}`, 400, "request-invalid"},
		"nonce, space":   {"/v1/claims", `{"scope":"mail","key":"k","nonce":"a b"}`, 400, "request-invalid"},
		"nonce, long":    {"/v1/claims", `{"scope":"mail","key":"k","nonce":"` + long[:65] + `"}`, 400, "request-invalid"},
		"no key":         {"/v1/claims", `{"scope":"mail","nonce":"n"}`, 400, "request-invalid"},
		"key, long":      {"/v1/claims", `{"scope":"mail","key":"` + long + `","nonce":"n"}`, 400, "request-invalid"},
		"key, control":   {"/v1/claims", `{"scope":"mail","key":"a\n","nonce":"n"}`, 400, "request-invalid"},
		"no such scope":  {"/v1/claims", `{"scope":"post","key":"k","nonce":"n"}`, 404, "provider-unknown"},
		"body, long":     {"/v1/claims", `{"scope":"mail","key":"k","nonce":"n","payload":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "body-too-large"},
		"no token":       {"/v1/claims/order%2F1/complete", `{"scope":"mail"}`, 400, "request-invalid"},
		"half a token":   {"/v1/claims/order%2F1/complete", `{"scope":"mail","token":"` + token[:30] + `"}`, 400, "request-invalid"},
		"nobody's claim": {"/v1/claims/other/complete", `{"scope":"mail","token":"` + token + `"}`, 404, "claim-unknown"},
		"result, long":   {"/v1/claims/order%2F1/complete", `{"scope":"mail","token":"` + token + `","result":"` + strings.Repeat("x", 256<<10) + `"}`, 400, "request-invalid"},
	} {
		t.Run(name, func(t *testing.T) { f.post(t, c.path, c.body).want(t, c.status, c.kind) })
	}
	f.state(t, "mail", fence.Claimed)
}

// down fails every statement of some kind.
type down struct {
	fence.Store
	claim, apply bool
	tries        *atomic.Int32
}

var errDown = errors.New("down")

func (d down) Claim(ctx context.Context, s fence.Statement) (fence.Row, error) {
	if d.claim {
		return fence.Row{}, errDown
	}
	return d.Store.Claim(ctx, s)
}

func (d down) Apply(ctx context.Context, s fence.Statement) (bool, error) {
	if d.apply {
		d.tries.Add(1)
		return false, errDown
	}
	return d.Store.Apply(ctx, s)
}

func TestNoStoreNoGrant(t *testing.T) {
	f := start(t, func(s fence.Store) fence.Store { return down{Store: s, claim: true} })
	a := f.claim(t, "mail", "a")
	a.want(t, 503, "store-unavailable")
	if a.Token != "" || a.retryAfter == "" {
		t.Errorf("%+v", a)
	}
	tries := &atomic.Int32{}
	g := start(t, func(s fence.Store) fence.Store { return down{Store: s, apply: true, tries: tries} })
	token := g.claim(t, "mail", "a").Token
	g.end(t, "mail", "complete", token, "").want(t, 503, "store-unavailable")
	if tries.Load() != 3 {
		t.Errorf("%d tries", tries.Load())
	}
	g.state(t, "mail", fence.Claimed)
}
