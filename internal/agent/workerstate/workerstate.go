// SPDX-License-Identifier: Apache-2.0

// Package workerstate reads what worker processes say about themselves.
package workerstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Version is the version of the state file that this package reads.
const Version = 1

// Phase is where a worker is in its loop.
type Phase string

// The phases.
const (
	Boot     Phase = "boot"     // the application starts; also a worker held by maintenance mode from the start
	Loop     Phase = "loop"     // looks for a job, or takes one right now
	Job      Phase = "job"      // runs a job
	Ended    Phase = "ended"    // the job has run; what follows it is under way, or the worker is paused
	Gated    Phase = "gated"    // saw the closed gate; takes no job while it is closed
	Stopping Phase = "stopping" // ends by its own decision
	Unknown  Phase = "unknown"  // the file cannot be understood
)

// Task is the job that a worker runs.
type Task struct {
	UUID    string `json:"uuid"`
	Class   string `json:"class"`
	Queue   string `json:"queue"`
	Attempt int    `json:"attempt"`
	Timeout *int64 `json:"timeout"` // seconds, 0 = no limit; nil = the worker's own limit applies
}

// State is one worker process as it last described itself.
type State struct {
	Version       int    `json:"v"`
	PID           int    `json:"pid"`
	Start         uint64 `json:"start"` // in clock ticks since boot, see proc(5); 0 = not known
	Phase         Phase  `json:"phase"`
	Mask          bool   `json:"mask"` // it can hold a stop signal back until its job has ended
	Jobs          int    `json:"jobs"` // taken in this process's life
	Job           *Task  `json:"job"`
	Clock         int64  `json:"clock"` // nanoseconds of the monotonic clock at the change of phase
	Interruptible bool   `json:"interruptible"`
	Gate          string `json:"gate"` // the id of the gate it saw
	Status        int    `json:"status"`
	Reason        string `json:"reason"`

	Beat time.Time `json:"-"` // the last sign of life
}

// InJob says whether a job may be running: a state that cannot be read may hide
// one.
func (s State) InJob() bool { return s.Phase == Job || s.Phase == Unknown }

// Age is the time since the phase began, by the monotonic clock.
func (s State) Age(clock int64) time.Duration { return time.Duration(clock - s.Clock) }

// Path is the state file of a process.
func Path(dir string, pid int) string {
	return filepath.Join(dir, "w."+strconv.Itoa(pid)+".state")
}

// ReadAll reads every state file. One that cannot be understood comes back as
// phase Unknown, never as idle.
func ReadAll(dir string) ([]State, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read worker states: %w", err)
	}
	var states []State
	for _, entry := range entries {
		pid, ok := pidOf(entry.Name())
		if !ok {
			continue
		}
		state, err := read(filepath.Join(dir, entry.Name()), pid)
		if os.IsNotExist(err) { // the worker took it back
			continue
		}
		if err != nil {
			state = State{PID: pid, Phase: Unknown}
		}
		states = append(states, state)
	}
	return states, nil
}

// A worker writes in place, so a reader can come in the middle of a write. The
// checksum tells, and a later look is better: each pause is twice the one before,
// since a worker whose processor is taken away in the middle needs it back first.
const (
	firstPause   = 100 * time.Microsecond
	longestPause = 500 * firstPause
)

func read(path string, pid int) (state State, err error) {
	state, err = look(path, pid)
	for pause := firstPause; err != nil && !os.IsNotExist(err) && pause <= longestPause; pause *= 2 {
		time.Sleep(pause)
		state, err = look(path, pid)
	}
	return state, err
}

func look(path string, pid int) (State, error) {
	info, err := os.Stat(path)
	if err != nil {
		return State{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return State{}, err
	}
	sum, body, found := bytes.Cut(bytes.TrimRight(text, " "), []byte(" "))
	if !found || string(sum) != fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) {
		return State{}, fmt.Errorf("%s: checksum %q is wrong", path, sum)
	}
	state := State{Beat: info.ModTime()}
	if err := json.Unmarshal(body, &state); err != nil {
		return State{}, err
	}
	if state.Version != Version || state.PID != pid {
		return State{}, fmt.Errorf("%s has version %d and pid %d", path, state.Version, state.PID)
	}
	switch state.Phase {
	case Boot, Loop, Job, Ended, Gated, Stopping:
	default:
		state.Phase = Unknown
	}
	return state, nil
}

func pidOf(name string) (int, bool) {
	number, found := strings.CutPrefix(name, "w.")
	if !found {
		return 0, false
	}
	number, found = strings.CutSuffix(number, ".state")
	if !found {
		return 0, false
	}
	pid, err := strconv.Atoi(number)
	return pid, err == nil && pid > 0
}
