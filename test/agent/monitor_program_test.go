// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/monitor"
)

// apiServer is as much of one as a monitor needs; it keeps what is applied.
type apiServer struct {
	sync.Mutex
	status, conditions json.RawMessage
	writes             int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	if r.Header.Get("Authorization") != "Bearer token-of-the-pod" || r.URL.Path != "/apis/queueworker.dev/v1alpha1/namespaces/shop/queueworkers/payments/status" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPatch {
		var applied struct {
			Status struct{ QueueState, Conditions json.RawMessage }
		}
		text, _ := io.ReadAll(r.Body)
		if json.Unmarshal(text, &applied) != nil || len(applied.Status.QueueState) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.status, s.conditions = applied.Status.QueueState, applied.Status.Conditions
		s.writes++
	}
	object := map[string]any{"spec": map[string]any{"replicas": 1}, "status": map[string]any{"readyReplicas": 1}}
	if s.status != nil {
		object["status"] = map[string]any{"readyReplicas": 1, "queueState": s.status, "conditions": s.conditions}
	}
	_ = json.NewEncoder(w).Encode(object)
}

// state is what was written last.
func (s *apiServer) state() (status monitor.Status, writes int) {
	s.Lock()
	defer s.Unlock()
	_ = json.Unmarshal(s.status, &status)
	return status, s.writes
}

// The program as its pod runs it: copied, with a service account, scraped,
// probed, its script killed, and ended by SIGTERM.
func TestMonitorProgram(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	api := &apiServer{}
	server := httptest.NewTLSServer(api)
	defer server.Close()
	at := must[*url.URL](t)(url.Parse(server.URL))
	account, shared := filepath.Join(a.dir, "account"), openDir(t)
	for name, text := range map[string]string{
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), "token": "token-of-the-pod",
	} {
		if err := os.MkdirAll(account, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := must[string](t)(build("monitor", "../../cmd/monitor"))
	if out, err := exec.Command(program, "copy", "--dir", shared).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := must[string](t)(takePort())
	config := monitor.Config{Namespace: "shop", Name: "payments", Runtime: "Laravel", Connection: "redis", IntervalSeconds: 1, StuckAfterSeconds: 4, MetricsAddress: "127.0.0.1:" + port}
	cmd := exec.Command(filepath.Join(shared, "monitor"), "run", "--dir", shared, "--service-account", account, "--", "php8.2", "artisan", "queue:work", "redis")
	cmd.Dir, cmd.Env = a.dir, append(a.env, monitor.ConfigEnv+"="+config.Encode(), "KUBERNETES_SERVICE_HOST="+at.Hostname(), "KUBERNETES_SERVICE_PORT="+at.Port())
	var output lockedBuffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		for _, process := range proc.Descendants(cmd.Process.Pid) {
			_ = proc.Signal(process, syscall.SIGKILL)
		}
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the monitor's output:\n%s", output.text())
		}
	})
	ask := func(path string) (int, map[string]string) {
		response, err := http.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			return 0, nil
		}
		defer response.Body.Close()
		return response.StatusCode, samples(t, response.Body)
	}
	becomes := func(state monitor.State) {
		t.Helper()
		eventually(t, patience, "state "+string(state), func() bool { s, _ := api.state(); return s.State == state })
	}
	becomes(monitor.Empty)
	if code, _ := ask("/healthz"); code != http.StatusOK {
		t.Errorf("readiness %d", code)
	}
	eventually(t, patience, "three seconds without a write, while nothing changes", func() bool {
		_, before := api.state()
		time.Sleep(3 * time.Second)
		_, after := api.state()
		return after == before
	})
	a.dispatch(t, "Short", facts("n"))
	becomes(monitor.Stuck) // the worker is ready, as the cluster says, and takes nothing
	if _, found := ask("/metrics"); found[`queueworker_queue_state{queueworker="payments",state="Stuck"}`] != "1" || found[`queueworker_queue_depth{queueworker="payments",queue="default"}`] != "1" {
		t.Errorf("%v", found)
	}
	for _, process := range proc.Descendants(cmd.Process.Pid) {
		_ = proc.Signal(process, syscall.SIGKILL)
	}
	const restarts = `queueworker_monitor_script_restarts_total{queueworker="payments",cause="exit"}`
	eventually(t, patience, "a script that was started again", func() bool {
		_, found := ask("/metrics")
		return found[restarts] != "" && found[restarts] != "0" && found[`queueworker_monitor_up{queueworker="payments"}`] == "1"
	})
	becomes(monitor.Stuck)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the monitor ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the monitor does not end")
	}
}
