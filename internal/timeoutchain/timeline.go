// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"cmp"
	"fmt"
	"slices"
)

// Timeline is the chain as stretches of time that all start at 0: what a
// drawing needs, without saying how it is drawn.
type Timeline struct {
	// Bars are H, J, R, the drain D + P + J, and G, in this order.
	Bars []Bar
	// Gaps are the distances between the bars that must lie inside each
	// other, as far as both have an end.
	Gaps []Gap
	// Boundaries are what happens, by clock and then by time.
	Boundaries []Boundary
}

// Extent says how far a bar reaches.
type Extent string

// The extents.
const (
	Bounded    Extent = "Bounded"    // it has an end
	Endless    Extent = "Endless"    // there is no limit
	Undeclared Extent = "Undeclared" // it has an end that nobody declared
	Absent     Extent = "Absent"     // there is no such thing here
)

// Bar is one link from 0 to its end, in seconds.
type Bar struct {
	Link   Link
	Extent Extent
	End    int64 // 0 unless bounded
	// Latest is the end of a job that is caught in a call when its limit comes:
	// the limit waits for the call. It equals End where nothing can delay it, and
	// is not declared where C is not.
	Latest Value
	// Derived marks a grace that nobody wrote down.
	Derived bool
	// Parts are what a drain is made of, in order.
	Parts []Part
}

// Part is a stretch of a bar, in seconds.
type Part struct {
	Link     Link
	From, To int64
}

// Keeping says whether two links lie inside each other.
type Keeping string

// How a gap is kept.
const (
	Kept   Keeping = "Kept"
	Waived Keeping = "Waived" // given up on purpose: graceOutlasts: Job
	Broken Keeping = "Broken"
)

// Gap is the distance from the end of the inner bar to that of the outer
// one, in seconds; zero or less where the outer one ends first.
type Gap struct {
	Inner, Outer Link
	Seconds      int64
	Keeping      Keeping
}

// Clock says when the seconds of a boundary begin.
type Clock string

// The clocks.
const (
	JobClock  Clock = "Job"  // a worker takes the job from the queue
	StopClock Clock = "Stop" // Kubernetes begins to stop the pod
)

// Boundary is a moment, in seconds on its clock, and what happens then.
type Boundary struct {
	Clock Clock
	At    int64
	Link  Link // the link that decides the moment
	What  string
}

// Timeline lays the chain out in time. It draws any chain, also a broken one.
func (c *Chain) Timeline() Timeline {
	t := Timeline{Bars: []Bar{c.httpBar(), c.jobBar(), c.reservationBar(), c.drainBar(), c.graceBar()}}
	t.Gaps = c.gaps(t)
	t.Boundaries = append(c.jobBoundaries(), c.stopBoundaries()...)
	slices.SortStableFunc(t.Boundaries, func(a, b Boundary) int {
		return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(a.At, b.At))
	})
	return t
}

// Bar finds the bar of a link.
func (t Timeline) Bar(l Link) (Bar, bool) {
	i := slices.IndexFunc(t.Bars, func(b Bar) bool { return b.Link == l })
	if i < 0 {
		return Bar{}, false
	}
	return t.Bars[i], true
}

// Length is the end of the longest bar, in seconds.
func (t Timeline) Length() int64 {
	var longest int64
	for _, b := range t.Bars {
		longest = max(longest, b.End, b.Latest.N())
	}
	return longest
}

// drawn are the links that a timeline shows, alone or as a part.
var drawn = []Link{
	LinkHTTPConnect, LinkHTTP, LinkTotalHTTP, LinkHTTPAttempts, LinkHTTPRetryDelay,
	LinkJob, LinkRetryAfter, LinkDrain, LinkGrace, LinkBeforeStop, LinkBlockFor, LinkBlockedCall,
}

// Shows says whether a finding is about what a timeline shows.
func (t Timeline) Shows(f Finding) bool { return slices.Contains(drawn, f.Link) }

func bounded(l Link, end int64) Bar {
	return Bar{Link: l, Extent: Bounded, End: end, Latest: Of(end)}
}

func (c *Chain) httpBar() Bar {
	if !c.HTTP.Declared() {
		return Bar{Link: LinkTotalHTTP, Extent: Undeclared}
	}
	return bounded(LinkTotalHTTP, c.TotalHTTP())
}

func (c *Chain) jobBar() Bar {
	if !c.Job.Positive() {
		return Bar{Link: LinkJob, Extent: Endless}
	}
	bar := bounded(LinkJob, c.Job.N())
	bar.Latest = c.afterCall(bar.End)
	return bar
}

func (c *Chain) reservationBar() Bar {
	switch {
	case c.RetryAfter.Declared():
		return bounded(LinkRetryAfter, max(c.RetryAfter.N(), 0))
	case c.Runtime == Generic && c.Driver != SQS:
		return Bar{Link: LinkRetryAfter, Extent: Absent}
	default:
		return Bar{Link: LinkRetryAfter, Extent: Undeclared}
	}
}

