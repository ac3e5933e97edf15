// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// failureWindow is how far back failures are counted for the status.
	failureWindow = time.Hour

	// mostKinds bounds how many kinds of failure are kept apart.
	mostKinds = 100

	// other stands for every kind beyond that, and for names that are none.
	other = "other"
)

// Kind is what failed, and of what.
type Kind struct {
	Class string `json:"class"` // the job's
	Error string `json:"error"` // the exception's class
}

// Failing is a kind of failure, how often it came and, where that is asked for,
// when the first and the last one came, to the minute.
type Failing struct {
	Kind
	Count     int64     `json:"count"`
	FirstTime time.Time `json:"firstTime,omitzero"`
	LastTime  time.Time `json:"lastTime,omitzero"`
}

// Failures counts failed jobs by kind: for ever, and within the last hour.
type Failures struct {
	total  map[Kind]int64
	recent map[int64]map[Kind]int64 // by the minute in which they were seen
}

// Add counts failures that happened at a time. Those from before the watch began
// are in the last hour, but not among the failures of the watch.
func (f *Failures) Add(kind Kind, n int64, at time.Time, before bool) {
	if f.total == nil {
		f.total, f.recent = map[Kind]int64{}, map[int64]map[Kind]int64{}
	}
	kind = Kind{ClassName(kind.Class), ClassName(kind.Error)}
	if _, known := f.total[kind]; !known && len(f.total) >= mostKinds {
		kind = Kind{other, other}
	}
	if before {
		f.total[kind] += 0
	} else {
		f.total[kind] += n
	}
	minute := at.Unix() / 60
	if f.recent[minute] == nil {
		f.recent[minute] = map[Kind]int64{}
	}
	f.recent[minute][kind] += n
}

// Totals are the failures since the watch began.
func (f *Failures) Totals() []Failing { return sorted(f.total) }

// Recent are the failures of the last hour, the most frequent first.
func (f *Failures) Recent(now time.Time) []Failing {
	oldest := now.Add(-failureWindow).Unix() / 60
	sum := map[Kind]int64{}
	first, last := map[Kind]int64{}, map[Kind]int64{}
	for _, minute := range slices.Sorted(maps.Keys(f.recent)) {
		if minute < oldest {
			delete(f.recent, minute)
			continue
		}
		for kind, n := range f.recent[minute] {
			if _, known := first[kind]; !known {
				first[kind] = minute
			}
			sum[kind], last[kind] = sum[kind]+n, minute
		}
	}
	list := sorted(sum)
	for i := range list {
		list[i].FirstTime, list[i].LastTime = time.Unix(first[list[i].Kind]*60, 0).UTC(), time.Unix(last[list[i].Kind]*60, 0).UTC()
	}
	return list
}

func sorted(counts map[Kind]int64) []Failing {
	list := make([]Failing, 0, len(counts))
	for _, kind := range slices.SortedFunc(maps.Keys(counts), func(a, b Kind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Error, b.Error))
	}) {
		list = append(list, Failing{Kind: kind, Count: counts[kind]})
	}
	return list
}

const longestName = 200

// ClassName is the name where it is one of a PHP class, or of one's method, and
// "other" where it is anything else: a job may call itself what it likes, with a
// customer's data in it.
func ClassName(name string) string {
	if name == "" || len(name) > longestName {
		return other
	}
	start := true // of a part of the name
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			start = false
		case c >= '0' && c <= '9' && !start:
		case (c == '\\' || c == '@') && !start:
			start = true
		default:
			return other
		}
	}
	if start {
		return other
	}
	return name
}
