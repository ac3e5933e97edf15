// SPDX-License-Identifier: Apache-2.0

//go:build linux

package watch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/kubeapi"
	"github.com/queueworker/operator/internal/agent/watch"
	"github.com/queueworker/operator/internal/monitor"
)

func config() monitor.Config {
	return monitor.Config{
		Version: 1, Namespace: "shop", Name: "payments", Runtime: "Laravel", IntervalSeconds: 1, StuckAfterSeconds: 10, MetricsAddress: ":1",
	}
}

func TestForTakesTheCommandApart(t *testing.T) {
	for _, c := range []struct {
		runtime, command      string
		php, artisan, options []string
	}{
		{"Laravel", "/entry.sh php -d x=1 artisan queue:work redis --force", []string{"/entry.sh", "php", "-d", "x=1"}, []string{"artisan"}, []string{"queue:work", "redis", "--force"}},
		{"Horizon", "php artisan horizon", []string{"php"}, []string{"artisan"}, []string{"horizon"}},
	} {
		given := config()
		given.Runtime = monitor.Config{}.Runtime + "Laravel"
		if c.runtime == "Horizon" {
			given.Runtime = "Horizon"
		}
		s, err := watch.For(given, strings.Fields(c.command))
		if err != nil || !reflect.DeepEqual([][]string{s.PHP, {s.Artisan}, s.Options}, [][]string{c.php, c.artisan, c.options}) {
			t.Errorf("%q: %+v, %v", c.command, s, err)
		}
	}
	for _, command := range []string{"", "queue:work", "artisan queue:work", "php artisan horizon"} {
		if _, err := watch.For(config(), strings.Fields(command)); err == nil || !strings.Contains(err.Error(), "queue:work") {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// speaker is a shell in the place of PHP.
func speaker(t *testing.T, script string) *watch.Script {
	t.Helper()
	path := filepath.Join(t.TempDir(), "php")
	if err := os.WriteFile(path, []byte(script+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := watch.For(config(), []string{"/bin/sh", path, "artisan", "queue:work"})
	if err != nil {
		t.Fatal(err)
	}
	s.Scripts, s.Env = t.TempDir(), os.Environ()
	s.Hasty(time.Minute, 0)
	t.Cleanup(s.Close)
	return s
}

const answer = `echo "{\"v\":1,\"kind\":\"look\",\"rss\":${rss:-1000000},\"queues\":[{\"name\":\"q\",\"ready\":$$}]}" >&3`

func pid(t *testing.T, s *watch.Script) int64 {
	t.Helper()
	record, err := s.Look(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return *record.Queues[0].Ready // the shell tells its own number
}

func TestOneProcessAnswersManyLooks(t *testing.T) {
	s := speaker(t, "while read -r line; do "+answer+"; done")
	first := pid(t, s)
	for range 20 {
		if again := pid(t, s); again != first {
			t.Fatalf("process %d answers after %d", again, first)
		}
	}
	if len(s.Restarts) != 0 {
		t.Errorf("%v", s.Restarts)
	}
}

// A script that was killed between two looks costs none.
func TestKilledBetweenLooks(t *testing.T) {
	s := speaker(t, "while read -r line; do "+answer+"; done")
	first := pid(t, s)
	if err := syscall.Kill(int(first), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if next := pid(t, s); next == first || s.Restarts[watch.Died] != 1 {
		t.Errorf("process %d after %d, %v", next, first, s.Restarts)
	}
}

// However a script ends, the look says so, and the next look has another one.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		script string // of the first process
		cause  watch.Cause
		said   string
	}{
		"hangs":              {"read -r line; sleep 600", watch.Hung, "has not answered for"},
		"ends":               {"read -r line; exit 0", watch.Died, "has ended"},
		"is killed":          {"kill -9 $$", watch.Died, "has ended"},
		"does not start":     {`echo '{"v":1,"kind":"failed","class":"PDOException","hint":"access denied"}' >&3; exit 0`, watch.Broken, "the application does not start: PDOException (access denied)"},
		"names no class":     {`echo '{"v":1,"kind":"failed","class":"card 4111"}' >&3; sleep 600`, watch.Broken, "the application does not start: other"},
		"prints":             {"echo Warning >&3; sleep 600", watch.Garble, "no record"},
		"another version":    {`echo '{"v":2,"kind":"look"}' >&3; sleep 600`, watch.Garble, "version 2"},
		"talks":              {`for i in $(seq 100); do echo '{"v":1,"kind":"look"}' >&3; done; sleep 600`, watch.Garble, ""},
		"leaves a process":   {"sleep 600 & read -r line; exit 0", watch.Hung, ""},
		"a line with no end": {`head -c 3000000 /dev/zero | tr '\0' x >&3; sleep 600`, watch.Garble, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := filepath.Join(t.TempDir(), "mark")
			s := speaker(t, "if mkdir "+mark+"; then\n"+c.script+"\nfi\nwhile read -r line; do "+answer+"; done")
			if c.cause == watch.Hung {
				s.Hasty(3*time.Second, 0)
			}
			var err error
			for range 200 { // one that talks too much may be heard at a later look
				if _, err = s.Look(context.Background()); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.said) || s.Restarts[c.cause] != 1 || len(s.Restarts) != 1 {
				t.Fatalf("%v, %v", err, s.Restarts)
			}
			s.Hasty(time.Minute, 0)
			pid(t, s)
		})
	}
	t.Run("is not there", func(t *testing.T) {
		s := speaker(t, "")
		s.PHP = []string{"/nowhere/php"}
		if _, err := s.Look(context.Background()); err == nil || !strings.Contains(err.Error(), "/nowhere/php") {
			t.Errorf("%v", err)
		}
	})
}

// The first look has the time that an application takes to start, a later one
// only what its servers may take.
func TestALaterLookHasLessTime(t *testing.T) {
	s := speaker(t, "read -r line; sleep 2; "+answer+"; read -r line; sleep 600")
	s.Pressed(time.Second)
	pid(t, s)
	begin := time.Now()
	_, err := s.Look(context.Background())
	if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "has not answered for 1s") || took > 30*time.Second || s.Restarts[watch.Hung] != 1 {
		t.Errorf("%v after %s, %v", err, took, s.Restarts)
	}
}

// A script that grows answers, and makes room for a small one.
func TestGrowth(t *testing.T) {
	const grow = "rss=30000000; while read -r line; do " + answer + "; rss=$((rss + $STEP)); done"
	for step, looks := range map[string]int{"16777216": 3, "16777217": 2} {
		s := speaker(t, "STEP="+step+"\n"+grow)
		first := pid(t, s)
		for i := 2; i <= looks; i++ {
			if again := pid(t, s); again != first || i < looks && len(s.Restarts) > 0 {
				t.Errorf("step %s, look %d: process %d after %d, %v", step, i, again, first, s.Restarts)
			}
		}
		if next := pid(t, s); next == first || s.Restarts[watch.Grown] != 1 {
			t.Errorf("step %s: process %d after %d, %v", step, next, first, s.Restarts)
		}
	}
}

func TestStartsHaveAFloor(t *testing.T) {
	s := speaker(t, "exit 0")
	s.Hasty(time.Minute, 300*time.Millisecond)
	begin := time.Now()
	for range 4 {
		if _, err := s.Look(context.Background()); err == nil {
			t.Fatal("it has answered")
		}
	}
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("four starts in %s", took)
	}
}

// What cannot be told is not told, and nobody is ready before the first line.
func TestMetricsOfNothing(t *testing.T) {
	w := &watch.Watcher{Config: config(), Script: speaker(t, `if mkdir $0.d; then exit; fi; while read -r line; do echo '{"v":1,"kind":"look","queues":[{"name":"a","ready":null},{"name":"b","ready":0}],"troubles":[{"what":"a","class":"RedisException","hint":"connection refused"}]}' >&3; done`), Log: &strings.Builder{}}
	ask := func(path string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder
	}
	if got := ask("/metrics").Body.String(); got != "" {
		t.Errorf("before the first look: %s", got)
	}
	for i, ready := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		w.Once(context.Background())
		text := ask("/metrics").Body.String()
		if got := ask("/healthz").Code; got != ready {
			t.Errorf("look %d: readiness %d, wanted %d", i, got, ready)
		}
		if !strings.Contains(text, `queueworker_queue_state{queueworker="payments",state="Unknown"} 1`) || !strings.Contains(text, `queueworker_monitor_up{queueworker="payments"} 0`) ||
			strings.Contains(text, "queueworker_queue_jobs") || strings.Contains(text, "depth") {
			t.Errorf("look %d:\n%s", i, text)
		}
	}
}

// Jobs wait that are not ready: nobody says that the oldest has waited for 0 seconds.
func TestMetricsOfWaitingJobs(t *testing.T) {
	const name = `queueworker_queue_oldest_seconds{queueworker="payments",queue="q"}`
	for numbers, want := range map[string]string{
		`"ready":0`: " 0\n", `"ready":0,"due":0,"expired":0,"reserved":3`: " 0\n",
		`"ready":0,"due":2`: "", `"ready":0,"expired":2`: "", `"ready":2`: "", `"ready":0,"due":2,"oldest":7`: " 7\n",
	} {
		w := &watch.Watcher{Config: config(), Script: speaker(t, `while read -r line; do echo '{"v":1,"kind":"look","queues":[{"name":"q",`+numbers+`}]}' >&3; done`), Log: &strings.Builder{}}
		w.Once(context.Background())
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if _, after, found := strings.Cut(recorder.Body.String(), name); found != (want != "") || !strings.HasPrefix(after, want) {
			t.Errorf("%s: %t, %.10q, wanted %q", numbers, found, after, want)
		}
	}
}

// What stays wrong is said once, however much of it there is; what is wrong again is said again.
func TestSaysWhatIsWrongOnce(t *testing.T) {
	dir := t.TempDir()
	log := &strings.Builder{}
	trouble := `{"what":"a","class":"RedisException","hint":"loading"},{"what":"b","class":"RedisException","hint":"loading"}`
	script := speaker(t, `while read -r line; do test -e `+dir+`/well && t= || t='`+trouble+`'; echo "{\"v\":1,\"kind\":\"look\",\"queues\":[{\"name\":\"a\"}],\"troubles\":[$t]}" >&3; done`)
	w := &watch.Watcher{Config: config(), Script: script, API: &server{err: os.ErrDeadlineExceeded}, Log: log}
	said := func(want int) {
		t.Helper()
		for range 5 {
			w.Once(context.Background())
		}
		if got := strings.Count(log.String(), "cannot be asked: RedisException"); got != want {
			t.Errorf("%d lines, wanted %d:\n%s", got, want, log.String())
		}
	}
	said(2)
	if err := os.WriteFile(dir+"/well", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	said(2)
	if err := os.Remove(dir + "/well"); err != nil {
		t.Fatal(err)
	}
	said(4)
}

// A monitor that nobody answers goes on telling so; one that looks no more does not.
func TestReadyWhileItLooks(t *testing.T) {
	w := &watch.Watcher{Config: config(), Script: speaker(t, "exit 0"), Log: &strings.Builder{}}
	now := time.Now()
	long := now.Add(-4*w.Config.Interval() - time.Minute)
	for _, c := range []struct {
		ended, answered time.Time
		ready           int
	}{
		{now, time.Time{}, http.StatusServiceUnavailable}, {now, now, http.StatusOK}, {now, long, http.StatusOK}, {long, long, http.StatusServiceUnavailable},
	} {
		w.Looked(c.ended, c.answered)
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if recorder.Code != c.ready {
			t.Errorf("%+v: %d", c, recorder.Code)
		}
	}
}

// server answers as the API server would.
type server struct {
	object kubeapi.Object
	err    error
	writes []monitor.Status
}

func (s *server) Get(context.Context) (kubeapi.Object, error) { return s.object, s.err }

func (s *server) Apply(_ context.Context, status monitor.Status, c monitor.Condition) error {
	s.writes = append(s.writes, status)
	s.object.Status.QueueState, s.object.Status.Conditions = &status, []monitor.Condition{c}
	return nil
}

// The status is written when something changes, and by no look otherwise.
func TestWritesOnChangeOnly(t *testing.T) {
	dir := t.TempDir()
	number := func(n string) {
		if err := os.WriteFile(dir+"/n.tmp", []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/n.tmp", dir+"/n"); err != nil {
			t.Fatal(err)
		}
	}
	number("100")
	script := speaker(t, `mkdir `+dir+`/late && exit; while read -r line; do echo "{\"v\":1,\"kind\":\"look\",\"queues\":[{\"name\":\"a\",\"ready\":$(cat `+dir+`/n),\"head\":\"h\",\"oldest\":5}]}" >&3; done`)
	api := &server{}
	api.object.Metadata.Generation, api.object.Status.ReadyReplicas = 3, 1
	w := &watch.Watcher{Config: config(), Script: script, API: api, Log: &strings.Builder{}}
	looks := func(n, writes int, what string) {
		t.Helper()
		before := len(api.writes)
		for range n {
			w.Once(context.Background())
		}
		if got := len(api.writes) - before; got != writes {
			t.Errorf("%s: %d writes in %d looks, wanted %d: %+v", what, got, n, writes, api.writes[before:])
		}
	}
	looks(1, 0, "nothing was said yet")
	looks(20, 1, "nothing changes")
	number("110")
	looks(5, 0, "a small step")
	number("200")
	looks(5, 1, "a large step")
	api.object.Metadata.Generation = 4
	looks(5, 1, "a new generation")
	api.object.Status.QueueState = nil
	looks(5, 1, "somebody took it away")
	api.err = os.ErrDeadlineExceeded
	looks(5, 0, "nobody to write to")
	api.err = nil
	zero := int64(0)
	api.object.Spec.Replicas = &zero
	looks(5, 1, "scaled to zero")
	last := api.writes[len(api.writes)-1]
	if last.State != monitor.Paused || api.object.Consuming().Status != "False" || api.object.Consuming().Reason != "Paused" || api.object.Consuming().ObservedGeneration != 4 {
		t.Errorf("%+v, %+v", last, api.object.Consuming())
	}
	// Another watcher goes on with it.
	since := last.Since.Add(-time.Minute)
	last.Since = since
	api.object.Status.QueueState = &last
	w = &watch.Watcher{Config: config(), Script: script, API: api, Log: &strings.Builder{}}
	looks(3, 0, "another watcher")
	old := last
	old.ObservedTime = time.Now().Add(-time.Hour)
	api.object.Status.QueueState = &old
	w = &watch.Watcher{Config: config(), Script: script, API: api, Log: &strings.Builder{}}
	looks(1, 1, "one that comes late")
	if got := api.object.Status.QueueState.Since; !got.After(since) {
		t.Errorf("since %s, from an hour ago", got)
	}
}