func (c *Chain) drainBar() Bar {
	if !c.Job.Positive() {
		return Bar{Link: LinkDrain, Extent: Endless}
	}
	bar := bounded(LinkDrain, c.DrainTime())
	bar.Latest = c.afterCall(bar.End)
	var from int64
	for _, p := range []struct {
		link    Link
		seconds int64
	}{{LinkBeforeStop, c.BeforeStop.N()}, {LinkBlockFor, c.Pop()}, {LinkJob, c.Job.N()}, {LinkHTTP, c.Call()}} {
		if p.seconds > 0 {
			to := add(from, p.seconds)
			bar.Parts = append(bar.Parts, Part{Link: p.link, From: from, To: to})
			from = to
		}
	}
	return bar
}

func (c *Chain) graceBar() Bar {
	if !c.graceKnown() {
		return Bar{Link: LinkGrace, Extent: Undeclared}
	}
	bar := bounded(LinkGrace, c.GracePeriod())
	bar.Derived = !c.Grace.Declared()
	return bar
}

// afterCall is when a job whose limit comes at a moment has ended, caught in a
// call or not.
func (c *Chain) afterCall(limit int64) Value {
	if !c.HTTP.Declared() {
		return Value{}
	}
	return Of(add(limit, c.Call()))
}

func (c *Chain) gaps(t Timeline) []Gap {
	var gaps []Gap
	for _, pair := range [][]Link{
		{LinkTotalHTTP, LinkJob}, {LinkJob, LinkRetryAfter}, {LinkRetryAfter, LinkGrace}, {LinkDrain, LinkGrace},
	} {
		inner, _ := t.Bar(pair[0])
		outer, _ := t.Bar(pair[1])
		if inner.Extent != Bounded || outer.Extent != Bounded {
			continue
		}
		g := Gap{Inner: inner.Link, Outer: outer.Link, Seconds: add(outer.End, -inner.End), Keeping: Kept}
		switch {
		case g.Seconds > 0:
		case inner.Link == LinkRetryAfter && c.GraceOutlasts == OutlastsJob:
			g.Keeping = Waived
		default:
			g.Keeping = Broken
		}
		gaps = append(gaps, g)
	}
	return gaps
}

func (c *Chain) jobBoundaries() []Boundary {
	var moments []Boundary
	at := func(seconds int64, l Link, what string) {
		moments = append(moments, Boundary{Clock: JobClock, At: seconds, Link: l, What: what})
	}
	if attempts := c.attempts(); c.HTTP.Declared() && attempts > 1 {
		at(c.Call(), LinkHTTP, "the HTTP client gives up on the first call")
		at(c.TotalHTTP(), LinkTotalHTTP, fmt.Sprintf("the HTTP client gives up on the last of %d calls", attempts))
	} else if c.HTTP.Declared() {
		at(c.Call(), LinkHTTP, "the HTTP client gives up on a call")
	}
	if c.Job.Positive() {
		at(c.Job.N(), LinkJob, "the worker kills the job")
	}
	if c.Job.Positive() && c.HTTP.Declared() {
		at(add(c.Job.N(), c.Call()), LinkBlockedCall, "a job caught in a call when its limit came has ended, too")
	}
	if c.RetryAfter.Declared() {
		at(max(c.RetryAfter.N(), 0), LinkRetryAfter, "the queue hands the job to another worker"+c.overlap())
	}
	return moments
}

// overlap says who may still run the job when it is handed out again.
func (c *Chain) overlap() string {
	reservation := c.RetryAfter.N()
	switch {
	case !c.Job.Positive() || c.Job.N() >= reservation:
		return " while the first may still run it"
	case !c.HTTP.Declared() || add(c.Job.N(), c.Call()) >= reservation:
		return "; a first run that is caught in a call still goes on"
	default:
		return ", should the first not have finished it"
	}
}

func (c *Chain) stopBoundaries() []Boundary {
	var moments []Boundary
	at := func(seconds int64, l Link, what string) {
		moments = append(moments, Boundary{Clock: StopClock, At: seconds, Link: l, What: what})
	}
	hook := c.BeforeStop.N()
	if hook > 0 {
		at(0, LinkBeforeStop, "Kubernetes runs the beforeStop command")
		at(hook, LinkBeforeStop, "the beforeStop command is done and the worker is asked to stop")
	} else {
		at(0, LinkDrain, "Kubernetes asks the worker to stop")
	}
	if pop := c.Pop(); pop > 0 {
		at(add(hook, pop), LinkBlockFor, "a pop that was under way has returned; the job it brought is still run")
	}
	if c.Job.Positive() {
		at(c.DrainTime(), LinkDrain, "the last job has ended and the worker leaves")
	}
	if c.Job.Positive() && c.HTTP.Declared() {
		at(add(c.DrainTime(), c.Call()), LinkBlockedCall, "a worker whose last job was caught in a call leaves, too")
	}
	if grace := c.graceBar(); grace.Extent == Bounded {
		at(grace.End, LinkGrace, "Kubernetes sends SIGKILL"+c.cut(grace.End))
	}
	return moments
}

// cut says what the end of the grace can interrupt.
func (c *Chain) cut(grace int64) string {
	switch {
	case c.DrainTime() >= grace && c.Job.Positive():
		return " in the middle of a job"
	case c.Job.Positive() && add(c.DrainTime(), c.Call()) >= grace:
		return " in the middle of a call"
	default:
		return " to a worker that is still there"
	}
}
