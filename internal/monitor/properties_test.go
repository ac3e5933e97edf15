// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

// world is a queue and its workers, moved at random.
type world struct {
	*rand.Rand
	at      time.Time
	queues  []monitor.Queue
	workers monitor.Workers
}

func (w *world) turn() (monitor.Snapshot, monitor.Workers) {
	w.at = w.at.Add(time.Duration(1+w.IntN(60)) * time.Second)
	for i := range w.queues {
		q := &w.queues[i]
		if w.IntN(3) == 0 {
			q.Ready = n(int64(w.IntN(3)))
			q.Head = ""
			if *q.Ready > 0 {
				q.Head = fmt.Sprint(w.IntN(3))
			}
		}
		if w.IntN(4) == 0 {
			q.Expired = n(int64(w.IntN(2)))
		}
		if w.IntN(4) == 0 {
			q.Reserved, q.Held = n(int64(w.IntN(2))), fmt.Sprint(w.IntN(3))
		}
		if w.IntN(20) == 0 {
			q.Paused = !q.Paused
		}
	}
	if w.IntN(6) == 0 {
		w.workers = monitor.Workers{Known: w.IntN(4) > 0, Wanted: int64(w.IntN(3)), Alive: int64(w.IntN(3))}
	}
	look := monitor.Snapshot{At: w.at, Queues: slices.Clone(w.queues), Maintenance: w.IntN(30) == 0}
	if w.IntN(15) == 0 {
		look.Unanswered = "away"
	}
	return look, w.workers
}

// What holds whatever happens.
func TestWhateverHappens(t *testing.T) {
	seen := map[monitor.State]int{}
	for seed := range uint64(400) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 9)), at: begin, queues: []monitor.Queue{{Name: "a", Ready: n(0)}, {Name: "b", Ready: n(0)}}}
		limits := monitor.Thresholds{StuckAfter: time.Duration(30+w.IntN(200)) * time.Second}
		var j, mirror monitor.Judgement
		var looks []monitor.Snapshot
		var known monitor.Workers // the last count
		idle := 0                 // looks in a row that show nothing to do
		alive := 0                // looks in a row with workers ready
		for range 200 {
			look, workers := w.turn()
			before := j
			j = j.Next(look, workers, limits)
			looks = append(looks, look)
			seen[j.State]++

			turned := look
			turned.Queues = slices.Clone(look.Queues)
			slices.Reverse(turned.Queues)
			if mirror = mirror.Next(turned, workers, limits); mirror.State != j.State || !mirror.Since.Equal(j.Since) {
				t.Fatalf("seed %d: the order of the queues matters: %s, %s", seed, j.State, mirror.State)
			}
			if workers.Known {
				known = workers
			}
			waits := waiting(look)
			idle, alive = run(idle, !waits && look.Unanswered == ""), run(alive, known.Known && known.Alive > 0)
			paused := look.Maintenance || known.Known && known.Wanted == 0 || look.Queues[0].Paused && look.Queues[1].Paused
			for what, wrong := range map[string]bool{
				"no state":                           !slices.Contains(monitor.States(), j.State),
				"unknown, and answered":              (j.State == monitor.Unknown) != (look.Unanswered != ""),
				"paused, and nobody paused it":       j.State == monitor.Paused && !paused,
				"a pause is not seen":                paused && look.Unanswered == "" && j.State != monitor.Paused,
				"since before the state before":      j.Since.Before(before.Since),
				"since in the future":                j.Since.After(look.At),
				"since moves while the state stays":  j.State == before.State && !j.Since.Equal(before.Since),
				"stopped, with workers at two looks": j.State == monitor.Stopped && alive >= 2,
				"an alarm, with nothing to do":       idle >= 2 && (j.State == monitor.Stuck || j.State == monitor.Stopped),
				"stuck before its time":              j.State == monitor.Stuck && before.State != monitor.Stuck && look.At.Sub(j.Since) < limits.StuckAfter,
				"stuck although something moved":     j.State == monitor.Stuck && before.State != monitor.Stuck && movedSince(looks, j.Since),
				"stopped without a second such look": j.State == monitor.Stopped && before.State != monitor.Stopped && !j.Since.Before(look.At),
				"no message":                         j.Message == "",
			} {
				if wrong {
					t.Fatalf("seed %d, look %d: %s: %s since %s, before %s since %s", seed, len(looks), what,
						j.State, j.Since.Sub(begin), before.State, before.Since.Sub(begin))
				}
			}
		}
	}
	for _, state := range monitor.States() {
		if seen[state] < 100 {
			t.Errorf("%s was reached %d times only: %v", state, seen[state], seen)
		}
	}
}

func run(length int, goesOn bool) int {
	if goesOn {
		return length + 1
	}
	return 0
}

func waiting(s monitor.Snapshot) bool {
	return slices.ContainsFunc(s.Queues, func(q monitor.Queue) bool {
		return !q.Paused && (*q.Ready > 0 || q.Expired != nil && *q.Expired > 0)
	})
}

// movedSince compares the looks from a time on, without the package's help.
func movedSince(looks []monitor.Snapshot, since time.Time) bool {
	for i := 1; i < len(looks); i++ {
		if looks[i-1].At.Before(since) {
			continue
		}
		for k, q := range looks[i].Queues {
			b := looks[i-1].Queues[k]
			if b.Head != "" && b.Head != q.Head || b.Held != q.Held || q.Depth() < b.Depth() {
				return true
			}
		}
	}
	return false
}

// A worker that dies or freezes at any moment, and comes back at any moment, is
// told within the thresholds and two intervals.
func TestTimeToDetection(t *testing.T) {
	const interval = 30
	for freeze := 1; freeze < 300; freeze += 7 {
		for name, c := range map[string]struct {
			workers monitor.Workers
			want    monitor.State
			within  time.Duration
		}{
			"frozen": {three, monitor.Stuck, limits.StuckAfter},
			"gone":   {none, monitor.Stopped, 0},
		} {
			var j monitor.Judgement
			const thaw = 1200
			detected, freed := -1, -1
			for second := 0; second < 2400; second += interval {
				jobs := second // one job a second is done, and the queue is never empty
				workers := three
				if second >= freeze && second < freeze+thaw {
					jobs, workers = freeze, c.workers
				} else if second >= freeze+thaw {
					jobs = second - thaw
				}
				mark := fmt.Sprint(jobs)
				j = j.Next(monitor.Snapshot{At: begin.Add(time.Duration(second) * time.Second), Queues: []monitor.Queue{queue(50, 1, mark, mark)}}, workers, limits)
				if detected < 0 && j.State == c.want {
					detected = second - freeze
				}
				if detected >= 0 && freed < 0 && second >= freeze+thaw && j.State == monitor.Busy {
					freed = second - freeze - thaw
				}
			}
			most := int(c.within.Seconds()) + 2*interval
			if detected < int(c.within.Seconds()) || detected > most || freed < 0 || freed > 2*interval {
				t.Errorf("%s at %d s: told after %d s (at most %d), freed after %d s", name, freeze, detected, most, freed)
			}
		}
	}
}
