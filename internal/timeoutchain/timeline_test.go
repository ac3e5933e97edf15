// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// held is 20 < 30 < 90 < 120.
func held() Chain {
	return Chain{
		Runtime: Laravel, Driver: Redis, Queues: 1,
		HTTP: Of(20), Job: Of(30), RetryAfter: Of(90), Grace: Of(120),
	}
}

func TestTimelineBars(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Chain)
		want   string
	}{
		{"textbook", func(*Chain) {}, "H20..20 J30..50 R90..90 D30..50 G120..120"},
		{"derived grace", func(c *Chain) { c.Grace = Value{} }, "H20..20 J30..50 R90..90 D30..50 G100..100*"},
		{"attempts and pauses", func(c *Chain) { c.HTTPAttempts, c.HTTPRetryDelay = Of(3), Of(2) }, "H64..64 J30..50 R90..90 D30..50 G120..120"},
		{"hook and pop", func(c *Chain) { c.BeforeStop, c.BlockFor, c.Queues = Of(4), Of(5), 2 }, "H20..20 J30..50 R90..90 D46..66 G120..120"},
		{"no limit on a call", func(c *Chain) { c.HTTP = Value{} }, "H? J30..? R90..90 D30..? G120..120"},
		{"no limit on the job", func(c *Chain) { c.Job = Of(0) }, "H20..20 J- R90..90 D- G120..120"},
		{"nothing to derive from", func(c *Chain) { c.Job, c.Grace = Of(0), Value{} }, "H20..20 J- R90..90 D- G?"},
		{"reservation left out", func(c *Chain) { c.RetryAfter = Value{} }, "H20..20 J30..50 R? D30..50 G120..120"},
		{"no reservation", func(c *Chain) { c.Runtime, c.RetryAfter = Generic, Value{} }, "H20..20 J30..50 R/ D30..50 G120..120"},
		{"SQS always reserves", func(c *Chain) { c.Runtime, c.Driver, c.RetryAfter = Generic, SQS, Value{} }, "H20..20 J30..50 R? D30..50 G120..120"},
		{"handed out at once", func(c *Chain) { c.RetryAfter = Of(0) }, "H20..20 J30..50 R0..0 D30..50 G120..120"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := held()
			tc.change(&c)
			if got := barsText(c.Timeline()); got != tc.want {
				t.Errorf("bars are %s, want %s", got, tc.want)
			}
		})
	}
}

