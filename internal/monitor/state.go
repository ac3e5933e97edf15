// SPDX-License-Identifier: Apache-2.0

package monitor

import "time"

// State is what a queue and its workers are doing.
type State string

// The states; see the package's table.
const (
	Empty   State = "Empty"
	Busy    State = "Busy"
	Stuck   State = "Stuck"
	Stopped State = "Stopped"
	Paused  State = "Paused"
	Unknown State = "Unknown"
)

// States are all of them.
func States() []State { return []State{Empty, Busy, Stuck, Stopped, Paused, Unknown} }

// Workers is how many there are. Where nobody knows, they are taken to be alive.
type Workers struct {
	Known  bool
	Wanted int64 // replicas asked for
	Alive  int64 // replicas that are ready
}

func (w Workers) alive() bool { return !w.Known || w.Alive > 0 }

// Thresholds are the limits that the state is judged by.
type Thresholds struct {
	StuckAfter time.Duration // how long work may wait while nothing moves
}

// freeing is how many movements end Stuck.
const freeing = 2

// Judgement is what is held to be true after a look, with what the next one has
// to know. The zero Judgement knows nothing.
type Judgement struct {
	State   State
	Since   time.Time
	Message string // changes with the cause only, never with a number

	last    Snapshot // the last that was answered and not paused
	workers Workers
	still   time.Time // the first look of those between which nothing moved while it should have
	moves   int       // movements since it is Stuck

	rival      State // what the last look showed and is not believed yet
	rivalSince time.Time
	dissent    int // looks in a row that showed something else than is believed
}

// Resume is the judgement of an earlier watcher.
func Resume(state State, since time.Time) Judgement { return Judgement{State: state, Since: since} }

// sight is what one look shows by itself.
type sight struct {
	state   State
	message string
	waits   bool // work waits
}

// Next judges one more look.
func (j Judgement) Next(now Snapshot, workers Workers, limits Thresholds) Judgement {
	if !workers.Known {
		workers = j.workers
	}
	next := j
	seen := next.look(now, workers, limits)
	next.workers = workers
	next.settle(seen, now.At)
	switch {
	case next.State == seen.state:
		next.Message = seen.message
	case next.State != j.State:
		next.Message = working
	}
	return next
}

const working = "jobs are being worked on"

// look remembers the snapshot and says what it shows.
func (j *Judgement) look(now Snapshot, workers Workers, limits Thresholds) sight {
	pause := now.pause()
	if pause == "" && workers.Known && workers.Wanted == 0 {
		pause = "scaled to 0 replicas"
	}
	if now.Unanswered != "" || pause != "" {
		j.last = Snapshot{} // time in which nobody could work does not count
	}
	switch {
	case now.Unanswered != "":
		return sight{state: Unknown, message: now.Unanswered}
	case pause != "":
		return sight{state: Paused, message: pause}
	}
	waits := now.waiting() > 0
	j.time(now, waits && workers.alive() && j.workers.alive())
	switch {
	case !waits && now.held() == 0:
		return sight{state: Empty, message: "no job waits"}
	case !waits:
		return sight{state: Busy, message: working}
	case !workers.alive():
		return sight{Stopped, "jobs wait, and no worker is ready", waits}
	case !j.still.IsZero() && now.At.Sub(j.still) >= limits.StuckAfter:
		j.moves = 0
		return sight{Stuck, "jobs wait, workers are ready, and nothing has moved since " + j.still.UTC().Format(time.RFC3339), waits}
	default:
		return sight{Busy, working, waits}
	}
}

// time keeps how long nothing has moved while it should have.
func (j *Judgement) time(now Snapshot, should bool) {
	before := j.last
	j.last = now
	moved := now.moved(before)
	switch {
	case moved || !should || before.waiting() == 0:
		j.still = time.Time{}
	case j.still.IsZero():
		j.still = before.At
	}
	if moved {
		j.moves++
	}
}

// settle turns what a look shows into what is believed.
func (j *Judgement) settle(seen sight, at time.Time) {
	first := j.rival != seen.state
	if first {
		j.rival, j.rivalSince = seen.state, at
	}
	j.dissent++
	blank := j.State == "" || j.State == Unknown || j.State == Paused
	switch {
	case seen.state == j.State:
		j.dissent = 0
	case seen.state == Stuck:
		j.become(Stuck, j.still)
	case seen.state == Unknown || seen.state == Paused:
		j.become(seen.state, at)
	case seen.state == Stopped && blank: // they may be just starting
		j.become(Busy, at)
		j.dissent = 1
	case blank:
		j.become(seen.state, at)
	case seen.state == Stopped && first:
	case j.State == Stuck && seen.state == Busy && seen.waits:
		j.dissent = 0
		if j.moves >= freeing {
			j.become(Busy, at)
		}
	case j.dissent >= 2:
		j.become(seen.state, j.rivalSince)
	}
}

func (j *Judgement) become(state State, since time.Time) {
	j.State, j.Since = state, since
	j.dissent, j.moves = 0, 0
}
