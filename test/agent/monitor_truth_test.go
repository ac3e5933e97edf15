// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

// How long the first of the waiting jobs could have been taken, also where it is
// none of the ready ones.
func TestMonitorOldest(t *testing.T) {
	t.Run(onRedis, func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onRedis)
		w, key := a.watch(t), a.prefix+"queues:default"
		push := func(job string) []string { return []string{"RPUSH", key, job} }
		now := time.Now().Unix()
		for _, c := range []struct {
			what  string
			given []string
			want  int64 // less than 0 = nobody can tell
		}{
			{"due", []string{"ZADD", key + ":delayed", fmt.Sprint(now - 500), "{}"}, 500},
			{"not due", []string{"ZADD", key + ":delayed", fmt.Sprint(now + 500), "{}"}, -1},
			{"expired", []string{"ZADD", key + ":reserved", fmt.Sprint(now - 700), "{}"}, 700},
			{"held", []string{"ZADD", key + ":reserved", fmt.Sprint(now + 700), "{}"}, -1},
			{"new", push(fmt.Sprintf(`{"attempts":0,"createdAt":%d,"delay":null}`, now-900)), 900},
			{"delayed once", push(fmt.Sprintf(`{"attempts":0,"createdAt":%d,"delay":600}`, now-900)), 300},
			{"delayed or not in Horizon", push(fmt.Sprintf(`{"createdAt":%d,"id":"a","attempts":0,"delay":null,"type":"job","tags":[],"silenced":false,"pushedAt":"%d.5"}`, now-900, now-900)), 0},
			{"the same before 12.11", push(fmt.Sprintf(`{"id":"a","attempts":0,"type":"job","tags":[],"silenced":false,"pushedAt":"%d.5"}`, now-900)), 0},
			{"delayed in a Horizon that says so", push(fmt.Sprintf(`{"createdAt":%d,"id":"a","attempts":0,"delay":600,"type":"job","tags":[],"silenced":false,"pushedAt":"%d.5"}`, now-9000, now-900)), 300},
			{"tried before", push(fmt.Sprintf(`{"attempts":2,"createdAt":%d,"delay":null}`, now-9000)), 0},
			{"too long to be read", push(fmt.Sprintf(`{"attempts":0,"createdAt":%d,"data":"%s"}`, now-900, strings.Repeat("x", 100_000))), 0},
			{"no time", push(`{"createdAt":NaN}`), 0},
			{"no time in this century", push(`{"createdAt":-5}`), 0},
		} {
			a.redis(t, c.given...)
			oldest(t, c.what, w.look(t), c.want, now)
			a.redis(t, "DEL", key, key+":delayed", key+":reserved")
		}
	})
	t.Run(onMariaDB, func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onMariaDB)
		w := a.watch(t)
		a.dispatch(t, "Short", facts("n"), "--times=2")
		now := time.Now().Unix()
		a.change(t, fmt.Sprintf("UPDATE jobs SET reserved_at = %d, available_at = %d", now-790, now-5000)) // 90 of them were its own
		oldest(t, "expired", w.look(t), 700, now)
		now = time.Now().Unix()
		a.change(t, fmt.Sprintf("UPDATE jobs SET reserved_at = NULL, available_at = %d LIMIT 1", now-900))
		oldest(t, "ready", w.look(t), 900, now)
	})
}

// oldest holds an age to what it was at the time of its writing, and to what has
// gone by since; less than 0 = nobody can tell.
func oldest(t *testing.T, what string, s monitor.Status, want, written int64) {
	t.Helper()
	most := want + time.Now().Unix() - written + 1
	if got := s.OldestSeconds; (got == nil) != (want < 0) || got != nil && (*got < want || *got > most) {
		t.Errorf("%s: %s, wanted %d", what, told(got), want)
	}
}

func told(n *int64) string {
	if n == nil {
		return "nothing"
	}
	return fmt.Sprint(*n)
}

// Long jobs are told apart by their ends, ready and held.
func TestMonitorTellsLongJobsApart(t *testing.T) {
	t.Parallel()
	a := newApp(t, onRedis)
	w, key := a.watch(t), a.prefix+"queues:default"
	job := func(id string) string { return `{"uuid":"` + id + `","data":"` + strings.Repeat("x", 100_000) + `"}` }
	seen := map[string]bool{}
	for _, id := range []string{"a", "b"} {
		a.redis(t, "DEL", key, key+":reserved")
		a.redis(t, "RPUSH", key, job(id))
		a.redis(t, "ZADD", key+":reserved", "9999999999", job(id))
		record, err := w.Script.Look(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		seen[record.Queues[0].Head], seen[record.Queues[0].Held] = true, true
	}
	if len(seen) != 4 || seen[""] {
		t.Errorf("%v", seen)
	}
}

// However many kinds of jobs fail at once, the record of a look is taken, and
// all failures are in the number.
func TestMonitorManyKindsOfFailures(t *testing.T) {
	t.Parallel()
	a := newApp(t, onMariaDB)
	insert := func(from, to int) {
		a.change(t, fmt.Sprintf("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) SELECT uuid(), 'database', 'default', "+
			"concat('{\"displayName\":\"Import', repeat('a', 150), seq, '\"}'), concat('Refused', repeat('e', 150), seq, ': no'), now() FROM seq_%d_to_%d", from, to))
	}
	insert(1, 7000)
	w := a.watch(t)
	if s := w.look(t); s.Failed == nil || *s.Failed != 7000 {
		t.Errorf("of the last hour: %s\n%s", told(s.Failed), w.log.text())
	}
	insert(7001, 14000)
	if s := w.look(t); s.Failed == nil || *s.Failed != 14000 || len(s.Failing) != 5 {
		t.Errorf("since: %s\n%s", told(s.Failed), w.log.text())
	}
	if len(w.Script.Restarts) != 0 {
		t.Errorf("%v", w.Script.Restarts)
	}
}

// Of an exception that writes itself in its own way no more is told than a name
// before a colon or a place.
func TestMonitorNamesExceptions(t *testing.T) {
	t.Parallel()
	a := newApp(t, onMariaDB)
	for _, text := range []string{
		"", "PLANTED", "PLANTED was refused", "4111: PLANTED", "App\\\\Refused: PLANTED", "PDOException in /app/x.php:1", "A\nPLANTED: x", "PLANTED:x",
	} {
		a.change(t, "INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES (uuid(), 'database', 'default', '{}', '"+text+"', now())")
	}
	var got []string
	for _, f := range a.watch(t).look(t).Failing {
		got = append(got, fmt.Sprint(f.Class, ", ", f.Error, ": ", f.Count))
	}
	if want := []string{"other, other: 6", `other, App\Refused: 1`, "other, PDOException: 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, wanted %q", got, want)
	}
}
