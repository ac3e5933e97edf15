// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	inFlight   = 1000
	mostMemory = 96.0 // MiB
)

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// memory is what a real fence takes at most while a thousand calls of 2 KiB are
// under way.
func (r *race) memory(ctx context.Context) (bool, error) {
	dir, err := os.MkdirTemp("", "fence-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var arrived atomic.Int64
	release := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		arrived.Add(1)
		<-release
		w.WriteHeader(http.StatusCreated)
	}))
	defer provider.Close()
	url, pid, stop, err := r.program(ctx, dir, provider.URL)
	if err != nil {
		close(release)
		return false, err
	}
	defer stop()
	var working sync.WaitGroup
	client := newClient()
	for i := range inFlight {
		working.Go(func() { post2KiB(ctx, client, url, i) })
	}
	for end := time.Now().Add(30 * time.Second); arrived.Load() < inFlight && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	close(release)
	working.Wait()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false, err
	}
	kib, err := numberIn(status, peak)
	if err != nil {
		return false, err
	}
	fmt.Printf("%-12s %d calls of 2 KiB under way at once: %.0f MiB (at most %.0f)\n", r.name, arrived.Load(), kib/1024, mostMemory)
	return kib/1024 <= mostMemory && arrived.Load() == inFlight, nil
}

func post2KiB(ctx context.Context, client *http.Client, base string, i int) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/"+scope+"/charges", strings.NewReader(strings.Repeat("x", 2048)))
	if err != nil {
		return
	}
	r.Header.Set("Idempotency-Key", fmt.Sprintf("memory-%d", i))
	if response, err := client.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// program builds and starts the fence itself.
func (r *race) program(ctx context.Context, dir, provider string) (url string, pid int, stop func(), err error) {
	binary, dsn, config := filepath.Join(dir, "fence"), filepath.Join(dir, "dsn"), filepath.Join(dir, "fence.yaml")
	text := fmt.Sprintf(`apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
bindAddress: 127.0.0.1:0
statusAddress: 127.0.0.1:0
httpSeconds: 120
store: {driver: %s, dsnFile: %s, table: fence}
retention: {doneSeconds: 3600}
providers: [{name: %s, url: %q, statementSeconds: 20, sendWindowSeconds: 20}]
`, map[bool]string{true: "PostgreSQL", false: "MySQL"}[r.name == postgreSQL.name], dsn, scope, provider)
	output, buildErr := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/queueworker/operator/cmd/fence").CombinedOutput()
	if buildErr != nil {
		return "", 0, nil, fmt.Errorf("build the fence: %w\n%s", buildErr, output)
	}
	if err := errors.Join(os.WriteFile(dsn, []byte(r.server.DSN), 0o600), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		return "", 0, nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "-config", config)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", 0, nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "the fence serves" {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return "http://" + line.Address, cmd.Process.Pid, stop, nil
		}
	}
	stop()
	return "", 0, nil, errors.New("the fence ended before it served")
}
