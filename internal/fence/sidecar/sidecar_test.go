// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	_ "modernc.org/sqlite"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/table"
	"github.com/queueworker/operator/internal/freeport"
	"github.com/queueworker/operator/test/fence/servers"
)

// running is a sidecar and where it listens.
type running struct {
	t           *testing.T
	app, status string
	listening   chan string // the app's address, once there is one
	stop        func()
	ended       chan error
}

func start(t *testing.T, driver, dsn, provider string) *running {
	t.Helper()
	config, err := fenceconfig.Decode([]byte(fmt.Sprintf(`
apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
bindAddress: 127.0.0.1:0
statusAddress: localhost:0
httpSeconds: 60
store: {driver: %s, dsnFile: /not/read/here}
retention: {doneSeconds: 3600}
upkeep: {everySeconds: 1}
providers:
- {name: stripe, url: %q, sendWindowSeconds: 10, statementSeconds: 10}
- name: bank
  url: %[2]q
  sendWindowSeconds: 10
  statementSeconds: 10
  lookupLagSeconds: 1
  lookup: {path: '/lookup?ref={key}', succeeded: 'status == 200 && body.found', absent: 'status == 200 && !body.found', providerId: body.id}
claims: [{name: mail}, {name: stock, canCheck: true}]
`, driver, provider)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{t: t, stop: stop, ended: make(chan error, 1)}
	listening := make(chan string, 2)
	s := &Sidecar{
		Config: config, DSN: dsn, Owner: "pod-a", Clock: fence.SystemClock{}, Log: slog.New(slog.DiscardHandler),
		listen: func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			if err == nil {
				listening <- "http://" + l.Addr().String()
			}
			return l, err
		},
	}
	go func() { r.ended <- s.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.ended; err != nil {
			t.Logf("the sidecar ended with %v", err)
		}
	})
	r.status, r.listening = <-listening, listening
	return r
}

// comesUp waits until it is ready.
func (r *running) comesUp() {
	r.t.Helper()
	r.eventually("ready", r.isReady)
	r.app = <-r.listening
}

func (r *running) get(url string) (int, string) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func (r *running) charge(key string) (status int, body string) {
	return r.chargeAt("/stripe/charges", key)
}

func (r *running) chargeAt(path, key string) (status int, body string) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.t.Context()), http.MethodPost, r.app+path, strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// provider counts charges and may take its time.
func provider(t *testing.T, takes time.Duration) (url string, posts *atomic.Int32) {
	t.Helper()
	posts = new(atomic.Int32)
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		time.Sleep(takes)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(p.Close)
	return p.URL, posts
}

func (r *running) eventually(what string, holds func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("it never came: " + what)
		}
	}
}

func (r *running) isReady() bool {
	code, _ := r.get(r.status + "/readyz")
	return code == http.StatusOK
}

// TestStopFinishesWhatIsUnderWay: a call that runs when SIGTERM comes gets its
// answer, and the row knows; then the process ends without an error.
func TestStopFinishesWhatIsUnderWay(t *testing.T) {
	url, posts := provider(t, 700*time.Millisecond)
	file := filepath.Join(t.TempDir(), "fence.db")
	r := start(t, "SQLite", file, url)
	r.comesUp()
	done := make(chan int, 1)
	go func() { status, _ := r.charge("slow"); done <- status }()
	r.eventually("the provider is at work", func() bool { return posts.Load() == 1 })
	r.stop()
	if status := <-done; status != http.StatusCreated {
		t.Errorf("the call under way got %d", status)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("the sidecar ended with %v", err)
	}
	if status, _ := r.charge("late"); status != 0 {
		t.Errorf("a call after the stop got %d", status)
	}
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var state string
	if err := db.QueryRowContext(context.Background(), "SELECT state FROM queueworker_fence WHERE idem_key = 'slow'").Scan(&state); err != nil || state != "done" {
		t.Errorf("the row is %q, %v", state, err)
	}
}

