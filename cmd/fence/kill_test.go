// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the fence itself, as a process that can be killed.
func TestMain(m *testing.M) {
	if file := os.Getenv("FENCE_TEST_CONFIG"); file != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := run(ctx, []string{"-config", file}, os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// bank books every request; with keys, a repeated one gets the first answer.
// The first request is booked, and its answer never comes.
type bank struct {
	*httptest.Server
	remembers bool

	mu      sync.Mutex
	booked  map[string]int // by key, or all under ""
	posts   int
	keys    map[string]bool
	release chan struct{}
}

func newBank(t *testing.T, remembers bool) *bank {
	t.Helper()
	b := &bank{remembers: remembers, booked: map[string]int{}, keys: map[string]bool{}, release: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(b.charge))
	t.Cleanup(func() { close(b.release); b.Close() })
	return b
}

func (b *bank) charge(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	b.posts++
	first := b.posts == 1
	b.keys[key] = true
	if !b.remembers || b.booked[key] == 0 {
		b.booked[key]++
	}
	b.mu.Unlock()
	if first {
		<-b.release
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprint(w, "ch_1")
}

func (b *bank) counts() (posts, effects, keys int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.booked {
		effects += n
	}
	return b.posts, effects, len(b.keys)
}

// process is a fence that runs.
type process struct {
	cmd *exec.Cmd
	url string
}

func startProcess(t *testing.T, config string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "FENCE_TEST_CONFIG="+config)
	output, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "the fence serves" {
			p.url = "http://" + line.Address
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return p
		}
	}
	t.Fatal("the fence ended before it served")
	return nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// deliver is one delivery of the job.
func deliver(url string) (status int, body string) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(`{"amount":1}`))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Idempotency-Key", "order-1/charge")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// TestKilledAfterTheEffect: the fence is killed when the bank has booked and
// before anybody heard of it, and the job comes again. There is one booking.
func TestKilledAfterTheEffect(t *testing.T) {
	for name, c := range map[string]struct {
		remembers bool
		declared  string
		status    int
		body      string
		posts     int
	}{
		"the bank remembers keys": {true, "keyHeader: Idempotency-Key, keyTTLSeconds: 3600, storesErrors: true", 201, "ch_1", 2},
		"the bank offers nothing": {false, "keyHeader: ''", 409, "urn:queueworker:fence:needs-review", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, c.remembers)
			dir := t.TempDir()
			config := filepath.Join(dir, "fence.yaml")
			text := strings.NewReplacer("FILE", filepath.Join(dir, "fence.db"), "BANK", b.URL, "DECLARED", c.declared).Replace(`
apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
bindAddress: 127.0.0.1:0
statusAddress: 127.0.0.1:0
httpSeconds: 16
store: {driver: SQLite, dsnFile: FILE}
retention: {doneSeconds: 3600}
providers: [{name: bank, url: "BANK", sendWindowSeconds: 2, statementSeconds: 2, timeoutSeconds: 8, maxInFlightSeconds: 60, DECLARED}]
`)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			first := startProcess(t, config)
			told := make(chan int, 1)
			go func() { status, _ := deliver(first.url + "/bank/charges"); told <- status }()
			within(t, "the booking", func() bool { _, effects, _ := b.counts(); return effects == 1 })
			first.kill()
			if status := <-told; status != 0 {
				t.Errorf("the first delivery got %d from a killed fence", status)
			}
			second := startProcess(t, config)
			var status int
			var body string
			within(t, "an answer that is final", func() bool {
				status, body = deliver(second.url + "/bank/charges")
				return status != 409 || strings.Contains(body, "needs-review")
			})
			posts, effects, keys := b.counts()
			if status != c.status || !strings.Contains(body, c.body) {
				t.Errorf("the second delivery got %d %s", status, body)
			}
			if effects != 1 || posts != c.posts || keys != 1 {
				t.Errorf("%d bookings, %d requests, %d keys; want 1, %d, 1", effects, posts, keys, c.posts)
			}
		})
	}
}

// TestKilledWithoutTheFence shows that the harness sees a second booking where
// there is one.
func TestKilledWithoutTheFence(t *testing.T) {
	b := newBank(t, false)
	ctx, die := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	within(t, "the booking", func() bool { _, effects, _ := b.counts(); return effects == 1 })
	die()
	deliver(b.URL)
	if _, effects, _ := b.counts(); effects != 2 {
		t.Errorf("%d bookings", effects)
	}
}

func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came: " + what)
		}
	}
}
