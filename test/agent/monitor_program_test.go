// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
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
	"github.com/queueworker/operator/test/replay"
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

// program is a monitor as its pod runs it: copied, with a service account.
type program struct {
	*exec.Cmd
	api    *apiServer
	port   string
	ended  chan error
	output lockedBuffer
}

// monitor starts one of the application, with this interval in seconds.
func (a *app) monitor(t *testing.T, interval int64) *program {
	t.Helper()
	p := &program{api: &apiServer{}, port: must[string](t)(takePort()), ended: make(chan error, 1)}
	server := httptest.NewTLSServer(p.api)
	t.Cleanup(server.Close)
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
	built := must[string](t)(build("monitor", "../../cmd/monitor"))
	if out, err := exec.Command(built, "copy", "--dir", shared).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := monitor.Config{
		Namespace: "shop", Name: "payments", Runtime: "Laravel", Connection: a.connection,
		IntervalSeconds: interval, StuckAfterSeconds: 4, MetricsAddress: "127.0.0.1:" + p.port,
	}
	p.Cmd = exec.Command(filepath.Join(shared, "monitor"), "run", "--dir", shared, "--service-account", account, "--", "php8.2", "artisan", "queue:work", a.connection)
	p.Dir, p.Env = a.dir, append(a.env, monitor.ConfigEnv+"="+config.Encode(), "KUBERNETES_SERVICE_HOST="+at.Hostname(), "KUBERNETES_SERVICE_PORT="+at.Port())
	p.Stdout, p.Stderr = &p.output, &p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(func() {
		p.killScript()
		_ = p.Process.Kill()
		if t.Failed() {
			t.Logf("the monitor's output:\n%s", p.output.text())
		}
	})
	return p
}

// killScript kills what the monitor has started.
func (p *program) killScript() {
	for _, process := range proc.Descendants(p.Process.Pid) {
		_ = proc.Signal(process, syscall.SIGKILL)
	}
}

// text is what it answers, with status 0 where it does not.
func (p *program) text(path string) (int, []byte) {
	response, err := http.Get("http://127.0.0.1:" + p.port + path)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, text
}

func (p *program) samples(t *testing.T) map[string]string {
	t.Helper()
	_, text := p.text("/metrics")
	return samples(t, bytes.NewReader(text))
}

func (p *program) becomes(t *testing.T, state monitor.State) {
	t.Helper()
	eventually(t, patience, "state "+string(state), func() bool { s, _ := p.api.state(); return s.State == state })
}

// The program is scraped, probed, its script killed, and it is ended by SIGTERM.
func TestMonitorProgram(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	p := a.monitor(t, 1)
	p.becomes(t, monitor.Empty)
	if code, _ := p.text("/healthz"); code != http.StatusOK {
		t.Errorf("readiness %d", code)
	}
	eventually(t, patience, "three seconds without a write, while nothing changes", func() bool {
		_, before := p.api.state()
		time.Sleep(3 * time.Second)
		_, after := p.api.state()
		return after == before
	})
	a.dispatch(t, "Short", facts("n"))
	p.becomes(t, monitor.Stuck) // the worker is ready, as the cluster says, and takes nothing
	if found := p.samples(t); found[`queueworker_queue_state{queueworker="payments",state="Stuck"}`] != "1" || found[`queueworker_queue_depth{queueworker="payments",queue="default"}`] != "1" {
		t.Errorf("%v", found)
	}
	p.killScript()
	const restarts = `queueworker_monitor_script_restarts_total{queueworker="payments",cause="exit"}`
	eventually(t, patience, "a script that was started again", func() bool {
		found := p.samples(t)
		return found[restarts] != "" && found[restarts] != "0" && found[`queueworker_monitor_up{queueworker="payments"}`] == "1"
	})
	p.becomes(t, monitor.Stuck)
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("the monitor ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the monitor does not end")
	}
}

// Two thousand jobs of one class that fail at once, among healthy ones, are one
// alert, by what the monitor really told meanwhile.
func TestManyFailuresAreOneAlert(t *testing.T) {
	t.Parallel()
	const failures = 2000
	a := newApp(t, onRedis)
	p := a.monitor(t, 5)
	p.becomes(t, monitor.Empty)
	recording := &replay.Recording{
		Labels: map[string]string{"namespace": "shop", "pod": "payments-monitor-a", "job": "monitors"},
		Alert:  "QueueWorkerJobsFailing",
		Fires:  map[string]string{"severity": "warning", "namespace": "shop", "queueworker": "payments", "class": `App\Jobs\Fails`, "error": "RuntimeException"},
	}
	scrape := func() {
		if code, text := p.text("/metrics"); code == http.StatusOK {
			recording.Add(text)
		}
	}
	scrape()
	a.dispatch(t, "Fails", facts("bad"), fmt.Sprint("--times=", failures))
	a.dispatch(t, "Short", facts("good"), "--times=100")
	worker := a.start(t, plan{work: []string{"--sleep=0", "--tries=1"}})
	eventually(t, 3*patience, "every failure is told", func() bool {
		time.Sleep(5 * time.Second)
		scrape()
		return p.samples(t)[`queueworker_failed_jobs_total{queueworker="payments",class="App\\Jobs\\Fails",error="RuntimeException"}`] == fmt.Sprint(failures)
	})
	worker.drain(t)
	worker.stop(t)
	scrape()
	if err := recording.Evaluate(t.Context(), "../monitoring"); err != nil {
		t.Error(err)
	}
}
