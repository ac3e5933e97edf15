// SPDX-License-Identifier: Apache-2.0

// The command provider stands in for a payment provider in the tests on a real node. It acts on each request to charge, late where
// it is asked to, and keeps a log of them; under /keyed it recognises keys. It keeps the journal that the jobs write, too, and can
// be a server that never answers.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// provider holds what it was told, in memory.
type provider struct {
	mu       sync.Mutex
	journal  []entry
	requests []*request
}

// request is one to charge, as it came and as it was answered.
type request struct {
	Order     string `json:"order"`
	Reference string `json:"reference"`
	Key       string `json:"key"`     // its Idempotency-Key
	ID        string `json:"id"`      // of the charge; empty while the provider is at work
	Charged   bool   `json:"charged"` // false also for a request that was told of an earlier charge
}

// entry is what a job said, as it said it.
type entry struct {
	job  string
	text []byte
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func serve() error {
	mute, err := net.Listen("tcp", ":8081")
	if err != nil {
		return err
	}
	go holdAll(mute)
	p := &provider{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /journal", p.note)
	mux.HandleFunc("GET /journal", p.read)
	mux.HandleFunc("POST /charges", p.charge(false))
	mux.HandleFunc("POST /keyed/charges", p.charge(true))
	mux.HandleFunc("GET /charges", p.count)
	mux.HandleFunc("GET /charges/search", p.search)
	mux.HandleFunc("GET /requests", p.log)
	mux.HandleFunc("POST /hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// holdAll takes every connection and says nothing, for jobs that read from a socket.
func holdAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
}

func (p *provider) note(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	var job struct {
		Name string `json:"name"`
	}
	if err != nil || json.Unmarshal(text, &job) != nil || job.Name == "" {
		http.Error(w, `wanted {"name": "...", ...}`, http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal = append(p.journal, entry{job.Name, append(bytes.TrimSpace(text), '\n')})
}

// read returns one line for each entry of the jobs whose names begin with ?of=.
func (p *provider) read(w http.ResponseWriter, r *http.Request) {
	of := r.URL.Query().Get("of")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.journal {
		if strings.HasPrefix(e.job, of) {
			_, _ = w.Write(e.text)
		}
	}
}

// charge acts, and whether its caller still waits changes nothing.
func (p *provider) charge(recognises bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var charge struct {
			Order     string  `json:"order"`
			Reference string  `json:"reference"`
			Seconds   float64 `json:"seconds"` // that it takes
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&charge); err != nil || charge.Order == "" {
			http.Error(w, `wanted {"order": "...", ...}`, http.StatusBadRequest)
			return
		}
		came := &request{Order: charge.Order, Reference: charge.Reference, Key: r.Header.Get("Idempotency-Key")}
		if earlier := p.enter(came, recognises); earlier {
			p.tell(w, came)
			return
		}
		time.Sleep(time.Duration(charge.Seconds * float64(time.Second)))
		p.act(came)
		p.tell(w, came)
	}
}

// enter writes a request down. It tells whether its key is that of an earlier one, which then is its answer.
func (p *provider) enter(came *request, recognises bool) (earlier bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if recognises && came.Key != "" && r.Key == came.Key {
			came.ID, earlier = r.ID, true
			break
		}
	}
	p.requests = append(p.requests, came)
	return earlier
}

func (p *provider) act(came *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	came.ID, came.Charged = fmt.Sprintf("ch_%d", rand.Uint64()), true
}

// tell answers a request; one whose key is still at work is told so.
func (p *provider) tell(w http.ResponseWriter, came *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if came.ID == "" {
		http.Error(w, "in progress", http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(came)
}

// count is how often each order was charged.
func (p *provider) count(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	charges := map[string]int{}
	for _, r := range p.requests {
		if r.Charged {
			charges[r.Order]++
		}
	}
	_ = json.NewEncoder(w).Encode(charges)
}

// search finds the charges with a reference.
func (p *provider) search(w http.ResponseWriter, r *http.Request) {
	p.list(w, func(of *request) bool { return of.Charged && of.Reference == r.URL.Query().Get("reference") })
}

// log is every request for the orders whose names begin with ?of=.
func (p *provider) log(w http.ResponseWriter, r *http.Request) {
	p.list(w, func(of *request) bool { return strings.HasPrefix(of.Order, r.URL.Query().Get("of")) })
}

func (p *provider) list(w http.ResponseWriter, wanted func(*request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := []*request{}
	for _, r := range p.requests {
		if wanted(r) {
			found = append(found, r)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": found})
}
