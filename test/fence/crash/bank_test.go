// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// behaviour is what the bank does with the first request of a run. All later
// ones are handled as its kind has it.
type behaviour string

const (
	acts         behaviour = "acts"                     // the effect, and 201
	replyLost    behaviour = "acts, reply lost"         // the effect, and the connection breaks
	neverArrives behaviour = "breaks off"               // nothing, and the connection breaks
	actsLate     behaviour = "acts late"                // no reply; the effect when nobody waits any more
	refuses      behaviour = "refuses"                  // 422 for good
	refusesLost  behaviour = "refuses, reply lost"      // the same, and the connection breaks
	fails        behaviour = "fails"                    // 500, behind an effect where the kind allows it
	busy         behaviour = "is busy"                  // 429, declared to promise no effect
	busyAgain    behaviour = "acts, reply lost, busies" // the effect, reply lost; the next request gets 429
)

var behaviours = []behaviour{acts, replyLost, neverArrives, actsLate, refuses, refusesLost, fails, busy, busyAgain}

// bank is a provider that counts effects. Its URL's first segment is the kind.
type bank struct {
	*httptest.Server
	mu   sync.Mutex
	runs map[string]*account
}

// account is what the bank knows of one run.
type account struct {
	first   behaviour
	posts   int
	effects int
	open    int           // requests under way
	failed  bool          // a final failure that a lookup shows
	visible bool          // lookups show what happened
	late    chan struct{} // closed: late requests act
	stored  map[string]stored
}

type stored struct {
	status int
	open   bool // the original is still at work
}

func newBank() *bank {
	b := &bank{runs: map[string]*account{}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	return b
}

func (b *bank) open(run string, first behaviour) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[run] = &account{first: first, late: make(chan struct{}), stored: map[string]stored{}}
}

// settle waits for requests that were written, lets late ones act, waits until
// they did, and lets lookups see it: the time that was declared has passed.
func (b *bank) settle(run string, written int) {
	for end := time.Now().Add(arriving); b.counts(run).posts < written && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	b.mu.Lock()
	a := b.runs[run]
	b.mu.Unlock()
	select {
	case <-a.late:
	default:
		close(a.late)
	}
	for waiting := true; waiting; {
		b.mu.Lock()
		waiting = a.open > 0
		a.visible = !waiting
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// arriving bounds the wait for a request whose connection broke on its way. One
// that was written into a buffer of a fence that is dead never comes.
const arriving = 3 * time.Second

// work is an effect of the app's own, at once or when time has passed.
func (b *bank) work(run string, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.runs[run]
	a.posts++
	if !late {
		a.effects++
		return
	}
	a.open++
	go func() {
		<-a.late
		b.mu.Lock()
		defer b.mu.Unlock()
		a.effects++
		a.open--
	}()
}

type counts struct{ posts, effects, open int }

func (b *bank) counts(run string) counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.runs[run]
	return counts{a.posts, a.effects, a.open}
}

func (b *bank) serve(w http.ResponseWriter, r *http.Request) {
	kind := kindOf(strings.Split(r.URL.Path, "/")[1])
	if r.Method == http.MethodGet {
		b.lookUp(w, r.FormValue("run"))
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	run, key := r.Header.Get("X-Run"), r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	a := b.runs[run]
	a.posts++
	a.open++
	nth := a.posts
	b.mu.Unlock()
	status := b.handle(a, kind, key, nth)
	b.mu.Lock()
	a.open--
	b.mu.Unlock()
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"id":%q}`, run)
}

func (b *bank) lookUp(w http.ResponseWriter, run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.runs[run]
	switch {
	case a.visible && a.effects > 0:
		_, _ = fmt.Fprintf(w, `{"state":"booked","id":%q}`, run)
	case a.visible && a.failed:
		_, _ = io.WriteString(w, `{"state":"failed"}`)
	default:
		_, _ = io.WriteString(w, `{"state":"none"}`)
	}
}

// handle returns the status, or 0 for a connection that breaks.
func (b *bank) handle(a *account, kind kind, key string, nth int) int {
	b.mu.Lock()
	was, known := a.stored[key]
	switch {
	case nth == 2 && a.first == busyAgain:
		b.mu.Unlock()
		return http.StatusTooManyRequests
	case kind.keys && known && was.open:
		b.mu.Unlock()
		return http.StatusConflict
	case kind.keys && known:
		b.mu.Unlock()
		return was.status
	}
	first := acts
	if nth == 1 {
		first = a.first
	}
	a.stored[key] = stored{open: true}
	b.mu.Unlock()
	if first == actsLate {
		<-a.late
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.outcome(a, kind, first)
	remembered := status >= 200 && status < 300 || kind.storesErrors && status != http.StatusTooManyRequests
	if first == neverArrives || !remembered {
		delete(a.stored, key)
	} else {
		a.stored[key] = stored{status: status}
	}
	if first != acts && first != refuses && first != fails && first != busy {
		return 0
	}
	return status
}

// outcome books, and returns what the provider itself would answer.
func (b *bank) outcome(a *account, kind kind, first behaviour) int {
	switch first {
	case neverArrives:
		return 0
	case refuses, refusesLost:
		a.failed = true
		return http.StatusUnprocessableEntity
	case busy:
		return http.StatusTooManyRequests
	case fails:
		if !kind.errorsMeanNothing {
			a.effects++
		}
		return http.StatusInternalServerError
	}
	a.effects++
	return http.StatusCreated
}
