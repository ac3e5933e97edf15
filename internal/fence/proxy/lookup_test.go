// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
	"github.com/queueworker/operator/internal/fence/store/memory"
)

// bank breaks off its first reply, and can be asked what it booked under a
// reference of the request's body.
type bank struct {
	*provider
	acts   bool // on the first request
	lookUp func(w http.ResponseWriter, booked int)

	mu     sync.Mutex
	booked map[string]int
	asked  []string
}

func newBank(t *testing.T, acts bool, lookUp func(http.ResponseWriter, int)) *bank {
	t.Helper()
	b := &bank{acts: acts, lookUp: lookUp, booked: map[string]int{}}
	b.provider = newProvider(t, b.handle)
	return b
}

func (b *bank) handle(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Method == http.MethodGet {
		b.asked = append(b.asked, r.RequestURI)
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b.lookUp(w, b.booked[r.FormValue("ref")])
		return
	}
	ref, _ := io.ReadAll(r.Body)
	first := b.posts.Load() == 1
	if !first || b.acts {
		b.booked[string(ref)]++
	}
	if first {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"id":12345678901234567}`)
}

func (b *bank) effects() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, times := range b.booked {
		n += times
	}
	return n
}

// listing shows what is booked; stating says what is the matter.
func listing(w http.ResponseWriter, booked int) {
	_, _ = fmt.Fprintf(w, `{"data":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"id":"ch_1","state":"paid","amount":12345678901234567},`, booked), ","))
}

func stating(state string) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) {
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"ch_1","state":%q}]}`, state)
	}
}

// asked is a bank's declaration: it ignores keys, and its lookups are at most
// ten seconds late.
func asked(t *testing.T, base string) proxy.Provider {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("Bearer secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := declared(t, base)
	d.LagDeclared, d.Times.LookupLag = true, 10*time.Second
	d.ProviderID = "body.id"
	const one = "status == 200 && body.data.size() == 1 && "
	d.Ask = &proxy.Lookup{
		Path: "/search?ref={key}", Headers: []proxy.LookupHeader{{Name: "Authorization", File: secret}},
		Succeeded: one + `body.data[0].state == "paid"`, Processing: one + `body.data[0].state == "open"`,
		Refused: one + `body.data[0].state in ["failed", "both"]`, Absent: "status == 200 && body.data.size() == 0",
		ProviderID: "body.data[0].id", Result: "body.data[0]",
	}
	return d
}

func keyed(d *proxy.Provider)         { d.Times.KeyLife, d.MaxResends = time.Hour, 3 }
func noLag(d *proxy.Provider)         { d.LagDeclared, d.Times.LookupLag = false, 0 }
func contradicting(d *proxy.Provider) { d.Ask.Absent += ` || body.data[0].state == "both"` }
func inexact(d *proxy.Provider)       { d.Ask.Processing = "body.data[0].state == 'open'" }
func plainly(*proxy.Provider)         {}

// TestLookups: the first reply was lost, and the job comes again, while a
// request may still act or when all are dead.
func TestLookups(t *testing.T) {
	for name, c := range map[string]struct {
		declared func(*proxy.Provider)
		acts     bool
		lookUp   func(http.ResponseWriter, int)
		quiet    bool
		status   int
		problem  string
		state    fence.State
		posts    int
	}{
		"the effect is found":             {plainly, true, listing, false, 200, "", fence.Done, 1},
		"found, lag not declared":         {noLag, true, listing, false, 200, "", fence.Done, 1},
		"absent, but it may still act":    {plainly, false, listing, false, 409, "outcome-unknown", fence.Unknown, 1},
		"absent for certain":              {plainly, false, listing, true, 201, "", fence.Done, 2},
		"absent, lag not declared":        {noLag, false, listing, true, 409, "needs-review", fence.NeedsReview, 1},
		"at work":                         {plainly, true, stating("open"), true, 409, "outcome-unknown", fence.Unknown, 1},
		"refused, but it may still act":   {plainly, false, stating("failed"), false, 409, "outcome-unknown", fence.Unknown, 1},
		"refused for certain":             {plainly, false, stating("failed"), true, 422, "", fence.Done, 1},
		"expressions contradict":          {contradicting, false, stating("both"), true, 409, "outcome-unknown", fence.Unknown, 1},
		"an expression cannot be told":    {inexact, false, listing, true, 409, "outcome-unknown", fence.Unknown, 1},
		"none holds":                      {plainly, false, stating("new"), true, 409, "outcome-unknown", fence.Unknown, 1},
		"the lookup fails":                {plainly, false, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) }, true, 409, "outcome-unknown", fence.Unknown, 1},
		"the lookup breaks off":           {plainly, true, func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, true, 409, "outcome-unknown", fence.Unknown, 1},
		"keyed, found":                    {keyed, true, listing, false, 200, "", fence.Done, 1},
		"keyed, absent: the same again":   {keyed, false, listing, false, 201, "", fence.Done, 2},
		"keyed, at work: not sent again":  {keyed, true, stating("open"), false, 409, "outcome-unknown", fence.Unknown, 1},
		"keyed, the lookup fails: not so": {keyed, true, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusInternalServerError) }, false, 409, "outcome-unknown", fence.Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, c.acts, c.lookUp)
			d := asked(t, b.URL)
			c.declared(&d)
			var later atomic.Int64
			f := start(t, memory.New(func() time.Time { return time.Now().Add(time.Duration(later.Load())) }), d)
			f.call(t, "POST", "/stripe/charges", "order/1", "order/1").want(t, 504, "outcome-unknown")
			if c.quiet {
				later.Store(int64(d.Times.Quiet()) + int64(time.Second))
			}
			again := f.call(t, "POST", "/stripe/charges", "order/1", "order/1")
			again.want(t, c.status, c.problem)
			if row := f.row(t, "order/1"); row.State != c.state || c.state == fence.Unknown && row.CheckedAt.IsZero() {
				t.Errorf("the row is %s, looked at %s", row.State, row.CheckedAt)
			}
			if n := int(b.posts.Load()); n != c.posts || b.effects() > 1 {
				t.Errorf("%d requests, %d effects", n, b.effects())
			}
			if len(b.asked) == 0 || b.asked[0] != "/search?ref=order%2F1" || int(f.watch.lookedUp.Load()) != len(b.asked) {
				t.Errorf("asked %q, counted %d", b.asked, f.watch.lookedUp.Load())
			}
			checkFound(t, again, c.status)
		})
	}
}

