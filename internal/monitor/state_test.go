// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

const every = 30 * time.Second

var (
	limits = monitor.Thresholds{StuckAfter: 270 * time.Second}
	begin  = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	three  = monitor.Workers{Known: true, Wanted: 3, Alive: 3}
	none   = monitor.Workers{Known: true, Wanted: 3}
	zero   = monitor.Workers{Known: true}
)

func n(of int64) *int64 { return &of }

// queue has so many ready and held jobs, and these marks.
func queue(ready, held int64, head, set string) monitor.Queue {
	return monitor.Queue{Name: "default", Ready: n(ready), Delayed: n(0), Due: n(0), Reserved: n(held), Expired: n(0), Head: head, Held: set}
}

// step is one look, or several of one kind, and what is believed after it.
type step struct {
	times   int // 0 = once
	queue   monitor.Queue
	workers monitor.Workers
	change  func(*monitor.Snapshot)
	want    monitor.State
	since   string // from the first look; empty = not asked
}

func away(s *monitor.Snapshot) { s.Unanswered, s.Queues = "RedisException", nil }

func pausedQueue(s *monitor.Snapshot) { s.Queues[0].Paused = true }

// walk plays the looks and checks every one.
func walk(t *testing.T, steps []step) monitor.Judgement {
	t.Helper()
	var j monitor.Judgement
	at := begin
	for i, s := range steps {
		for range max(s.times, 1) {
			look := monitor.Snapshot{At: at, Queues: []monitor.Queue{s.queue}}
			if s.change != nil {
				s.change(&look)
			}
			j = j.Next(look, s.workers, limits)
			if j.State != s.want {
				t.Fatalf("step %d at %s: %s (%s), want %s", i, at.Sub(begin), j.State, j.Message, s.want)
			}
			if j.Message == "" {
				t.Errorf("step %d: %s without a message", i, j.State)
			}
			at = at.Add(every)
		}
		if s.since != "" {
			if want, err := time.ParseDuration(s.since); err != nil || j.Since.Sub(begin) != want {
				t.Fatalf("step %d: %s since %s, want %s", i, j.State, j.Since.Sub(begin), s.since)
			}
		}
	}
	return j
}

