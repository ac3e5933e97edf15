// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// told is what a copy of the job learned; status 0: nothing.
type told struct {
	Status  int
	Problem string
}

func (t told) effect() bool  { return t.Status >= 200 && t.Status < 300 }
func (t told) refused() bool { return t.Status >= 400 && t.Status < 500 && t.Problem == "" }
func (t told) parked() bool  { return t.Problem == "needs-review" }
func (t told) final() bool   { return t.effect() || t.refused() || t.parked() }

// one connection for each call, so that nothing outlives its fence.
var transport = &http.Transport{DisableKeepAlives: true}

// deliver is one delivery of the job.
func deliver(ctx context.Context, url, run string) told {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"amount":1}`))
	if err != nil {
		return told{}
	}
	request.Header.Set("Idempotency-Key", run)
	request.Header.Set("X-Run", run)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return told{}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return told{}
	}
	t := told{Status: response.StatusCode}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Type string }
		_ = json.Unmarshal(text, &p)
		t.Problem = strings.TrimPrefix(p.Type, "urn:queueworker:fence:")
	}
	return t
}

// The variable makes this test's program a client: URL and run.
const clientVariable = "FENCE_CRASH_CLIENT"

func asClient(text string) {
	url, run, _ := strings.Cut(text, " ")
	answer := deliver(context.Background(), url, run)
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}

// process is a client that can be killed.
func process(url, run string) (wait func() told, kill func(), err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clientVariable+"="+url+" "+run)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	wait = func() (answer told) {
		text, _ := io.ReadAll(output)
		_ = cmd.Wait()
		_ = json.Unmarshal(text, &answer)
		return answer
	}
	return wait, func() { _ = cmd.Process.Kill() }, nil
}
