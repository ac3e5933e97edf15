// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/queueworker/operator/hack/operator"
)

// replica is one replica of the manager. Whenever its process ends, a new one is
// started, as a kubelet does.
type replica struct {
	gateway *gateway
	log     string // of all its processes
	args    []string

	mu       sync.Mutex
	manager  *operator.Manager // nil between two processes
	killed   bool              // this process, by us
	pause    time.Duration
	stopping bool
	over     chan struct{} // closed when there will be no other one

	kills int
	exits []string // the last words of processes that nobody killed
}

// newReplica starts a replica; it ends with the test.
func newReplica(t *testing.T, args ...string) *replica {
	t.Helper()
	g := newGateway(t)
	r := &replica{gateway: g, log: filepath.Join(t.TempDir(), "log"), over: make(chan struct{})}
	r.args = append([]string{"--log-format=console"}, args...)
	go r.run()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the end of a manager's log:\n%s", tail(r.log, 60))
		}
	})
	return r
}

func (r *replica) run() {
	defer close(r.over)
	for {
		manager, err := r.start()
		if err != nil {
			r.mu.Lock()
			r.exits = append(r.exits, err.Error())
			r.mu.Unlock()
			return
		}
		if manager == nil {
			return
		}
		<-manager.Ended()
		r.mu.Lock()
		r.manager = nil
		if !r.killed {
			r.exits = append(r.exits, tail(r.log, 1))
			r.pause = 500 * time.Millisecond
		}
		pause := r.pause
		r.pause = 0
		r.mu.Unlock()
		time.Sleep(pause)
	}
}

// start starts a process on free ports; nil when the replica is to stop.
func (r *replica) start() (*operator.Manager, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return nil, nil
	}
	endpoints, err := operator.FreeEndpoints()
	if err != nil {
		return nil, err
	}
	r.killed = false
	r.manager, err = endpoints.Start(binary, r.gateway.kubeconfig, r.log, r.args...)
	return r.manager, err
}

// kill ends the process at once and returns when it is dead; false where none is
// running. The next one starts after the pause.
func (r *replica) kill(pause time.Duration) bool {
	r.mu.Lock()
	manager := r.manager
	if manager == nil || r.killed {
		r.mu.Unlock()
		return false
	}
	r.killed, r.pause = true, pause
	r.kills++
	r.mu.Unlock()
	manager.Kill()
	return true
}

func (r *replica) stop() {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	r.kill(0)
	<-r.over
}

// outage are the last words of a manager that met the API server while it was
// down, or had not yet read its own roles.
var outage = regexp.MustCompile("leader election lost|cannot reach the API server|no permission: ")

// odd are the ends that neither a kill nor an outage of the API server explains.
func (r *replica) odd() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var odd []string
	for _, words := range r.exits {
		if !outage.MatchString(words) {
			odd = append(odd, words)
		}
	}
	return odd
}

func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	all = slices.DeleteFunc(all, func(line []byte) bool { return bytes.Contains(line, []byte("webhook-registration")) })
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
