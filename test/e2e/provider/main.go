// SPDX-License-Identifier: Apache-2.0

// The command provider stands in for a payment provider in the tests on a real node. It counts effects, keeps the journal that
// the jobs write, and can be a server that never answers.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// provider holds what it was told, in memory.
type provider struct {
	mu      sync.Mutex
	journal []entry
	charges map[string]int // by order
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
	p := &provider{charges: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /journal", p.note)
	mux.HandleFunc("GET /journal", p.read)
	mux.HandleFunc("POST /charges", p.charge)
	mux.HandleFunc("GET /charges", p.count)
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

func (p *provider) charge(w http.ResponseWriter, r *http.Request) {
	var charge struct {
		Order string `json:"order"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&charge); err != nil || charge.Order == "" {
		http.Error(w, `wanted {"order": "..."}`, http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charges[charge.Order]++
}

func (p *provider) count(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(p.charges)
}
