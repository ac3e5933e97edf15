// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
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
	"github.com/queueworker/operator/internal/fence/proxy"
	"github.com/queueworker/operator/internal/fence/store/memory"
)

// provider is a real HTTP server that counts what it does.
type provider struct {
	*httptest.Server
	posts   atomic.Int32
	effects atomic.Int32
	handle  func(w http.ResponseWriter, r *http.Request)
	mu      sync.Mutex
	keys    []string
}

func newProvider(t *testing.T, handle func(w http.ResponseWriter, r *http.Request)) *provider {
	t.Helper()
	p := &provider{handle: handle}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			p.posts.Add(1)
			p.mu.Lock()
			p.keys = append(p.keys, r.Header.Get("Idempotency-Key"))
			p.mu.Unlock()
		}
		handle(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// charges answers as a provider that books each request.
func (p *provider) charge(w http.ResponseWriter, _ *http.Request) {
	p.effects.Add(1)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_1")
	w.Header().Set("Set-Cookie", "session=1")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"id":"ch_1"}`)
}

func charging(t *testing.T, after time.Duration) *provider {
	t.Helper()
	var p *provider
	p = newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(after)
		p.charge(w, r)
	})
	return p
}

// chargingWhen answers when it is told to.
func chargingWhen(t *testing.T) (p *provider, answer func()) {
	t.Helper()
	told := make(chan struct{})
	answer = sync.OnceFunc(func() { close(told) })
	p = newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		<-told
		p.charge(w, r)
	})
	t.Cleanup(answer) // before the server's end, which waits for its requests
	return p, answer
}

// declared is a provider that offers nothing. No call of a loaded machine takes
// longer than its times.
func declared(t *testing.T, base string) proxy.Provider {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return proxy.Provider{
		Base: u, KeyHeader: "Idempotency-Key",
		Provider: fence.Provider{
			Scope: "stripe", DidNotAct: []int{401, 503},
			Times: fence.Times{
				SendWindow: 20 * time.Second, ProviderTimeout: 20 * time.Second, StatementBudget: 40 * time.Second,
				ClientLimit: 2 * time.Minute, InFlight: 40 * time.Second,
			},
		},
	}
}

// watch counts.
type watch struct{ posted, answered, passed, lookedUp, waited atomic.Int32 }

func (w *watch) Posted(string)                  { w.posted.Add(1) }
func (w *watch) Answered(string, fence.Answer)  { w.answered.Add(1) }
func (w *watch) Passed(string)                  { w.passed.Add(1) }
func (w *watch) Waited(string, time.Duration)   { w.waited.Add(1) }
func (w *watch) LookedUp(string, fence.Finding) { w.lookedUp.Add(1) }

// fenced is a running fence and its table.
type fenced struct {
	*httptest.Server
	store fence.Store
	watch *watch
}

func start(t *testing.T, store fence.Store, providers ...proxy.Provider) fenced {
	t.Helper()
	f := fenced{store: store, watch: &watch{}}
	h, err := proxy.New(proxy.Config{
		Providers: providers, Store: store, Clock: fence.SystemClock{}, Owner: "pod-a", Log: slog.New(slog.DiscardHandler), Watch: f.watch,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = httptest.NewServer(h)
	t.Cleanup(f.Close)
	return f
}

// answer is what the app got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) problem() string {
	var p struct{ Type string }
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil {
		return ""
	}
	return strings.TrimPrefix(p.Type, "urn:queueworker:fence:")
}

func (f fenced) call(t *testing.T, method, path, key, body string) answer {
	t.Helper()
	a, err := f.try(t.Context(), method, path, key, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (f fenced) callWith(t *testing.T, method, path, body string, headers map[string]string) answer {
	t.Helper()
	a, err := f.tryWith(t.Context(), method, path, body, headers)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (f fenced) try(ctx context.Context, method, path, key, body string) (answer, error) {
	return f.tryWith(ctx, method, path, body, map[string]string{"Idempotency-Key": key})
}

// tryWith leaves out headers without a value.
func (f fenced) tryWith(ctx context.Context, method, path, body string, headers map[string]string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.URL+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

func (f fenced) row(t *testing.T, key string) fence.Row {
	t.Helper()
	row, err := f.store.Read(t.Context(), fence.Key{Scope: "stripe", ID: key})
	if err != nil && !errors.Is(err, fence.ErrNoRow) {
		t.Fatal(err)
	}
	return row
}

func (a answer) want(t *testing.T, status int, problem string) {
	t.Helper()
	if a.status != status || a.problem() != problem {
		t.Errorf("answer %d %q, want %d %q (%s)", a.status, a.problem(), status, problem, a.body)
	}
}

func inMemory() fence.Store { return memory.New(time.Now) }

func TestSecondCallIsAReplay(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			p := charging(t, 0)
			f := start(t, store, declared(t, p.URL+"/v1"))
			first := f.call(t, "POST", "/stripe/charges?a=1", "order-1/charge", `{"amount":1}`)
			second := f.call(t, "POST", "/stripe/charges?a=1", "order-1/charge", `{"amount":1}`)
			if first.status != 201 || second.status != 201 || first.body != `{"id":"ch_1"}` || second.body != first.body {
				t.Errorf("first %+v\nsecond %+v", first, second)
			}
			for _, name := range []string{"Content-Type", "Request-Id"} {
				if got, want := second.header.Get(name), first.header.Get(name); got != want || want == "" {
					t.Errorf("%s: %q, then %q", name, want, got)
				}
			}
			if first.header.Get("Set-Cookie") != "" || first.header.Get("Idempotency-Replayed") != "" || second.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("headers %v\nthen %v", first.header, second.header)
			}
			if n := p.posts.Load(); n != 1 || f.watch.posted.Load() != 1 {
				t.Errorf("the provider saw %d requests, the fence counted %d", n, f.watch.posted.Load())
			}
		})
	}
}

func TestParallelCopies(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			p := charging(t, 100*time.Millisecond)
			f := start(t, store, declared(t, p.URL))
			const copies = 100
			answers := make(chan answer, copies)
			for range copies {
				go func() {
					a, err := f.try(t.Context(), "POST", "/stripe/charges", "parallel", "{}")
					if err != nil {
						a.body = err.Error()
					}
					answers <- a
				}()
			}
			replayed := 0
			for range copies {
				a := <-answers
				if a.status != 201 || a.body != `{"id":"ch_1"}` {
					t.Errorf("answer %+v", a)
				}
				if a.header.Get("Idempotency-Replayed") == "true" {
					replayed++
				}
			}
			if p.effects.Load() != 1 || replayed != copies-1 || f.watch.waited.Load() == 0 {
				t.Errorf("%d effects, %d replays, %d waited", p.effects.Load(), replayed, f.watch.waited.Load())
			}
		})
	}
}

func TestCopiesOfASlowCallAreBusy(t *testing.T) {
	p, charge := chargingWhen(t)
	d := declared(t, p.URL)
	d.Times.ClientLimit = d.Times.Lease() // nobody may wait
	f := start(t, inMemory(), d)
	first := make(chan answer)
	go func() { a, _ := f.try(t.Context(), "POST", "/stripe/charges", "slow", "{}"); first <- a }()
	for p.posts.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 10 {
		a := f.call(t, "POST", "/stripe/charges", "slow", "{}")
		a.want(t, 409, "busy")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	charge()
	if a := <-first; a.status != 201 || p.effects.Load() != 1 {
		t.Errorf("the first copy: %+v, %d effects", a, p.effects.Load())
	}
}

func TestClientThatLeavesChangesNothing(t *testing.T) {
	p, charge := chargingWhen(t)
	f := start(t, inMemory(), declared(t, p.URL))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		for p.posts.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	if _, err := f.try(ctx, "POST", "/stripe/charges", "gone", "{}"); err == nil {
		t.Fatal("the client did not leave")
	}
	charge()
	deadline := time.Now().Add(time.Minute)
	for f.row(t, "gone").State != fence.Done && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	f.call(t, "POST", "/stripe/charges", "gone", "{}").want(t, 201, "")
	if row := f.row(t, "gone"); row.State != fence.Done || p.effects.Load() != 1 {
		t.Errorf("the row is %s, %d effects", row.State, p.effects.Load())
	}
}

func TestWhatTheProviderSays(t *testing.T) {
	status := func(code int, headers ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		handle  func(http.ResponseWriter, *http.Request)
		status  int
		problem string
		state   fence.State
		again   int // posts after a second call
	}{
		"final refusal":         {status(422), 422, "", fence.Done, 1},
		"bad API key":           {status(401), 503, "provider-busy", fence.Released, 2},
		"declared busy":         {status(503, "Retry-After", "7"), 503, "provider-busy", fence.Released, 2},
		"busy, not saying when": {status(503), 504, "outcome-unknown", fence.NeedsReview, 1},
		"in progress":           {status(409), 504, "outcome-unknown", fence.NeedsReview, 1},
		"failure":               {status(500), 504, "outcome-unknown", fence.NeedsReview, 1},
		"redirect":              {status(307, "Location", "/elsewhere"), 504, "outcome-unknown", fence.NeedsReview, 1},
		"no reply": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done() // the fence gives up
		}, 504, "outcome-unknown", fence.NeedsReview, 1},
		"reset": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 504, "outcome-unknown", fence.NeedsReview, 1},
		"body that breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		}, 504, "outcome-unknown", fence.NeedsReview, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, c.handle)
			d := declared(t, p.URL)
			if name == "no reply" { // is waited for
				d.Times.SendWindow, d.Times.ProviderTimeout = 4*time.Second, time.Second
			}
			f := start(t, inMemory(), d)
			a := f.call(t, "POST", "/stripe/charges", "k", "{}")
			a.want(t, c.status, c.problem)
			if c.problem != "" && a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			again := f.call(t, "POST", "/stripe/charges", "k", "{}")
			if row := f.row(t, "k"); row.State != c.state {
				t.Errorf("the row is %s, want %s", row.State, c.state)
			}
			if n := int(p.posts.Load()); n != c.again {
				t.Errorf("%d requests, want %d", n, c.again)
			}
			if c.state == fence.NeedsReview {
				again.want(t, 409, "needs-review")
			}
			if c.state == fence.Done && (again.status != c.status || again.header.Get("Idempotency-Replayed") != "true") {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	p := charging(t, 0)
	d := declared(t, p.URL)
	d.MaxBody = 100
	f := start(t, inMemory(), d)
	f.call(t, "POST", "/stripe/charges", "used", `{"amount":1}`).want(t, 201, "")
	for name, c := range map[string]struct {
		method, path, key, body string
		status                  int
		problem                 string
	}{
		"no key":                {"POST", "/stripe/charges", "", "{}", 400, "key-missing"},
		"no key, DELETE":        {"DELETE", "/stripe/charges/1", "", "", 400, "key-missing"},
		"key too long":          {"POST", "/stripe/charges", strings.Repeat("k", 256), "{}", 400, "key-invalid"},
		"key not UTF-8":         {"POST", "/stripe/charges", "\xff", "{}", 400, "key-invalid"},
		"another body":          {"POST", "/stripe/charges", "used", `{"amount":2}`, 422, "payload-differs"},
		"another path":          {"POST", "/stripe/refunds", "used", `{"amount":1}`, 422, "payload-differs"},
		"another query":         {"POST", "/stripe/charges?x", "used", `{"amount":1}`, 422, "payload-differs"},
		"another method":        {"PUT", "/stripe/charges", "used", `{"amount":1}`, 422, "payload-differs"},
		"body too large":        {"POST", "/stripe/charges", "k", strings.Repeat("b", 101), 413, "body-too-large"},
		"nobody":                {"POST", "/paypal/charges", "k", "{}", 404, "provider-unknown"},
		"nobody, GET":           {"GET", "/paypal/charges", "", "", 404, "provider-unknown"},
		"no provider":           {"POST", "/", "k", "{}", 404, "provider-unknown"},
		"another provider":      {"POST", "/stripe/../paypal/charges", "k", "{}", 400, "path-invalid"},
		"the same, encoded":     {"POST", "/stripe/%2e%2e/paypal", "k", "{}", 400, "path-invalid"},
		"with an encoded slash": {"GET", "/stripe/a%2f..%2f..%2fx", "", "", 400, "path-invalid"},
		"with a backslash":      {"GET", "/stripe/..%5cx", "", "", 400, "path-invalid"},
		"name in other letters": {"POST", "/str%69pe/charges", "k", "{}", 404, "provider-unknown"},
		"TRACE":                 {"TRACE", "/stripe/charges", "", "", 405, "method-not-allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			f.call(t, c.method, c.path, c.key, c.body).want(t, c.status, c.problem)
		})
	}
	if n := p.posts.Load(); n != 1 {
		t.Errorf("the provider saw %d requests", n)
	}
}

func TestTwoKeysAreRefused(t *testing.T) {
	p := charging(t, 0)
	f := start(t, inMemory(), declared(t, p.URL))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/stripe/charges", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest || p.posts.Load() != 0 {
		t.Errorf("status %d, %d requests", response.StatusCode, p.posts.Load())
	}
}

// TestWhatIsPassedOn: the provider sees its own path, the app's headers and
// bytes, and nothing that was about the connection.
func TestWhatIsPassedOn(t *testing.T) {
	type seen struct {
		method, uri, host, body string
		header                  http.Header
	}
	got := make(chan seen, 1)
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Host, string(body), r.Header}
		w.Header().Set("Location", "/other")
		w.WriteHeader(http.StatusFound)
	})
	d := declared(t, p.URL+"/v1/")
	d.KeyHeader = "X-Key"
	f := start(t, inMemory(), d)
	for _, method := range []string{"POST", "GET"} {
		r, err := http.NewRequestWithContext(t.Context(), method, f.URL+"/stripe/a%2Fb/c%20d?q=%20&x", io.NopCloser(strings.NewReader("zipped")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Idempotency-Key": {"k1"}, "Content-Encoding": {"gzip"}, "Authorization": {"Bearer x"}, "X-Many": {"1", "2"},
			"Connection": {"X-Hop"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Proxy-Authorization": {"secret"},
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		s := <-got
		if s.method != method || s.uri != "/v1/a%2Fb/c%20d?q=%20&x" || s.host != p.Listener.Addr().String() || s.body != "zipped" {
			t.Errorf("%s: the provider saw %+v", method, s)
		}
		if s.header.Get("Authorization") != "Bearer x" || s.header.Get("Content-Encoding") != "gzip" || len(s.header["X-Many"]) != 2 {
			t.Errorf("%s: headers %v", method, s.header)
		}
		for _, name := range []string{"X-Hop", "Te", "Proxy-Authorization"} {
			trailers := method == "GET" && name == "Te" // a stream may end with trailers
			if s.header.Get(name) != "" && !trailers {
				t.Errorf("%s: %s was passed on", method, name)
			}
		}
		if method == "POST" && (s.header.Get("X-Key") != "k1" || s.header.Get("Idempotency-Key") != "") {
			t.Errorf("the key came as %v", s.header)
		}
		if method == "GET" && response.StatusCode != http.StatusFound {
			t.Errorf("a redirect became %d", response.StatusCode)
		}
	}
}

// TestLongBody: who made the call gets all of it; who comes later learns that
// it is gone and what it was.
func TestLongBody(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 2000)
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long) })
	d := declared(t, p.URL)
	d.MaxStored = 1999
	f := start(t, inMemory(), d)
	first := f.call(t, "POST", "/stripe/report", "long", "")
	second := f.call(t, "POST", "/stripe/report", "long", "")
	if first.body != string(long) || first.header.Get("Idempotency-Body") != "" {
		t.Errorf("first: %d bytes, %v", len(first.body), first.header)
	}
	sum := sha256.Sum256(long)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	if second.status != 200 || second.body != "" || second.header.Get("Idempotency-Body") != "omitted" || second.header.Get("Repr-Digest") != digest {
		t.Errorf("second: %+v", second)
	}
}

// TestEndlessBody: a body that nobody can hold does not hide an effect, but it
// does hide a refusal.
func TestEndlessBody(t *testing.T) {
	for status, want := range map[int]int{200: 200, 422: 504} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 101))
		})
		d := declared(t, p.URL)
		d.MaxReply = 100
		f := start(t, inMemory(), d)
		a := f.call(t, "POST", "/stripe/report", "k", "")
		if a.status != want || want == 200 && (a.body != "" || a.header.Get("Idempotency-Body") != "omitted" || a.header.Get("Repr-Digest") != "") {
			t.Errorf("status %d: answer %+v", status, a)
		}
	}
}

// downStore is a database that does not answer.
type downStore struct{ fence.Store }

func (downStore) Claim(context.Context, fence.Statement) (fence.Row, error) {
	return fence.Row{}, errors.New("down")
}

func (downStore) Read(context.Context, fence.Key) (fence.Row, error) {
	return fence.Row{}, errors.New("down")
}

func TestNoStoreNoCall(t *testing.T) {
	p := charging(t, 0)
	f := start(t, downStore{inMemory()}, declared(t, p.URL))
	a := f.call(t, "POST", "/stripe/charges", "k", "{}")
	a.want(t, 503, "store-unavailable")
	if a.header.Get("Retry-After") == "" || p.posts.Load() != 0 {
		t.Errorf("Retry-After %q, %d requests", a.header.Get("Retry-After"), p.posts.Load())
	}
}

func TestDeclarationsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*proxy.Provider)
		want   string
	}{
		"name with a slash": {func(p *proxy.Provider) { p.Scope = "a/b" }, "segment of a path"},
		"no base":           {func(p *proxy.Provider) { p.Base = nil }, "http:// or https://"},
		"other scheme":      {func(p *proxy.Provider) { p.Base = &url.URL{Scheme: "ftp", Host: "x"} }, "http:// or https://"},
		"user":              {func(p *proxy.Provider) { p.Base.User = url.UserPassword("u", "secret") }, "may hold neither a user"},
		"keyed, no header":  {func(p *proxy.Provider) { p.KeyHeader, p.Times.KeyLife, p.MaxResends = "", time.Hour, 1 }, "no header is named"},
		"header name":       {func(p *proxy.Provider) { p.KeyHeader = "a b" }, "no name of a header"},
		"hop by hop":        {func(p *proxy.Provider) { p.Keep = []string{"transfer-encoding"} }, "cannot be kept"},
		"times":             {func(p *proxy.Provider) { p.Times.ClientLimit = time.Second }, "gives up"},
	} {
		t.Run(name, func(t *testing.T) {
			d := declared(t, "http://127.0.0.1:1")
			c.change(&d)
			_, err := proxy.New(proxy.Config{Providers: []proxy.Provider{d}, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	d := declared(t, "http://127.0.0.1:1")
	if _, err := proxy.New(proxy.Config{Providers: []proxy.Provider{d, d}, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a provider that is declared twice is taken")
	}
}
