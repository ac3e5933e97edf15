// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

// beanstalk is a client of the server itself.
type beanstalk struct {
	net.Conn
	lines *bufio.Scanner
}

func dialBeanstalk(t *testing.T) *beanstalk {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+must[string](t)(beanstalkdPort()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &beanstalk{conn, bufio.NewScanner(conn)}
}

func (b *beanstalk) line(t *testing.T) string {
	t.Helper()
	_ = b.SetReadDeadline(time.Now().Add(patience))
	if !b.lines.Scan() {
		t.Fatalf("beanstalkd says no more: %v", b.lines.Err())
	}
	return b.lines.Text()
}

// ask says one command and returns the first words of the answer, which must
// begin as wanted.
func (b *beanstalk) ask(t *testing.T, command, want string) []string {
	t.Helper()
	if _, err := fmt.Fprintf(b, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	answer := b.line(t)
	if !strings.HasPrefix(answer, want) {
		t.Fatalf("%s: %q, wanted %q", command, answer, want)
	}
	return strings.Fields(answer)
}

// reserve takes one job, and returns its number.
func (b *beanstalk) reserve(t *testing.T) string {
	t.Helper()
	id := b.ask(t, "reserve-with-timeout 5", "RESERVED")[1]
	b.line(t) // the payload
	return id
}

// The numbers against beanstalkd's own, asked on a connection of each look:
// clients from Pheanstalk 5 on do not notice that the server was started again.
func TestMonitorCountsBeanstalkd(t *testing.T) {
	t.Parallel()
	a := newApp(t, onBeanstalkd)
	g := newGate(t, must[string](t)(beanstalkdPort()))
	a.env = dedupe(append(a.env, "BEANSTALKD_PORT="+g.port))
	w, tube := a.watch(t), filepath.Base(a.dir)
	w.want(t, tube, map[string]int{"ready": 0, "delayed": 0, "reserved": 0, "depth": 0})
	a.dispatch(t, "Short", facts("n"), "--times=9")
	a.dispatch(t, "Short", facts("n"), "--times=3", "--queue=other"+tube)
	b := dialBeanstalk(t)
	b.ask(t, "watch "+tube, "WATCHING")
	b.ask(t, "use "+tube, "USING")
	b.ask(t, "put 0 3600 90 2\r\n{}", "INSERTED")
	b.reserve(t)
	b.reserve(t)
	b.ask(t, "bury "+b.reserve(t)+" 0", "BURIED") // nobody will take it
	b.ask(t, "delete "+b.reserve(t), "DELETED")
	w.want(t, tube, map[string]int{"ready": 5, "delayed": 1, "reserved": 2, "depth": 7})
	for name := range w.metrics(t) {
		if strings.Contains(name, `status="due"`) || strings.Contains(name, `status="expired"`) {
			t.Errorf("%s: this driver has no such jobs", name)
		}
	}
	g.mu.Lock()
	before := len(g.conns)
	g.mu.Unlock()
	w.look(t)
	g.mu.Lock()
	after := len(g.conns)
	g.mu.Unlock()
	if after == before {
		t.Error("a look used the connection of the look before it")
	}
	g.shut()
	if away := w.look(t); away.State != monitor.Unknown || away.Depth != nil || !strings.Contains(away.Message, "connection refused") {
		t.Errorf("without a server: %+v", away)
	}
	g.open(t)
	w.want(t, tube, map[string]int{"ready": 5, "delayed": 1, "reserved": 2})
	a.dispatch(t, "Fails", facts("f"))
	a.artisan(t, "queue:work", "--stop-when-empty", "--tries=1", "--sleep=0")
	w.want(t, tube, map[string]int{"ready": 0, "delayed": 1, "reserved": 2})
	if s := w.look(t); s.Failed == nil || *s.Failed != 1 || s.Failing[0].Class != `App\Jobs\Fails` {
		t.Errorf("%+v", s)
	}
}

// failedRow is one failed job in the store of one file.
type failedRow struct {
	ID         string `json:"id"`
	Connection string `json:"connection"`
	Queue      string `json:"queue"`
	Payload    string `json:"payload"`
	Exception  string `json:"exception"`
	FailedAt   int64  `json:"failed_at_timestamp"`
}

// Rows of a file are told apart by their second and their id only.
func TestMonitorFailuresInFile(t *testing.T) {
	t.Parallel()
	a := newApp(t, onSQLite, "QUEUE_FAILED_DRIVER=file")
	path := filepath.Join(a.dir, "storage/framework/cache/failed-jobs.json")
	row := func(id string, at int64) failedRow {
		return failedRow{id, "database", "default", `{"displayName":"App\\Jobs\\Fails"}`, "RuntimeException: no in x.php:1", at}
	}
	a.dispatch(t, "Fails", facts("f"), "--times=2")
	a.artisan(t, "queue:work", "--stop-when-empty", "--tries=1", "--sleep=0")
	var rows []failedRow
	if err := json.Unmarshal([]byte(read(path)), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, read(path))
	}
	w, last := a.watch(t), rows[0].FailedAt
	if s := w.look(t); s.Failed == nil || *s.Failed != 2 {
		t.Errorf("of the last hour: %+v", s)
	}
	const name = `{queueworker="payments",class="App\\Jobs\\Fails",error="RuntimeException"}`
	for _, step := range []struct {
		what  string
		rows  []failedRow
		since string // failed since the watch began
	}{
		{"two hours old", append(rows, row("old", last-7200)), "0"},
		{"one more in the same second", append([]failedRow{row("a", last)}, rows...), "1"},
		{"nothing new", append([]failedRow{row("a", last)}, rows...), "1"},
		{"tried again, and failed", append([]failedRow{row("a", last+1)}, rows...), "2"},
		{"half written, as it reads", []failedRow{}, "2"},
		{"written, and one of a pod whose clock is behind", append([]failedRow{row("a", last+1), row("b", last-5)}, rows...), "3"},
	} {
		text, err := json.Marshal(step.rows)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		w.look(t)
		if found := w.metrics(t)["queueworker_failed_jobs_total"+name]; found != step.since {
			t.Fatalf("%s: %q failed since the watch began, wanted %q\n%s", step.what, found, step.since, w.log.text())
		}
	}
	const stored = `queueworker_failed_jobs_stored{queueworker="payments"}`
	if found := w.metrics(t)[stored]; found != "4" {
		t.Errorf("%q are stored, wanted 4", found)
	}
}
