// SPDX-License-Identifier: Apache-2.0

// Package hook is the conversation between the supervisor and the short-lived
// processes that the kubelet starts in the same container: one line asks, one
// line answers, over a unix socket.
package hook

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Question is what is asked.
type Question string

// The questions.
const (
	Drain Question = "drain" // stop; answered when the worker is gone
	Probe Question = "probe" // is all well; answered at once
)

// Healthy is the answer to Probe when all is well; anything else is a complaint.
const Healthy = "ok"

// askLimit bounds how long a client may take to send its line.
const askLimit = 5 * time.Second

// Request is a question on its way through the supervisor. Exactly one answer
// must be sent; the channel has room for it.
type Request struct {
	Question Question
	Answer   chan<- string
}

// farewell bounds how long the end of the supervisor waits for its last answers
// to be written. A container that is throttled needs more than a moment for that.
const farewell = 2 * time.Second

// Listen answers on the socket by handing every request to the channel, until
// the returned function is called. That returns when every answer given is on
// its way.
func Listen(socket string, requests chan<- Request) (func(), error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the hook: %w", err)
	}
	var conversations sync.WaitGroup
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors, say: others may be given back
				time.Sleep(10 * time.Millisecond)
				continue
			}
			conversations.Go(func() { serve(conn, requests) })
		}
	}()
	return func() {
		_ = listener.Close()
		over := make(chan struct{})
		go func() { conversations.Wait(); close(over) }()
		select {
		case <-over:
		case <-time.After(farewell):
		}
	}, nil
}

func serve(conn net.Conn, requests chan<- Request) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(askLimit))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	question := Question(strings.TrimSpace(line))
	if question != Drain && question != Probe {
		fmt.Fprintf(conn, "unknown question %q\n", question)
		return
	}
	answer := make(chan string, 1)
	requests <- Request{Question: question, Answer: answer}
	fmt.Fprintln(conn, <-answer)
}

// ErrNoSupervisor says that nothing listens.
var ErrNoSupervisor = errors.New("no supervisor answers")

// Ask sends one question and waits for the answer until the deadline. For
// patience it goes on trying to reach a supervisor that is still starting.
func Ask(socket string, question Question, patience time.Duration, deadline time.Time) (string, error) {
	conn, err := dial(socket, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(deadline)
	if _, err := fmt.Fprintln(conn, question); err != nil {
		return "", fmt.Errorf("ask the supervisor: %w", err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", fmt.Errorf("the supervisor has not answered in time: %w", err)
	}
	if err != nil {
		return "", fmt.Errorf("the supervisor left without an answer: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func dial(socket string, patience time.Duration) (net.Conn, error) {
	for end := time.Now().Add(patience); ; {
		conn, err := net.DialTimeout("unix", socket, time.Second)
		if err == nil {
			return conn, nil
		}
		if !time.Now().Before(end) {
			return nil, fmt.Errorf("%w on %s: %w", ErrNoSupervisor, socket, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
