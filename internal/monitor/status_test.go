// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

func oldest(seconds float64) *float64 { return &seconds }

func TestStatusSumsUp(t *testing.T) {
	look := monitor.Snapshot{At: begin.Add(1500 * time.Millisecond), Queues: []monitor.Queue{
		{Name: "a", Ready: n(3), Delayed: n(4), Due: n(1), Reserved: n(2), Expired: n(1), Oldest: oldest(2.9)},
		{Name: "b", Ready: n(1), Reserved: n(0), Oldest: oldest(12.2)}, // knows less
	}}
	j := monitor.Judgement{}.Next(look, three, limits)
	text, err := json.Marshal(monitor.StatusOf(j, look, []monitor.Failing{{Kind: monitor.Kind{Class: `App\A`, Error: "E"}, Count: 2}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"state":"Busy","since":"2026-03-02T10:00:01Z","observedTime":"2026-03-02T10:00:01Z","depth":8,"ready":4,"reserved":2,"oldestSeconds":12,` +
		`"failed":2,"failing":[{"class":"App\\A","error":"E","count":2}],"message":"Jobs are being worked on."}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// A backend that does not answer has no numbers, and zero is a number.
func TestUnknownHasNoNumbers(t *testing.T) {
	look := monitor.Snapshot{At: begin, Unanswered: "RedisException", Queues: []monitor.Queue{{Name: "a", Ready: n(0)}}}
	s := monitor.StatusOf(monitor.Judgement{}.Next(look, three, limits), look, nil)
	want := monitor.Status{State: monitor.Unknown, Since: begin, ObservedTime: begin, Message: "RedisException."}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v", s)
	}
}

func TestWorth(t *testing.T) {
	base := func() monitor.Status {
		return monitor.Status{
			State: monitor.Busy, Since: begin, ObservedTime: begin.Add(time.Minute), Depth: n(100), OldestSeconds: n(40), Failed: n(8),
			Failing: []monitor.Failing{{Kind: monitor.Kind{Class: "A", Error: "E"}, Count: 8}}, Message: "m",
		}
	}
	for name, c := range map[string]struct {
		change func(*monitor.Status)
		want   bool
	}{
		"nothing":           {func(*monitor.Status) {}, false},
		"state":             {func(s *monitor.Status) { s.State = monitor.Stuck }, true},
		"since":             {func(s *monitor.Status) { s.Since = begin.Add(time.Second) }, true},
		"message":           {func(s *monitor.Status) { s.Message = "other" }, true},
		"299 seconds":       {func(s *monitor.Status) { s.ObservedTime = s.ObservedTime.Add(299 * time.Second) }, false},
		"300 seconds":       {func(s *monitor.Status) { s.ObservedTime = s.ObservedTime.Add(300 * time.Second) }, true},
		"clock set back":    {func(s *monitor.Status) { s.ObservedTime = begin }, true},
		"depth 100 to 133":  {func(s *monitor.Status) { s.Depth = n(133) }, false},
		"depth 100 to 134":  {func(s *monitor.Status) { s.Depth = n(134) }, true},
		"depth 100 to 76":   {func(s *monitor.Status) { s.Depth = n(76) }, false},
		"depth 100 to 75":   {func(s *monitor.Status) { s.Depth = n(75) }, true},
		"depth to none":     {func(s *monitor.Status) { s.Depth = n(0) }, true},
		"depth not known":   {func(s *monitor.Status) { s.Depth = nil }, true},
		"ready is known":    {func(s *monitor.Status) { s.Ready = n(0) }, true},
		"oldest grows":      {func(s *monitor.Status) { s.OldestSeconds = n(54) }, true},
		"failed a bit more": {func(s *monitor.Status) { s.Failed = n(9); s.Failing[0].Count = 9 }, false},
		"another class":     {func(s *monitor.Status) { s.Failing[0].Class = "B" }, true},
		"another minute":    {func(s *monitor.Status) { s.Failing[0].LastTime = begin.Add(time.Minute) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := base()
			c.change(&now)
			if got := now.Worth(base()); got != c.want {
				t.Errorf("worth a write: %v", got)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	for state, want := range map[monitor.State]string{
		monitor.Empty: "True", monitor.Busy: "True", monitor.Stuck: "False", monitor.Stopped: "False", monitor.Paused: "False", monitor.Unknown: "Unknown",
	} {
		s := monitor.Status{State: state, ObservedTime: begin.Add(time.Hour), Message: "why"}
		c := monitor.ConditionOf(s, monitor.Condition{Status: "True", LastTransitionTime: begin}, 4)
		if c.Status != want || c.Reason != string(state) || c.Type != "Consuming" || c.ObservedGeneration != 4 || c.Message != "why" {
			t.Errorf("%s: %+v", state, c)
		}
		if kept := c.LastTransitionTime.Equal(begin); kept != (want == "True") {
			t.Errorf("%s: last transition %s", state, c.LastTransitionTime)
		}
	}
}

func TestFailures(t *testing.T) {
	var f monitor.Failures
	if got := f.Recent(begin); len(got) != 0 {
		t.Errorf("%v", got)
	}
	f.Add(monitor.Kind{Class: `App\Old`, Error: "E"}, 5, begin, true)
	f.Add(monitor.Kind{Class: `App\New`, Error: "E"}, 7, begin.Add(10*time.Minute), false)
	f.Add(monitor.Kind{Class: `App\New`, Error: "F"}, 1, begin.Add(10*time.Minute), false)
	f.Add(monitor.Kind{Class: "card 4111", Error: ""}, 2, begin.Add(10*time.Minute), false)
	f.Add(monitor.Kind{Class: `App\New`, Error: "E"}, 1, begin.Add(30*time.Minute+59*time.Second), false)
	named := func(list []monitor.Failing) string {
		text, _ := json.Marshal(list)
		return strings.NewReplacer(`,"firstTime":`, ",", `,"lastTime":`, " to ", `"`, "", "2026-03-02T", "", ":00Z", "").Replace(string(text))
	}
	for _, c := range []struct{ what, got, want string }{
		{"59 minutes on", named(f.Recent(begin.Add(time.Hour))), `[{class:App\\New,error:E,count:8,10:10 to 10:30},{class:App\\Old,error:E,count:5,10:00 to 10:00},{class:other,error:other,count:2,10:10 to 10:10},{class:App\\New,error:F,count:1,10:10 to 10:10}]`},
		{"in all", named(f.Totals()), `[{class:App\\New,error:E,count:8},{class:other,error:other,count:2},{class:App\\New,error:F,count:1},{class:App\\Old,error:E,count:0}]`},
		{"an hour and a minute on", named(f.Recent(begin.Add(61 * time.Minute))), `[{class:App\\New,error:E,count:8,10:10 to 10:30},{class:other,error:other,count:2,10:10 to 10:10},{class:App\\New,error:F,count:1,10:10 to 10:10}]`},
		{"the first of them forgotten", named(f.Recent(begin.Add(71 * time.Minute))), `[{class:App\\New,error:E,count:1,10:30 to 10:30}]`},
		{"two hours on", named(f.Recent(begin.Add(2 * time.Hour))), `[]`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	for i := range 1000 {
		f.Add(monitor.Kind{Class: "C" + strings.Repeat("x", i%150) + string(rune('a'+i/150)), Error: "E"}, 1, begin, false)
	}
	sum := int64(0)
	for _, kind := range f.Totals() {
		sum += kind.Count
	}
	if got := len(f.Totals()); got > 101 || sum != 1011 {
		t.Errorf("%d kinds, %d failures", got, sum)
	}
}

func TestClassName(t *testing.T) {
	for _, name := range []string{"PDOException", `App\Jobs\Charge`, `App\Jobs\Mail_2@handle`, "A", strings.Repeat("x", 200)} {
		if got := monitor.ClassName(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
	for _, name := range []string{"", "Charge order 17", "4111111111111111", `App\\Jobs`, `\App`, `App\`, `App\4`, "user@example.com", "a-b", "class@anonymous\x00/app", strings.Repeat("x", 201), "Ünder"} {
		if got := monitor.ClassName(name); got != "other" {
			t.Errorf("%q became %q", name, got)
		}
	}
}
