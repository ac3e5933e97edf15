// SPDX-License-Identifier: Apache-2.0

package webhookload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/queueworker/operator/hack/operator"
)

// probePeriod is how late a Service learns that a pod is ready, or is not.
const probePeriod = time.Second

// service spreads connections over the ready replicas of the operator, as a
// Service does: it learns of a dead one by the next probe, and what it sends
// there until then is lost.
type service struct {
	listener net.Listener
	config   string // the managers' file
	log      string

	mu       sync.Mutex
	replicas []*replica
	problem  error // why a replica could not be started again
}

// replica is a pod: a process, and a new one after it, whether somebody killed
// it or it ended by itself, as a leader does that cannot keep its lease.
type replica struct {
	manager *operator.Manager
	removed bool // no new one follows
	ready   bool // at the last probe, as far as the Service knows: it may be another process by now
	back    bool // this process has been ready
}

// newService listens, and starts the replicas. All of it ends with the test.
func newService(t *testing.T, replicas int, failurePolicy string) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	s := &service{listener: listener, config: filepath.Join(folder, "config.yaml"), log: filepath.Join(folder, "log")}
	config := "apiVersion: config.queueworker.dev/v1alpha1\nkind: ManagerConfig\nwebhook: {failurePolicy: " + failurePolicy + "}\n"
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		for i := range s.replicas {
			s.remove(i)
		}
		if t.Failed() {
			words, _ := os.ReadFile(s.log)
			t.Logf("the end of the managers' log:\n%s", words[max(0, len(words)-8000):])
		}
	})
	for i := range replicas {
		s.replicas = append(s.replicas, &replica{})
		if err := s.start(i); err != nil {
			t.Fatal(err)
		}
	}
	go s.accept()
	go s.probe(ctx)
	return s
}

// start starts a process for a replica; as a new pod it has new addresses.
func (s *service) start(i int) error {
	endpoints, err := operator.FreeEndpoints()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	manager, err := endpoints.Start(binary, kubeconfig, s.log, "--config="+s.config, "--webhook-url=https://localhost:"+port)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[i].manager, s.replicas[i].back = manager, false
	return nil
}

// remove kills a replica for good.
func (s *service) remove(i int) {
	s.mu.Lock()
	s.replicas[i].removed = true
	s.mu.Unlock()
	s.kill(i)
}

// kill ends a replica's process at once. Another one follows by the next probe.
func (s *service) kill(i int) {
	if manager := s.manager(i); manager != nil {
		manager.Kill()
	}
}

func (s *service) manager(i int) *operator.Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replicas[i].manager
}

// whole is an error while connections do not go to every replica.
func (s *service) whole() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		if !r.ready || !r.back {
			return cmp.Or(s.problem, errors.New("not yet"))
		}
	}
	return s.problem
}

// restart starts what has ended, as a kubelet does.
func (s *service) restart(i int) {
	select {
	case <-s.manager(i).Ended():
	default:
		return
	}
	s.mu.Lock()
	removed := s.replicas[i].removed
	s.mu.Unlock()
	if removed {
		return
	}
	if err := s.start(i); err != nil {
		s.mu.Lock()
		s.problem = err
		s.mu.Unlock()
	}
}

func (s *service) probe(ctx context.Context) {
	for {
		for i := range s.replicas {
			s.restart(i)
			manager := s.manager(i)
			ready := manager.Probe("/readyz") == http.StatusOK
			s.mu.Lock()
			s.replicas[i].ready = ready
			s.replicas[i].back = ready && s.replicas[i].manager == manager
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(probePeriod):
		}
	}
}

func (s *service) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.forward(connection)
	}
}

// forward hands a connection to one of the ready replicas. It picks but once,
// as a Service does.
func (s *service) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	address, err := s.pick()
	if err != nil {
		return
	}
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{to, from}, {from, to}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (s *service) pick() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ready []string
	for _, r := range s.replicas {
		if r.ready {
			ready = append(ready, r.manager.Webhook)
		}
	}
	if len(ready) == 0 {
		return "", fmt.Errorf("none of %d replicas is ready", len(s.replicas))
	}
	return ready[rand.IntN(len(ready))], nil
}