func TestStates(t *testing.T) {
	idle := queue(0, 0, "", "")
	stuck := queue(5, 1, "a", "x")
	moved := queue(5, 1, "b", "y")
	again := queue(5, 1, "b", "z")
	delayed := idle
	delayed.Delayed = n(4)
	due := idle
	due.Due = n(2)
	newcomer := queue(1, 0, "a", "")
	newcomer.Due = n(2)
	expired := idle
	expired.Expired, expired.Held = n(1), "x"
	blind := queue(5, 0, "", "") // a driver that tells numbers only
	grown, shrunk := queue(6, 0, "", ""), queue(4, 0, "", "")
	unknown := monitor.Workers{}

	for name, steps := range map[string][]step{
		"empty":                    {{queue: idle, workers: three, want: monitor.Empty, times: 20}},
		"delayed jobs do not wait": {{queue: delayed, workers: three, want: monitor.Empty, times: 20}},
		"a held job is work":       {{queue: queue(0, 1, "", "x"), workers: three, want: monitor.Busy, times: 20}},
		"work comes":               {{queue: idle, workers: three, want: monitor.Empty}, {queue: stuck, workers: three, want: monitor.Empty}, {queue: moved, workers: three, want: monitor.Busy, since: "30s"}},
		"one look of work":         {{queue: idle, workers: three, want: monitor.Empty}, {queue: stuck, workers: three, want: monitor.Empty}, {queue: idle, workers: three, want: monitor.Empty, times: 9}},
		"work ends":                {{queue: stuck, workers: three, want: monitor.Busy}, {queue: idle, workers: three, want: monitor.Busy}, {queue: idle, workers: three, want: monitor.Empty, since: "30s"}},

		// Nine intervals are 270 s: the tenth look completes them.
		"stuck":                     {{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, want: monitor.Stuck, times: 30}},
		"moved just once":           {{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: moved, workers: three, want: monitor.Busy, times: 9, since: "0s"}, {queue: moved, workers: three, want: monitor.Stuck, since: "270s"}},
		"due jobs wait":             {{queue: due, workers: three, want: monitor.Busy, times: 9}, {queue: due, workers: three, want: monitor.Stuck}},
		"held for too long":         {{queue: expired, workers: three, want: monitor.Busy, times: 9}, {queue: expired, workers: three, want: monitor.Stuck}},
		"numbers only":              {{queue: blind, workers: three, want: monitor.Busy, times: 9}, {queue: blind, workers: three, want: monitor.Stuck}},
		"growth is no movement":     {{queue: blind, workers: three, want: monitor.Busy}, {queue: grown, workers: three, want: monitor.Busy, times: 8}, {queue: grown, workers: three, want: monitor.Stuck}},
		"fewer jobs are":            {{queue: blind, workers: three, want: monitor.Busy}, {queue: shrunk, workers: three, want: monitor.Busy, times: 9}, {queue: shrunk, workers: three, want: monitor.Stuck}},
		"nobody counts the workers": {{queue: stuck, workers: unknown, want: monitor.Busy, times: 9}, {queue: stuck, workers: unknown, want: monitor.Stuck}},

		"stuck from the first look of work": {{queue: idle, workers: three, want: monitor.Empty}, {queue: stuck, workers: three, want: monitor.Empty}, {queue: stuck, workers: three, want: monitor.Busy, times: 8}, {queue: stuck, workers: three, want: monitor.Stuck, since: "30s"}},
		"a first ready job is no movement":  {{queue: due, workers: three, want: monitor.Busy, times: 4}, {queue: newcomer, workers: three, want: monitor.Busy, times: 5}, {queue: newcomer, workers: three, want: monitor.Stuck, since: "0s"}},

		"freed by the second movement": {
			{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, want: monitor.Stuck},
			{queue: moved, workers: three, want: monitor.Stuck, times: 2}, {queue: again, workers: three, want: monitor.Busy, since: "360s"},
		},
		"one movement frees nobody": {
			{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, want: monitor.Stuck},
			{queue: moved, workers: three, want: monitor.Stuck, times: 30}, {queue: again, workers: three, want: monitor.Stuck, times: 30},
		},
		"freed by the last job": {
			{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, want: monitor.Stuck},
			{queue: queue(0, 1, "", "q"), workers: three, want: monitor.Stuck}, {queue: queue(0, 1, "", "q"), workers: three, want: monitor.Busy},
		},
		"freed by a clearing": {
			{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, want: monitor.Stuck},
			{queue: idle, workers: three, want: monitor.Stuck}, {queue: idle, workers: three, want: monitor.Empty},
		},

		"stopped":              {{queue: idle, workers: three, want: monitor.Empty}, {queue: stuck, workers: none, want: monitor.Empty}, {queue: stuck, workers: none, want: monitor.Stopped, since: "30s", times: 30}},
		"a blink of workers":   {{queue: stuck, workers: three, want: monitor.Busy}, {queue: stuck, workers: none, want: monitor.Busy}, {queue: stuck, workers: three, want: monitor.Busy, times: 9}},
		"workers come back":    {{queue: stuck, workers: none, want: monitor.Busy}, {queue: stuck, workers: none, want: monitor.Stopped, times: 20}, {queue: stuck, workers: three, want: monitor.Stopped}, {queue: moved, workers: three, want: monitor.Busy, since: "630s"}},
		"back, and stuck":      {{queue: stuck, workers: none, want: monitor.Busy}, {queue: stuck, workers: none, want: monitor.Stopped, since: "0s"}, {queue: stuck, workers: three, want: monitor.Stopped}, {queue: stuck, workers: three, want: monitor.Busy, times: 8}, {queue: stuck, workers: three, want: monitor.Stuck, since: "60s"}},
		"no work, no workers":  {{queue: idle, workers: none, want: monitor.Empty, times: 5}},
		"stopped is not known": {{queue: idle, workers: three, want: monitor.Empty}, {queue: stuck, workers: none, want: monitor.Empty}, {queue: stuck, workers: unknown, want: monitor.Stopped, times: 5}},

		"paused":          {{queue: stuck, workers: three, change: pausedQueue, want: monitor.Paused, times: 30}, {queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, want: monitor.Stuck}},
		"maintenance":     {{queue: stuck, workers: three, want: monitor.Busy}, {queue: stuck, workers: three, change: func(s *monitor.Snapshot) { s.Maintenance = true }, want: monitor.Paused, since: "30s"}},
		"scaled to zero":  {{queue: stuck, workers: three, want: monitor.Busy}, {queue: stuck, workers: zero, want: monitor.Paused, since: "30s", times: 30}},
		"scaled up again": {{queue: stuck, workers: zero, want: monitor.Paused}, {queue: stuck, workers: none, want: monitor.Busy, since: "30s"}, {queue: stuck, workers: none, want: monitor.Stopped, since: "30s"}},
		"horizon paused":  {{queue: stuck, workers: three, change: func(s *monitor.Snapshot) { s.Horizon = monitor.Horizon{Masters: 2, Paused: 2} }, want: monitor.Paused}},
		"one of two":      {{queue: stuck, workers: three, change: func(s *monitor.Snapshot) { s.Horizon = monitor.Horizon{Masters: 2, Paused: 1} }, want: monitor.Busy}},
		"work on a paused queue does not wait": {{queue: stuck, workers: three, change: func(s *monitor.Snapshot) {
			s.Queues[0].Paused, s.Queues[0].Reserved, s.Queues[0].Held = true, n(0), ""
			s.Queues = append(s.Queues, monitor.Queue{Name: "low", Ready: n(0)})
		}, want: monitor.Empty, times: 30}},
		"another queue moves": {{queue: stuck, workers: three, change: func(s *monitor.Snapshot) {
			s.Queues = append(s.Queues, monitor.Queue{Name: "high", Ready: n(9), Head: s.At.String()})
		}, want: monitor.Busy, times: 30}},

		"server away": {
			{queue: idle, workers: three, want: monitor.Empty, times: 3}, {queue: idle, workers: three, change: away, want: monitor.Unknown, since: "90s", times: 30},
			{queue: stuck, workers: three, want: monitor.Busy, since: "990s", times: 9}, {queue: stuck, workers: three, want: monitor.Stuck, since: "990s"},
		},
		"away and empty":            {{queue: idle, workers: three, change: away, want: monitor.Unknown}, {queue: idle, workers: three, want: monitor.Empty, since: "30s"}},
		"away while scaled to zero": {{queue: idle, workers: zero, change: away, want: monitor.Unknown}},
		"away does not count":       {{queue: stuck, workers: three, want: monitor.Busy, times: 9}, {queue: stuck, workers: three, change: away, want: monitor.Unknown}, {queue: stuck, workers: three, want: monitor.Busy, times: 9}},
	} {
		t.Run(name, func(t *testing.T) { walk(t, steps) })
	}
}

// A watcher that starts anew goes on where the last one was.
func TestResume(t *testing.T) {
	long := begin.Add(-time.Hour)
	look := func(at time.Duration, q monitor.Queue) monitor.Snapshot {
		return monitor.Snapshot{At: begin.Add(at), Queues: []monitor.Queue{q}}
	}
	j := monitor.Resume(monitor.Empty, long).Next(look(0, queue(0, 0, "", "")), three, limits)
	if j.State != monitor.Empty || !j.Since.Equal(long) {
		t.Errorf("%s since %s", j.State, j.Since)
	}
	j = monitor.Resume(monitor.Stuck, long)
	for at := time.Duration(0); at < 20*every; at += every {
		if j = j.Next(look(at, queue(5, 1, "a", "x")), three, limits); j.State != monitor.Stuck || !j.Since.Equal(long) {
			t.Fatalf("after %s %s since %s", at, j.State, j.Since)
		}
	}
}
