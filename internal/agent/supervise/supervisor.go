// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/queueworker/operator/internal/agent/drain"
	"github.com/queueworker/operator/internal/agent/hook"
	"github.com/queueworker/operator/internal/agent/probe"
	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/tally"
	"github.com/queueworker/operator/internal/agent/termination"
	"github.com/queueworker/operator/internal/agent/verdict"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

type supervisor struct {
	Config

	signals  chan os.Signal
	children chan os.Signal
	requests chan hook.Request
	scrapes  chan chan<- []byte
	tally    tally.Tally
	rings    map[int]*tally.Ring // by process

	command   command
	floor     verdict.Floor
	overran   *termination.Job // killed by the watchdog
	scolded   map[int]bool     // processes that the watchdog killed
	departed  departure        // a master's last worker, while it has no other
	complaint string           // the last one

	stop  stopState
	ended bool // the last worker is gone and reported
	final termination.Message
	exit  int
	until time.Time // when an ended supervisor leaves
	done  bool
}

// stopState is how far a stop has come.
type stopState struct {
	asked      time.Time // zero until then
	bySignal   bool      // the kubelet's own signal has come
	waiting    []chan<- string
	before     helper // the beforeStop command
	beforeDone bool
	gateClosed bool
	drain      drain.Drain
	reported   string // the job in the provisional message
	waitedFor  *termination.Job
}

// departure is what a worker last said, and when its end was noticed.
type departure struct {
	last *workerstate.State
	at   time.Time
}

// Run supervises until the container has nothing left to do, and returns its
// exit code.
func Run(config Config) int {
	s := &supervisor{
		Config:   config,
		signals:  make(chan os.Signal, 16),
		children: make(chan os.Signal, 1),
		requests: make(chan hook.Request),
		scrapes:  make(chan chan<- []byte),
		rings:    map[int]*tally.Ring{},
		scolded:  map[int]bool{},
	}
	s.subscribe()
	farewell, err := s.prepare()
	if err == nil {
		defer farewell()
		err = s.start()
	}
	if err != nil {
		s.conclude(verdict.Verdict{Outcome: termination.Crashed, Exit: verdict.ExitCrashed, Reason: err.Error()}, nil)
		return s.exit
	}
	for !s.done {
		s.wait()
		s.reap()
		s.step()
	}
	return s.exit
}

func (s *supervisor) prepare() (func(), error) {
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	if err := s.Dir.Prepare(); err != nil {
		return nil, err
	}
	s.serveMetrics()
	return hook.Listen(s.Dir.Socket(), s.requests)
}

func (s *supervisor) subscribe() {
	signal.Notify(s.children, syscall.SIGCHLD)
	signal.Notify(s.signals, passedOn...)
	signal.Notify(s.signals, stopSignals()...)
}

// wait blocks until something has happened or it is time to look. A scrape is
// nothing that happens: it only reads.
func (s *supervisor) wait() {
	poll := idlePoll
	if s.stopping() && !s.ended {
		poll = drainPoll
	}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.children:
		case sig := <-s.signals:
			if number, ok := sig.(syscall.Signal); ok {
				s.signalled(number)
			}
		case request := <-s.requests:
			s.asked(request)
		case answer := <-s.scrapes:
			answer <- s.metrics()
			continue
		}
		return
	}
}

func (s *supervisor) signalled(sig syscall.Signal) {
	if isPassedOn(sig) {
		s.passOn(sig)
		return
	}
	s.logf("received %s", sig)
	s.stop.bySignal = true
	if s.ended {
		return
	}
	if !s.stopping() {
		s.askToStop()
		return
	}
	// With a hook still waiting this is the end of the grace: SIGKILL follows.
	alive, _ := s.workers()
	s.writeProvisional(alive)
}

func (s *supervisor) asked(request hook.Request) {
	switch {
	case request.Question == hook.Probe:
		request.Answer <- s.health()
	case s.ended:
		request.Answer <- string(s.final.Encode())
	default:
		s.stop.waiting = append(s.stop.waiting, request.Answer)
		if !s.stopping() {
			s.logf("asked to drain")
			s.askToStop()
		}
	}
}

func (s *supervisor) health() string {
	if !s.Tracked || s.stopping() || s.ended {
		return hook.Healthy // a drain has limits of its own
	}
	alive, _ := s.workers()
	if complaint := probe.Complaint(s.Wire, alive, time.Now(), proc.Clock()); complaint != "" {
		return complaint
	}
	return hook.Healthy
}

// step does what the state of things calls for.
func (s *supervisor) step() {
	if s.ended {
		s.done = s.stop.bySignal || time.Now().After(s.until)
		return
	}
	s.closeGate()
	// After the gate: see package drain.
	alive, dead := s.workers()
	s.count(alive, dead)
	if s.command.gone && !(s.stopping() && s.stillStopping(alive)) {
		s.commandEnded(alive, dead)
		return
	}
	s.watch(alive)
	if s.stopping() {
		s.drainStep(alive, dead)
	} else if s.Master {
		s.remember(alive, dead, time.Now())
		s.forget(dead)
	}
}

// workers returns the states of live workers and the last words of dead ones. A
// file that names a process that is not ours is no worker's. Where nothing can
// be read, a job may be running.
func (s *supervisor) workers() (alive, dead []workerstate.State) {
	if !s.Tracked {
		return nil, nil
	}
	states, err := workerstate.ReadAll(s.Dir.Run())
	if err != nil {
		s.complain(err)
		if !s.command.gone {
			alive = []workerstate.State{{PID: s.command.pid, Phase: workerstate.Unknown}}
		}
		return alive, nil
	}
	for _, state := range states {
		switch {
		case !proc.Alive(state.PID, state.Start):
			dead = append(dead, state)
		case proc.Below(state.PID, os.Getpid()):
			alive = append(alive, state)
		}
	}
	return alive, dead
}

// remember keeps the last words of a master's last worker: a master that was
// told to terminate ends after it.
func (s *supervisor) remember(alive, dead []workerstate.State, now time.Time) {
	if len(alive) > 0 {
		s.departed = departure{}
	} else if last := lastWords(dead); last != nil {
		s.departed = departure{last: last, at: now}
	}
}

// lastWord is the state to judge the end of the command by; nil = nobody said
// anything that has to do with it.
func (s *supervisor) lastWord(alive, dead []workerstate.State, now time.Time) *workerstate.State {
	if last := lastWords(append(dead, alive...)); last != nil {
		return last
	}
	if now.Sub(s.departed.at) > partingLimit {
		return nil
	}
	return s.departed.last
}

// forget drops the last words of workers that a master has replaced.
func (s *supervisor) forget(dead []workerstate.State) {
	for _, state := range dead {
		if state.InJob() {
			s.logf("worker %d ended in its job %s", state.PID, describe(state.Job))
		}
		_ = os.Remove(workerstate.Path(s.Dir.Run(), state.PID))
		s.forgetRuns(state.PID)
	}
}

func (s *supervisor) stopping() bool { return !s.stop.asked.IsZero() }

// complain reports an error that may come again at every look, once.
func (s *supervisor) complain(err error) {
	if err.Error() != s.complaint {
		s.complaint = err.Error()
		s.logf("%v", err)
	}
}

func (s *supervisor) logf(format string, args ...any) {
	fmt.Fprintf(s.Log, "queueworker: "+format+"\n", args...)
}
