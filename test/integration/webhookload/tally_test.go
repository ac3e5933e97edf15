// SPDX-License-Identifier: Apache-2.0

package webhookload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts answers.
type tally struct {
	lasted time.Duration // from the first write to the last

	mu     sync.Mutex
	times  map[string]map[answer][]time.Duration // by kind of write
	faults []string
	errors map[string]int // of calls that did not reach the webhook
}

func newTally() *tally {
	return &tally{times: map[string]map[answer][]time.Duration{}, errors: map[string]int{}}
}

func (r *tally) add(w write, got answer, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times[w.kind()] == nil {
		r.times[w.kind()] = map[answer][]time.Duration{}
	}
	r.times[w.kind()][got] = append(r.times[w.kind()][got], took)
	if got == notAsked {
		r.errors[cause(err)]++
	}
	if wrong(w.nature, got) {
		r.faults = append(r.faults, fmt.Sprintf("write %d, %s: %s (%v)", w.number, w.kind(), got, err))
	}
}

// cause is the end of an error: what did not work.
func cause(err error) string {
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+2:]
}

// verdicts are the writes that were admitted or refused, and all.
func (r *tally) verdicts() (verdicts, all int) {
	for _, answers := range r.times {
		for got, times := range answers {
			all += len(times)
			if got != notAsked && got != conflicting && got != other {
				verdicts += len(times)
			}
		}
	}
	return verdicts, all
}

// of is how many writes of a nature had the answer.
func (r *tally) of(n nature, got answer) (count int) {
	for _, update := range []bool{true, false} {
		count += len(r.times[write{update: update, nature: n}.kind()][got])
	}
	return count
}

func (r *tally) String() string {
	verdicts, all := r.verdicts()
	var text strings.Builder
	fmt.Fprintf(&text, "%d writes in %.0f s (%.1f/s): %d decided, %d wrong answers\n",
		all, r.lasted.Seconds(), float64(all)/r.lasted.Seconds(), verdicts, len(r.faults))
	for _, kind := range slices.Sorted(maps.Keys(r.times)) {
		for _, got := range slices.Sorted(maps.Keys(r.times[kind])) {
			times := slices.Sorted(slices.Values(r.times[kind][got]))
			at := func(share float64) time.Duration {
				return times[int(share*float64(len(times)-1))].Round(time.Millisecond)
			}
			fmt.Fprintf(&text, "  %-24s %5d %-52s median %s, 99 of 100 below %s, at most %s\n", kind, len(times), got, at(0.5), at(0.99), at(1))
		}
	}
	for _, text1 := range slices.Sorted(maps.Keys(r.errors)) {
		fmt.Fprintf(&text, "  not reached, %d times: %s\n", r.errors[text1], text1)
	}
	return text.String()
}