// checkFound: who comes later is told the id, and the lookup's result as if it
// were the reply.
func checkFound(t *testing.T, a answer, status int) {
	t.Helper()
	want := map[int][2]string{
		200: {"ch_1", `{"amount":12345678901234567,"id":"ch_1","state":"paid"}`},
		201: {"12345678901234567", `{"id":12345678901234567}`},
		422: {"ch_1", `{"id":"ch_1","state":"failed"}`},
	}[status]
	if a.status == status && want[0] != "" && (a.header.Get("Idempotency-Provider-Id") != want[0] || a.body != want[1]) {
		t.Errorf("told id %q and %s", a.header.Get("Idempotency-Provider-Id"), a.body)
	}
	if replayed := a.header.Get("Idempotency-Replayed") == "true"; replayed != (status == 200 || status == 422) {
		t.Errorf("status %d, replayed %t", status, replayed)
	}
}

// TestReleasedByLookupIsANewGeneration: what the provider stored for the dead
// attempt is not what the next one gets. Only what the header carries changes.
func TestReleasedByLookupIsANewGeneration(t *testing.T) {
	b := newBank(t, false, listing)
	d := asked(t, b.URL)
	d.Ask.Path = "/search?ref={sentKey}"
	var later atomic.Int64
	f := start(t, memory.New(func() time.Time { return time.Now().Add(time.Duration(later.Load())) }), d)
	f.call(t, "POST", "/stripe/charges", "k", "k").want(t, 504, "outcome-unknown")
	later.Store(int64(d.Times.Quiet()) + int64(time.Second))
	f.call(t, "POST", "/stripe/charges", "k", "k").want(t, 201, "")
	if row := f.row(t, "k"); row.Generation != 1 || strings.Join(b.keys, " ") != "k k~1" {
		t.Errorf("generation %d, keys %q", row.Generation, b.keys)
	}
}

// TestSearchByPost: the key is part of a JSON text and cannot leave it.
func TestSearchByPost(t *testing.T) {
	got := make(chan string, 1)
	var posts atomic.Int32
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/search" {
			body, _ := io.ReadAll(r.Body)
			got <- r.Method + " " + string(body)
			return
		}
		posts.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	d := declared(t, p.URL)
	d.Ask = &proxy.Lookup{Method: "POST", Path: "/search", Body: `{"ref":"{key}"}`, Succeeded: "status == 201"}
	f := start(t, inMemory(), d)
	const key = `a"},{"b`
	f.call(t, "POST", "/stripe/charges", key, "").want(t, 504, "outcome-unknown")
	f.call(t, "POST", "/stripe/charges", key, "").want(t, 409, "outcome-unknown")
	if text := <-got; text != `POST {"ref":"a\"},{\"b"}` || posts.Load() != 1 {
		t.Errorf("asked with %s, %d requests", text, posts.Load())
	}
}
