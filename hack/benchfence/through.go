// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
)

// This file measures whole calls: through the fence, and through what a call
// cannot do without.

const (
	clients      = 16   // of the closed loop
	leastOfLimit = 0.7  // of what proxy and database alone would allow
	openRate     = 500  // requests a second of the open loop
	mostAdded    = 3.0  // ms that the fence may add to the plain proxy's p99
	crowd        = 200  // clients of a slow provider
	slowPool     = 10   // connections that they share
	leastOfLocks = 10.0 // times the rate of holding a row's lock through the call
)

// through measures one database and says whether all limits hold.
func (r *race) through(ctx context.Context, o options) (bool, error) {
	fast := newProvider(0)
	defer fast.Close()
	store, err := r.open(ctx, r.server.DSN, clients)
	if err != nil {
		return false, err
	}
	defer func() { _ = store.Close() }()
	fenced, err := fenceBefore(fast.URL, store)
	if err != nil {
		return false, err
	}
	defer fenced.Close()
	plain := plainBefore(fast.URL)
	defer plain.Close()

	ok, err := r.closedLoop(ctx, plain.URL, fenced.URL, o)
	if err != nil {
		return false, err
	}
	return openLoops(ctx, r.name, plain.URL, fenced.URL, o) && ok, nil
}

func (r *race) closedLoop(ctx context.Context, plain, fenced string, o options) (bool, error) {
	var p, s, f []float64
	for range o.rounds {
		p = append(p, closedLoop(ctx, plain, clients, o.seconds))
		theirs, err := r.theirs(ctx, clients, o.seconds)
		if err != nil {
			return false, err
		}
		s = append(s, theirs.pairs)
		f = append(f, closedLoop(ctx, fenced, clients, o.seconds))
	}
	limit := 1 / (1/median(p) + 1/median(s))
	ratio := median(f) / limit
	fmt.Printf("%-12s closed loop, %d clients: plain proxy %.0f/s, %s %.0f/s, so at most %.0f/s; fence %.0f/s = %.2f of it (at least %.2f)\n",
		r.name, clients, median(p), r.generator, median(s), limit, median(f), ratio, leastOfLimit)
	return ratio >= leastOfLimit, nil
}

// newProvider answers a small JSON after a while.
func newProvider(after time.Duration) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(after)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"ch_1","status":"succeeded"}`)
	}))
}

func plainBefore(base string) *httptest.Server {
	u, _ := url.Parse(base) // httptest's own
	p := httputil.NewSingleHostReverseProxy(u)
	p.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	return httptest.NewServer(p)
}

func fenceBefore(base string, store fence.Store) (*httptest.Server, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	h, err := proxy.New(proxy.Config{
		Store: store, Clock: fence.SystemClock{}, Owner: "pod", Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), Watch: nobody{},
		Providers: []proxy.Provider{{Base: u, Provider: fence.Provider{Scope: scope, Times: fence.Times{
			SendWindow: time.Second, ProviderTimeout: 17 * time.Second, StatementBudget: time.Second, ClientLimit: 20 * time.Second, InFlight: 300 * time.Second,
		}}}},
	})
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(h), nil
}

type nobody struct{}

func (nobody) Posted(string)                  {}
func (nobody) Answered(string, fence.Answer)  {}
func (nobody) Passed(string)                  {}
func (nobody) LookedUp(string, fence.Finding) {}
func (nobody) Waited(string, time.Duration)   {}

var fresh atomic.Int64

// call is one call under a key of its own.
func call(ctx context.Context, client *http.Client, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/"+scope+"/charges", strings.NewReader(`{"amount":1}`))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", fmt.Sprintf("%d-%d", time.Now().UnixNano(), fresh.Add(1)))
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}
}

// closedLoop is how many calls a second so many clients get done, each after
// its last. Calls that failed do not count.
func closedLoop(ctx context.Context, base string, clients, seconds int) float64 {
	client := newClient()
	defer client.CloseIdleConnections()
	var done atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	end := began.Add(time.Duration(seconds) * time.Second)
	for range clients {
		working.Go(func() {
			for time.Now().Before(end) {
				if call(ctx, client, base) == nil {
					done.Add(1)
				}
			}
		})
	}
	working.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

func openLoops(ctx context.Context, name, plain, fenced string, o options) bool {
	p, lostP := openLoop(ctx, plain, o.open)
	f, lostF := openLoop(ctx, fenced, o.open)
	added := f - p
	fmt.Printf("%-12s open loop, %d/s for %d s: p99 plain proxy %.2f ms, fence %.2f ms, added %.2f ms (at most %.1f); failed %d and %d\n",
		name, openRate, o.open, p, f, added, mostAdded, lostP, lostF)
	return added <= mostAdded && lostP+lostF == 0
}

// openLoop starts calls at a fixed rate, however long they take, and returns
// the 99th percentile in milliseconds, counted from when a call should have
// started.
func openLoop(ctx context.Context, base string, seconds int) (p99 float64, failed int) {
	client := newClient()
	defer client.CloseIdleConnections()
	n := openRate * seconds
	took := make([]float64, n)
	errs := make([]error, n)
	var working sync.WaitGroup
	began := time.Now()
	for i := range n {
		at := began.Add(time.Duration(i) * time.Second / openRate)
		time.Sleep(time.Until(at))
		working.Go(func() {
			errs[i] = call(ctx, client, base)
			took[i] = float64(time.Since(at).Microseconds()) / 1000
		})
	}
	working.Wait()
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	slices.Sort(took)
	return took[n*99/100], failed
}