func barsText(t Timeline) string {
	words := make([]string, len(t.Bars))
	for i, b := range t.Bars {
		word := []string{"H", "J", "R", "D", "G"}[i]
		switch b.Extent {
		case Endless:
			word += "-"
		case Undeclared:
			word += "?"
		case Absent:
			word += "/"
		default:
			latest := "?"
			if b.Latest.Declared() {
				latest = fmt.Sprint(b.Latest.N())
			}
			word += fmt.Sprintf("%d..%s", b.End, latest)
		}
		if b.Derived {
			word += "*"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

func TestTimelineDrainIsMadeOfItsParts(t *testing.T) {
	c := held()
	c.BeforeStop, c.BlockFor, c.Queues = Of(4), Of(5), 2
	drain, ok := c.Timeline().Bar(LinkDrain)
	want := []Part{{LinkBeforeStop, 0, 4}, {LinkBlockFor, 4, 16}, {LinkJob, 16, 46}, {LinkHTTP, 46, 66}}
	if !ok || !slices.Equal(drain.Parts, want) {
		t.Errorf("parts are %v, want %v", drain.Parts, want)
	}
	c.BeforeStop, c.BlockFor = Of(1), Value{}
	drain, _ = c.Timeline().Bar(LinkDrain)
	if want := []Part{{LinkBeforeStop, 0, 1}, {LinkJob, 1, 31}, {LinkHTTP, 31, 51}}; !slices.Equal(drain.Parts, want) {
		t.Errorf("without a pop the parts are %v, want %v", drain.Parts, want)
	}
}

func TestTimelineGaps(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Chain)
		want   string
	}{
		{"textbook", func(*Chain) {}, "10 Kept, 60 Kept, 30 Kept, 90 Kept"},
		{"equal is not inside", func(c *Chain) { c.RetryAfter = Of(30) }, "10 Kept, 0 Broken, 90 Kept, 90 Kept"},
		{"the job outlasts the reservation", func(c *Chain) { c.RetryAfter = Of(5) }, "10 Kept, -25 Broken, 115 Kept, 90 Kept"},
		{"grace below the reservation", func(c *Chain) { c.Grace = Of(80) }, "10 Kept, 60 Kept, -10 Broken, 50 Kept"},
		{"the same on purpose", func(c *Chain) { c.Grace, c.GraceOutlasts = Of(80), OutlastsJob }, "10 Kept, 60 Kept, -10 Waived, 50 Kept"},
		{"a drain is never given up", func(c *Chain) { c.Grace, c.GraceOutlasts = Of(30), OutlastsJob }, "10 Kept, 60 Kept, -60 Waived, 0 Broken"},
		{"only what has an end", func(c *Chain) { c.HTTP, c.RetryAfter = Value{}, Value{} }, "90 Kept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := held()
			tc.change(&c)
			var words []string
			for _, m := range c.Timeline().Gaps {
				words = append(words, fmt.Sprintf("%d %s", m.Seconds, m.Keeping))
			}
			if got := strings.Join(words, ", "); got != tc.want {
				t.Errorf("gaps are %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTimelineBoundaries(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Chain)
		want   []string
	}{
		{"textbook", func(*Chain) {}, []string{
			"Job 20 the HTTP client gives up on a call",
			"Job 30 the worker kills the job",
			"Job 50 a job caught in a call when its limit came has ended, too",
			"Job 90 the queue hands the job to another worker, should the first not have finished it",
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 30 the last job has ended and the worker leaves",
			"Stop 50 a worker whose last job was caught in a call leaves, too",
			"Stop 120 Kubernetes sends SIGKILL to a worker that is still there",
		}},
		{"everything that can go wrong", func(c *Chain) {
			c.HTTPAttempts, c.RetryAfter, c.Grace = Of(2), Of(25), Of(40)
			c.BeforeStop, c.BlockFor = Of(4), Of(5)
		}, []string{
			"Job 20 the HTTP client gives up on the first call",
			"Job 25 the queue hands the job to another worker while the first may still run it",
			"Job 30 the worker kills the job",
			"Job 40 the HTTP client gives up on the last of 2 calls",
			"Job 50 a job caught in a call when its limit came has ended, too",
			"Stop 0 Kubernetes runs the beforeStop command",
			"Stop 4 the beforeStop command is done and the worker is asked to stop",
			"Stop 10 a pop that was under way has returned; the job it brought is still run",
			"Stop 40 the last job has ended and the worker leaves",
			"Stop 40 Kubernetes sends SIGKILL in the middle of a job",
			"Stop 60 a worker whose last job was caught in a call leaves, too",
		}},
		{"caught in a call", func(c *Chain) { c.RetryAfter, c.Grace = Of(50), Of(50) }, []string{
			"Job 20 the HTTP client gives up on a call",
			"Job 30 the worker kills the job",
			"Job 50 a job caught in a call when its limit came has ended, too",
			"Job 50 the queue hands the job to another worker; a first run that is caught in a call still goes on",
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 30 the last job has ended and the worker leaves",
			"Stop 50 a worker whose last job was caught in a call leaves, too",
			"Stop 50 Kubernetes sends SIGKILL in the middle of a call",
		}},
		{"no limit on a call", func(c *Chain) { c.HTTP, c.HTTPAttempts, c.BeforeStop = Value{}, Of(2), Of(1) }, []string{
			"Job 30 the worker kills the job",
			"Job 90 the queue hands the job to another worker; a first run that is caught in a call still goes on",
			"Stop 0 Kubernetes runs the beforeStop command",
			"Stop 1 the beforeStop command is done and the worker is asked to stop",
			"Stop 31 the last job has ended and the worker leaves",
			"Stop 120 Kubernetes sends SIGKILL to a worker that is still there",
		}},
		{"no limit on the job", func(c *Chain) { c.Job = Of(0) }, []string{
			"Job 20 the HTTP client gives up on a call",
			"Job 90 the queue hands the job to another worker while the first may still run it",
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 120 Kubernetes sends SIGKILL to a worker that is still there",
		}},
		{"the job as long as the reservation", func(c *Chain) { c.HTTP, c.Job, c.RetryAfter, c.Grace = Of(1), Of(30), Of(30), Value{} }, []string{
			"Job 1 the HTTP client gives up on a call",
			"Job 30 the worker kills the job",
			"Job 30 the queue hands the job to another worker while the first may still run it",
			"Job 31 a job caught in a call when its limit came has ended, too",
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 30 the last job has ended and the worker leaves",
			"Stop 31 a worker whose last job was caught in a call leaves, too",
			"Stop 41 Kubernetes sends SIGKILL to a worker that is still there",
		}},
		{"handed out at once", func(c *Chain) { c.RetryAfter = Of(0) }, []string{
			"Job 0 the queue hands the job to another worker while the first may still run it",
			"Job 20 the HTTP client gives up on a call",
			"Job 30 the worker kills the job",
			"Job 50 a job caught in a call when its limit came has ended, too",
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 30 the last job has ended and the worker leaves",
			"Stop 50 a worker whose last job was caught in a call leaves, too",
			"Stop 120 Kubernetes sends SIGKILL to a worker that is still there",
		}},
		{"no limit on the job, a grace shorter than a call", func(c *Chain) { c.Job, c.RetryAfter, c.Grace = Of(0), Value{}, Of(10) }, []string{
			"Job 20 the HTTP client gives up on a call",
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 10 Kubernetes sends SIGKILL to a worker that is still there",
		}},
		{"no limits", func(c *Chain) { c.Runtime, c.HTTP, c.Job, c.RetryAfter = Generic, Value{}, Of(0), Value{} }, []string{
			"Stop 0 Kubernetes asks the worker to stop",
			"Stop 120 Kubernetes sends SIGKILL to a worker that is still there",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := held()
			tc.change(&c)
			var got []string
			for _, b := range c.Timeline().Boundaries {
				got = append(got, fmt.Sprintf("%s %d %s", b.Clock, b.At, b.What))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("boundaries are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// A chain that breaks a rule between two bars shows it as a broken gap, and
// the reverse: the drawing knows no rule of its own.
func TestTimelineAgreesWithTheRules(t *testing.T) {
	rules := map[[2]Link]string{
		{LinkTotalHTTP, LinkJob}:    "http-not-below-job",
		{LinkJob, LinkRetryAfter}:   "job-not-below-retry-after",
		{LinkRetryAfter, LinkGrace}: "retry-after-not-below-grace",
		{LinkDrain, LinkGrace}:      "drain-exceeds-grace",
	}
	numbers := []int64{1, 2, 29, 30, 31}
	for _, http := range numbers {
		for _, reservation := range numbers {
			for _, grace := range numbers {
				for _, outlasts := range []Outlasts{OutlastsReservation, OutlastsJob} {
					c := Chain{
						Runtime: Laravel, Driver: Redis, HTTP: Of(http), Job: Of(30),
						RetryAfter: Of(reservation), Grace: Of(grace), GraceOutlasts: outlasts,
					}
					findings := Check(c)
					for _, m := range c.Timeline().Gaps {
						found := slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == rules[[2]Link{m.Inner, m.Outer}] })
						if found != (m.Keeping != Kept) {
							t.Fatalf("%+v: gap %+v, but rule %s fired: %v", c, m, rules[[2]Link{m.Inner, m.Outer}], found)
						}
					}
				}
			}
		}
	}
}

func TestTimelineShowsFindingsAboutTime(t *testing.T) {
	c := held()
	c.RetryAfter, c.Pod.WorkerMissing = Of(10), true
	shown := map[string]bool{}
	for _, f := range Check(c) {
		shown[f.Rule] = c.Timeline().Shows(f)
	}
	if !shown["job-not-below-retry-after"] {
		t.Error("job-not-below-retry-after is not shown")
	}
	if shown["template-worker-missing"] {
		t.Error("template-worker-missing is about no time and must not be shown")
	}
}

func TestTimelineOfExtremeNumbers(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1, 0, 1, MaxSeconds, math.MaxInt64} {
		v := Of(n)
		c := Chain{HTTP: v, HTTPAttempts: v, HTTPRetryDelay: v, Job: v, RetryAfter: v, Grace: v, BeforeStop: v, BlockFor: v, Queues: n}
		timeline := c.Timeline()
		if len(timeline.Bars) != 5 || timeline.Length() < 0 {
			t.Errorf("%d: %d bars, length %d", n, len(timeline.Bars), timeline.Length())
		}
	}
}