func TestMetrics(t *testing.T) {
	url, _ := provider(t, 0)
	r := start(t, "SQLite", filepath.Join(t.TempDir(), "fence.db"), url)
	r.comesUp()
	r.charge("k")
	r.charge("k")
	_, _ = r.get(r.app + "/stripe/charges")
	_, text := r.get(r.status + "/metrics")
	for _, line := range []string{
		`queueworker_fence_calls_total{answer="effect",provider="stripe",replayed="false"} 1`,
		`queueworker_fence_calls_total{answer="effect",provider="stripe",replayed="true"} 1`,
		`queueworker_fence_posts_total{provider="stripe"} 1`, `queueworker_fence_grants_total{provider="stripe"} 1`,
		`queueworker_fence_passed_total{provider="stripe"} 1`, `queueworker_fence_conflicts_total{provider="stripe"} 0`,
		`queueworker_fence_duplicates_prevented_total{provider="stripe"} 1`, `queueworker_fence_duplicates_prevented_total{provider="mail"} 0`,
		`queueworker_fence_store_seconds_count{statement="claim"} 2`, `queueworker_fence_store_seconds_count{statement="effect"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(text, "store_failures_total{") {
		t.Error("failures without a failure")
	}
}

// TestCensus: an expired claim counts as unknown, and so does its age.
func TestCensus(t *testing.T) {
	url, _ := provider(t, 0)
	file := filepath.Join(t.TempDir(), "fence.db")
	r := start(t, "SQLite", file, url)
	r.comesUp()
	r.charge("k")
	db := open(t, file)
	if _, err := db.ExecContext(t.Context(), "UPDATE queueworker_fence SET state = 'needs_review', lease_until = (unixepoch() - 3600) * 1000000"); err != nil {
		t.Fatal(err)
	}
	m := newMetrics(prometheus.NewRegistry(), []string{"stripe"})
	opened, err := table.Open(t.Context(), table.Config{Driver: "SQLite", DSN: file, Table: "queueworker_fence", Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	m.count(t.Context(), opened, "stripe", fence.SystemClock{})
	if n := testutil.ToFloat64(m.keys.WithLabelValues("stripe", "needs_review")); n != 1 {
		t.Errorf("%v keys wait for a person", n)
	}
	if age := testutil.ToFloat64(m.oldest.WithLabelValues("stripe", "needs_review")); age < 3600 || age > 3900 {
		t.Errorf("the oldest is %v s old", age)
	}
	if n := testutil.ToFloat64(m.keys.WithLabelValues("stripe", "unknown")); n != 0 {
		t.Errorf("%v keys unknown", n)
	}
}

func open(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (r *running) post(path, body string) (status int, text string) {
	response, err := http.Post(r.app+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	b, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(b)
}

// TestClaimsAndReview: the fence's own paths, and who may have its names.
func TestClaimsAndReview(t *testing.T) {
	url, _ := provider(t, 0)
	file := filepath.Join(t.TempDir(), "fence.db")
	r := start(t, "SQLite", file, url)
	r.comesUp()
	const claim = `{"scope":"mail","key":"order-1/receipt","nonce":"%s"}`
	status, text := r.post("/v1/claims", fmt.Sprintf(claim, "a"))
	if status != http.StatusOK || !strings.Contains(text, `"answer":"granted"`) {
		t.Fatalf("%d %s", status, text)
	}
	if _, text = r.get(r.app + "/v1/review"); text != `{"keys":[]}`+"\n" {
		t.Errorf("a claim that is at work is shown: %s", text)
	}
	if _, err := open(t, file).ExecContext(t.Context(), "UPDATE queueworker_fence SET lease_until = 0"); err != nil {
		t.Fatal(err)
	}
	status, text = r.get(r.app + "/v1/review?scope=mail&limit=5")
	if status != http.StatusOK || !strings.Contains(text, `"key":"order-1/receipt"`) || !strings.Contains(text, `"quiet":false`) {
		t.Errorf("review: %d %s", status, text)
	}
	if status, text = r.get(r.app + "/v1/review?limit=0"); status != http.StatusBadRequest || !strings.Contains(text, "must be from 1 to 1000") {
		t.Errorf("limit 0: %d %s", status, text)
	}
	if status, _ = r.get(r.app + "/v1/else"); status != http.StatusNotFound {
		t.Errorf("an unknown path of the fence: %d", status)
	}
	if status, text = r.get(r.app + "/stripe/../v1/review"); status == http.StatusOK && strings.Contains(text, "keys") {
		t.Errorf("the review behind a provider: %d %s", status, text)
	}
	if status, text = r.post("/v1/claims", fmt.Sprintf(claim, "b")); status != http.StatusConflict || !strings.Contains(text, "needs-review") {
		t.Errorf("a holder that vanished: %d %s", status, text)
	}
}

// TestUpkeepAsks: a key whose job never comes again is settled by a lookup.
func TestUpkeepAsks(t *testing.T) {
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.RequestURI() == "/lookup?ref=order%2F1" {
			_, _ = io.WriteString(w, `{"found":true,"id":"t-7"}`)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(p.Close)
	file := filepath.Join(t.TempDir(), "fence.db")
	r := start(t, "SQLite", file, p.URL)
	r.comesUp()
	if status, _ := r.chargeAt("/bank/transfers", "order/1"); status != http.StatusGatewayTimeout {
		t.Fatalf("the first delivery got %d", status)
	}
	db := open(t, file)
	if _, err := db.ExecContext(t.Context(), "UPDATE queueworker_fence SET quiet_until = 0"); err != nil {
		t.Fatal(err)
	}
	r.eventually("settled by a lookup", func() bool {
		var state, by, id string
		err := db.QueryRowContext(t.Context(), "SELECT state, settled_by, provider_id FROM queueworker_fence").Scan(&state, &by, &id)
		return err == nil && state == "done" && by == "lookup" && id == "t-7"
	})
	_, text := r.get(r.status + "/metrics")
	if !strings.Contains(text, `queueworker_fence_lookups_total{found="effect",provider="bank"} 1`) {
		t.Error("the lookup was not counted")
	}
}

// TestUpkeepRuns: a claim that nobody comes back for is parked.
func TestUpkeepRuns(t *testing.T) {
	url, _ := provider(t, 0)
	file := filepath.Join(t.TempDir(), "fence.db")
	r := start(t, "SQLite", file, url)
	r.comesUp()
	r.charge("k")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "UPDATE queueworker_fence SET state = 'claimed', lease_until = 0, quiet_until = 0"); err != nil {
		t.Fatal(err)
	}
	r.eventually("parked", func() bool {
		var state string
		return db.QueryRowContext(t.Context(), "SELECT state FROM queueworker_fence").Scan(&state) == nil && state == "needs_review"
	})
}

func TestTableThatCannotServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fence.db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE queueworker_fence (scope TEXT, idem_key TEXT)"); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	r := start(t, "SQLite, schema: Existing", file, "http://127.0.0.1:1")
	if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "the column fingerprint (BLOB NOT NULL) is missing") {
		t.Errorf("the sidecar ended with %v", err)
	}
}

// TestDatabaseThatGoes: not ready, and no call without the database.
func TestDatabaseThatGoes(t *testing.T) {
	url, posts := provider(t, 0)
	server, err := servers.Postgres("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			server.Stop()
		}
		stopped = true
	}
	defer stop()
	r := start(t, "PostgreSQL", server.DSN+"&connect_timeout=2", url)
	r.comesUp()
	if status, _ := r.charge("k"); status != http.StatusCreated || posts.Load() != 1 {
		t.Fatalf("status %d, %d requests", status, posts.Load())
	}
	stop()
	r.eventually("not ready", func() bool { return !r.isReady() })
	status, body := r.charge("another")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "urn:queueworker:fence:store-unavailable") || posts.Load() != 1 {
		t.Errorf("without a database: %d %s, %d requests", status, body, posts.Load())
	}
	if code, _ := r.get(r.status + "/healthz"); code != http.StatusOK {
		t.Errorf("healthz %d: a restart would not help", code)
	}
}

func TestDatabaseThatIsAwayAtTheStart(t *testing.T) {
	address, err := freeport.TakeAddress()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, "PostgreSQL", "postgres://fence@"+address+"/postgres?sslmode=disable", "http://127.0.0.1:1")
	if code, text := r.get(r.status + "/readyz"); code != http.StatusServiceUnavailable || len(r.listening) > 0 {
		t.Errorf("without a database: readyz %d %s, %d more addresses", code, text, len(r.listening))
	}
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("stopped before it began: %v", err)
	}
}
