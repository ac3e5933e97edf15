// SPDX-License-Identifier: Apache-2.0

// Package crash_test kills real fences, their clients and their connections at
// every step, delivers the job again, and counts effects. The databases are
// real, and the bank has the abilities that make providers dangerous.
package crash_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(clientVariable); text != "" {
		asClient(text)
		return
	}
	os.Exit(m.Run())
}

// profile says how many runs are made, and from which seed. All of them takes
// about an hour.
func profile(t *testing.T) (runs int, seed uint64) {
	t.Helper()
	runs, seed = 300, 1
	if text := os.Getenv("FENCE_CRASH_RUNS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("FENCE_CRASH_RUNS=%q: %v", text, err)
		}
		runs = n
	}
	if text := os.Getenv("FENCE_CRASH_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("FENCE_CRASH_SEED=%q: %v", text, err)
		}
		seed = n
	}
	return runs, seed
}

// lanes run at once, each with two sidecars of its own.
const lanes = 12

// TestMatrix is the crash matrix.
func TestMatrix(t *testing.T) {
	runs, seed := profile(t)
	h, err := newHarness(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	results := &results{hits: map[hitKey]int{}, points: map[place]int{}}

	quiet := quietCells(len(h.databases))
	began := time.Now()
	h.all(t, quiet, "quiet", results)
	slices.SortFunc(results.quiet, func(a, b *run) int { return strings.Compare(a.id, b.id) }) // the seed decides, not who was first
	cells := cellsOf(results.quiet)
	chosen, left := sample(cells, runs, seed)
	t.Logf("%d of %d cells, seed %d (FENCE_CRASH_RUNS, FENCE_CRASH_SEED); without a fault: %d runs in %s", len(chosen), len(cells), seed, len(quiet), time.Since(began).Round(time.Second))
	h.all(t, chosen, "run", results)
	more := 0
	for missed := h.missed(results); len(missed) > 0; missed = h.missed(results) {
		if chosen, left = oneOfEach(missed, left); len(chosen) == 0 {
			t.Errorf("no fault struck at %v, in any cell", missed)
			break
		}
		h.all(t, chosen, fmt.Sprintf("more-%d", more), results)
		more += len(chosen)
	}
	t.Logf("%d runs with a fault, %d of them struck, in %s; %d were added to strike everywhere\n%s",
		len(cells)-len(left), results.struck, time.Since(began).Round(time.Second), more, results.table())
}

// missed are the places at which no fault has struck yet. Which of two copies
// waits and which reads is not the sample's to say, so a run may end before its
// point is reached.
func (h *harness) missed(results *results) []place {
	var missed []place
	for _, point := range everyPoint {
		for store := range h.databases {
			if p := (place{point, store}); results.points[p] == 0 {
				missed = append(missed, p)
			}
		}
	}
	return missed
}

// all runs cells in lanes. A lane works for one database.
func (h *harness) all(t *testing.T, cells []cell, name string, results *results) {
	t.Helper()
	queues := make([]chan int, len(h.databases))
	for i := range queues {
		queues[i] = make(chan int, len(cells))
	}
	for i, c := range cells {
		queues[c.store] <- i
	}
	var working sync.WaitGroup
	for lane := range lanes {
		store := lane % len(h.databases)
		working.Go(func() {
			pair, err := h.pair(store)
			if err != nil {
				t.Error(err)
				return
			}
			defer pair[0].kill()
			defer pair[1].kill()
			for {
				select {
				case i := <-queues[store]:
					r := h.run(cells[i], fmt.Sprintf("%s-%05d", name, i), pair)
					if err := r.drive(); err != nil {
						t.Errorf("%s: %v\ntold %+v, points %v", r.cell, err, r.answers, r.points)
					}
					results.add(r)
				default:
					return
				}
			}
		})
	}
	working.Wait()
}

func (h *harness) pair(store int) ([]*sidecar, error) {
	a, err := h.place(h.databases[store])
	if err != nil {
		return nil, err
	}
	b, err := h.place(h.databases[store])
	return []*sidecar{a, b}, err
}

type hitKey struct {
	kind, point, database string
	copies                int
}

// place is where a fault strikes.
type place struct {
	point string
	store int
}

func (c cell) place() place { return place{c.point, c.store} }

// results count where faults struck.
type results struct {
	mu     sync.Mutex
	struck int
	hits   map[hitKey]int
	points map[place]int
	quiet  []*run // those without a fault
}

func (s *results) add(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.fault == none {
		s.quiet = append(s.quiet, r)
		return
	}
	if !r.struck {
		return
	}
	s.struck++
	s.hits[hitKey{r.kind.name, r.point, r.db.name, r.copies}]++
	s.points[r.place()]++
}

// table shows for each point and kind how many faults struck: with one copy and
// with two, in both databases.
func (s *results) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "struck at")
	for _, k := range kinds {
		_, _ = fmt.Fprintf(w, "\t%s", k.name)
	}
	_, _ = fmt.Fprintln(w)
	points := slices.Clone(everyPoint)
	for _, point := range points {
		_, _ = fmt.Fprint(w, point)
		for _, k := range kinds {
			of := func(database string, copies int) int { return s.hits[hitKey{k.name, point, database, copies}] }
			_, _ = fmt.Fprintf(w, "\t%d+%d %d+%d", of("PostgreSQL", 1), of("PostgreSQL", 2), of("MariaDB", 1), of("MariaDB", 2))
		}
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintln(w, "(PostgreSQL with one copy + with two, then MariaDB)")
	_ = w.Flush()
	return b.String()
}

// TestWithoutTheFence: the same bank, the same deaths and redeliveries, and no
// fence between. There are second effects.
func TestWithoutTheFence(t *testing.T) {
	b := newBank()
	defer b.Close()
	twice := map[string]int{}
	for i, k := range kinds {
		for j, first := range behaviours {
			run := fmt.Sprintf("off-%d-%d", i, j)
			b.open(run, first)
			ctx, die := context.WithCancel(t.Context())
			told := make(chan told, 1)
			go func() { told <- withoutKey(ctx, b.URL+"/"+k.name+"/charges", run) }()
			if !eventually(func() bool { return b.counts(run).posts == 1 }) {
				t.Fatal("the request never came")
			}
			if first != acts && first != refuses {
				time.Sleep(10 * time.Millisecond)
			}
			die() // before the app has written down what it was told
			<-told
			for n := 0; n < 3 && !withoutKey(t.Context(), b.URL+"/"+k.name+"/charges", run).effect(); n++ {
				b.settle(run, 0)
			}
			b.settle(run, 0)
			if b.counts(run).effects > 1 {
				twice[k.name]++
			}
		}
	}
	for _, k := range kinds {
		if twice[k.name] == 0 {
			t.Errorf("%s: no second effect, so this harness could not see one", k.name)
		}
	}
	t.Logf("runs with a second effect, of %d each: %v", len(behaviours), twice)
}

// withoutKey is a worker that knows nothing of keys.
func withoutKey(ctx context.Context, url, run string) told {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return told{}
	}
	request.Header.Set("X-Run", run)
	request.Header.Set("Idempotency-Key", run+strconv.FormatInt(time.Now().UnixNano(), 36))
	response, err := transport.RoundTrip(request)
	if err != nil {
		return told{}
	}
	_ = response.Body.Close()
	return told{Status: response.StatusCode}
}
