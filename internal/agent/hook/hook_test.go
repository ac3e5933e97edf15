// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/hook"
)

func listen(t *testing.T) (socket string, requests chan hook.Request, stop func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	requests = make(chan hook.Request)
	stop, err := hook.Listen(socket, requests)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return socket, requests, stop
}

func soon() time.Time { return time.Now().Add(time.Minute) }

func TestAskIsAnswered(t *testing.T) {
	socket, requests, stop := listen(t)
	go func() {
		for request := range requests {
			request.Answer <- "heard " + string(request.Question)
		}
	}()
	for _, question := range []hook.Question{hook.Drain, hook.Probe} {
		if answer, err := hook.Ask(socket, question, 0, soon()); err != nil || answer != "heard "+string(question) {
			t.Errorf("%q, %v", answer, err)
		}
	}
	stop()
	if _, err := hook.Ask(socket, hook.Probe, 0, soon()); !errors.Is(err, hook.ErrNoSupervisor) {
		t.Errorf("after the end: %v", err)
	}
}

// An answer given just before the end still arrives.
func TestEndWaitsForAnswers(t *testing.T) {
	for range 50 {
		socket, requests, stop := listen(t)
		answers := make(chan string)
		go func() {
			answer, err := hook.Ask(socket, hook.Drain, 0, soon())
			if err != nil {
				answer = err.Error()
			}
			answers <- answer
		}()
		request := <-requests
		request.Answer <- "bye"
		stop()
		if answer := <-answers; answer != "bye" {
			t.Fatalf("%q", answer)
		}
	}
}

func TestPatienceAndDeadline(t *testing.T) {
	begin := time.Now()
	_, err := hook.Ask(filepath.Join(t.TempDir(), "none"), hook.Drain, 300*time.Millisecond, soon())
	if took := time.Since(begin); !errors.Is(err, hook.ErrNoSupervisor) || took < 300*time.Millisecond || took > 30*time.Second {
		t.Errorf("%v after %s", err, took)
	}
	socket, requests, _ := listen(t)
	go func() { <-requests }() // never answers
	begin = time.Now()
	_, err = hook.Ask(socket, hook.Drain, 0, time.Now().Add(200*time.Millisecond))
	if took := time.Since(begin); err == nil || took > 30*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

func TestUnknownQuestionDisturbsNobody(t *testing.T) {
	socket, requests, _ := listen(t)
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("dance\n"))
	answer := make([]byte, 100)
	n, _ := conn.Read(answer)
	if n == 0 {
		t.Error("no answer")
	}
	select {
	case request := <-requests:
		t.Errorf("it came through as %+v", request)
	default:
	}
}
