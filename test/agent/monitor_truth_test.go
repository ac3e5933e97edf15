// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// How long the first of the waiting jobs could have been taken, also where it is
// none of the ready ones.
func TestMonitorOldest(t *testing.T) {
	now := time.Now().Unix()
	t.Run(onRedis, func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onRedis)
		w, key := a.watch(t), a.prefix+"queues:default"
		push := func(job string) []string { return []string{"RPUSH", key, job} }
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
			{"delayed in Horizon", push(fmt.Sprintf(`{"attempts":0,"pushedAt":"%d.5","createdAt":%d,"delay":600}`, now-900, now-900)), 300},
			{"tried before", push(fmt.Sprintf(`{"attempts":2,"createdAt":%d,"delay":null}`, now-9000)), 0},
			{"too long to be read", push(fmt.Sprintf(`{"attempts":0,"createdAt":%d,"data":"%s"}`, now-900, strings.Repeat("x", 100_000))), 0},
			{"no time", push(`{"pushedAt":NaN}`), 0},
			{"no time in this century", push(`{"createdAt":-5}`), 0},
		} {
			a.redis(t, c.given...)
			s := w.look(t)
			if seconds := time.Now().Unix() - now; (s.OldestSeconds == nil) != (c.want < 0) || s.OldestSeconds != nil && (*s.OldestSeconds < c.want || *s.OldestSeconds > c.want+seconds+1) {
				t.Errorf("%s: %s, wanted %d", c.what, told(s.OldestSeconds), c.want)
			}
			a.redis(t, "DEL", key, key+":delayed", key+":reserved")
		}
	})
	t.Run(onMariaDB, func(t *testing.T) {
		t.Parallel()
		a := newApp(t, onMariaDB)
		w := a.watch(t)
		a.dispatch(t, "Short", facts("n"), "--times=2")
		a.change(t, fmt.Sprintf("UPDATE jobs SET reserved_at = %d, available_at = %d", now-790, now-5000)) // 90 of them were its own
		if s := w.look(t); s.OldestSeconds == nil || *s.OldestSeconds < 700 || *s.OldestSeconds > 760 {
			t.Errorf("expired: %s, wanted 700", told(s.OldestSeconds))
		}
		a.change(t, fmt.Sprintf("UPDATE jobs SET reserved_at = NULL, available_at = %d LIMIT 1", now-900))
		if s := w.look(t); s.OldestSeconds == nil || *s.OldestSeconds < 900 || *s.OldestSeconds > 960 {
			t.Errorf("ready: %s, wanted 900", told(s.OldestSeconds))
		}
	})
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

// Nothing of an exception that writes itself in its own way is told.
func TestMonitorNamesExceptions(t *testing.T) {
	t.Parallel()
	a := newApp(t, onMariaDB)
	for _, text := range []string{
		"", "PLANTED", "PLANTED was refused", "4111: PLANTED", "App\\\\Refused: PLANTED", "PDOException in /app/x.php:1", "A\nPLANTED: x", "PLANTED:x",
	} {
		a.change(t, "INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES (uuid(), 'database', 'default', '{}', '"+text+"', now())")
	}
	s := a.watch(t).look(t)
	if got, want := fmt.Sprint(s.Failing), `[{{other other} 6} {{other App\Refused} 1} {{other PDOException} 1}]`; got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
}
