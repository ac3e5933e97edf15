// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package watch runs the PHP script that looks at the application's queues,
// judges what it says, and tells it to whoever asks.
package watch

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/queueworker/operator/internal/agent/artisan"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/monitor"
	"github.com/queueworker/operator/internal/timeoutchain"
)

//go:embed php/*.php
var embedded embed.FS

const (
	script   = "monitor.php"
	mostLine = 1 << 20 // bytes of one record

	// mostGrowth is how much larger than at its first look the script may become.
	mostGrowth = 16 << 20

	// floor is the least time between two starts.
	floor = 5 * time.Second
)

const (
	// DefaultPatience is how long the first look may take, the start of PHP included.
	DefaultPatience = 30 * time.Second

	// answerPatience is how long each later one may take. A client that knows a
	// limit gives a server up after at most 15 s: 5 s for an answer, and as long for
	// each of two connections instead of the one that is lost; the last question may
	// begin at second 6 (LONGEST in watch.php). One that knows none, such as that of
	// PostgreSQL, would wait for ever on a server that hangs.
	answerPatience = 25 * time.Second
)

// Cause is why a script was ended, or ended itself.
type Cause string

// The causes.
const (
	Grown  Cause = "memory"  // it holds too much
	Hung   Cause = "hang"    // it did not answer in time
	Died   Cause = "exit"    // it ended by itself
	Broken Cause = "failure" // the application does not start
	Garble Cause = "garbage" // what it says is not understood
)

// Causes are all of them.
func Causes() []Cause { return []Cause{Grown, Hung, Died, Broken, Garble} }

// Script is the PHP process, started again whenever it is gone.
type Script struct {
	PHP     []string // the words before artisan
	Artisan string
	Options []string // the words after artisan
	Scripts string   // where the PHP files are installed
	Dir     string   // working directory; empty = this process's
	Env     []string
	Config  monitor.Config
	Output  io.Writer // for what the application prints

	Restarts map[Cause]int64

	patience time.Duration // with the first look
	answers  time.Duration // with a later one
	floor    time.Duration
	running  *running
	started  time.Time
	cursor   string // of the failed jobs
}

// For plans the watch of the application that a worker's command starts.
func For(config monitor.Config, command []string) (*Script, error) {
	words, err := artisan.Read(config.Runtime, command)
	if err != nil {
		return nil, fmt.Errorf("%w: give the worker's command after \"--\", its words by themselves", err)
	}
	return &Script{
		PHP: words.PHP, Artisan: words.Artisan, Options: words.Options, Config: config,
		Restarts: map[Cause]int64{}, patience: DefaultPatience, answers: answerPatience, floor: floor, Output: io.Discard,
	}, nil
}

// Install writes the PHP files to a directory.
func Install(dir string) error {
	files, err := fs.Sub(embedded, "php")
	if err != nil {
		return err
	}
	return workdir.InstallPHP(dir, files)
}

// running is one process.
type running struct {
	cmd     *exec.Cmd
	ask     io.WriteCloser
	records chan Record
	faults  chan fault // one, after the last record
	first   int64      // bytes that it held at its first look
}

type fault struct {
	cause Cause
	err   error
}

// Look asks for one look and waits for it. What goes wrong ends the process; the
// next look starts another.
func (s *Script) Look(ctx context.Context) (Record, error) {
	if s.running == nil {
		if err := s.start(ctx); err != nil {
			return Record{}, err
		}
	}
	r := s.running
	_, _ = r.ask.Write([]byte("\n")) // a process that is gone is told below
	patience := s.patience
	if r.first > 0 {
		patience = s.answers
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case record := <-r.records:
		return s.took(record)
	case f := <-r.faults:
		select {
		case record := <-r.records: // it ended right after its record
			if record.Kind == "failed" {
				return s.took(record)
			}
		default:
		}
		err := s.end(f.cause, f.err)
		if f.cause == Died && r.first > 0 { // somebody killed it; another one can answer
			return s.Look(ctx)
		}
		return Record{}, err
	case <-ctx.Done():
		return Record{}, ctx.Err()
	case <-timer.C:
		return Record{}, s.end(Hung, fmt.Errorf("the script has not answered for %s: a server that it asks may hang", patience))
	}
}

func (s *Script) took(record Record) (Record, error) {
	if record.Kind == "failed" {
		return Record{}, s.end(Broken, errors.New("the application does not start: "+record.String()))
	}
	if record.Failed != nil {
		s.cursor = record.Failed.Cursor
	}
	if s.running.first == 0 {
		s.running.first = record.Memory
	}
	if record.Memory > s.running.first+mostGrowth {
		_ = s.end(Grown, nil)
	}
	return record, nil
}

// Close ends the process.
func (s *Script) Close() {
	if s.running != nil {
		s.running.kill()
		s.running = nil
	}
}

func (s *Script) end(cause Cause, err error) error {
	s.Restarts[cause]++
	s.Close()
	return err
}

// question is the script's argument, see monitor.php.
type question struct {
	Artisan    string   `json:"artisan"`
	Options    []string `json:"options"`
	Connection string   `json:"connection"`
	Queues     []string `json:"queues"`
	Horizon    bool     `json:"horizon"`
	RetryAfter int64    `json:"retryAfter"`
	Cursor     string   `json:"cursor"`
}

func (s *Script) start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.floor - time.Since(s.started)):
	}
	s.started = time.Now()
	text, err := json.Marshal(question{
		Artisan: s.Artisan, Options: s.Options, Connection: s.Config.Connection, Queues: s.Config.Queues,
		Horizon: s.Config.Runtime == timeoutchain.Horizon, RetryAfter: s.Config.RetryAfterSeconds, Cursor: s.cursor,
	})
	if err != nil { // texts and numbers only: cannot happen
		return err
	}
	records, write, err := os.Pipe()
	if err != nil {
		return err
	}
	words := append(slices.Clone(s.PHP), filepath.Join(s.Scripts, script), string(text))
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = s.Dir, s.Env, []*os.File{write}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.Output, s.Output, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ask, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	_ = write.Close()
	if err != nil {
		_ = records.Close()
		s.Restarts[Died]++
		return fmt.Errorf("PHP cannot be started: %w", err)
	}
	r := &running{cmd: cmd, ask: ask, records: make(chan Record, 1), faults: make(chan fault, 1)}
	go r.read(records)
	s.running = r
	return nil
}

// read takes records until the process says no more.
func (r *running) read(from *os.File) {
	defer from.Close()
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), mostLine)
	for lines.Scan() {
		record, err := parse(lines.Bytes())
		if err != nil {
			r.faults <- fault{Garble, err}
			return
		}
		select {
		case r.records <- record:
		default: // nobody asked for it
			r.faults <- fault{Garble, errors.New("a record that nobody asked for")}
			return
		}
	}
	if err := lines.Err(); err != nil {
		r.faults <- fault{Garble, err}
		return
	}
	r.faults <- fault{Died, errors.New("the script has ended")}
}

// kill ends the process and all that it started.
func (r *running) kill() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	_ = r.ask.Close()
	_ = r.cmd.Wait()
	// What a wrapper started is the monitor's own child now, where the monitor is the container's first process.
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if _, err := syscall.Wait4(-r.cmd.Process.Pid, nil, syscall.WNOHANG, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
		time.Sleep(wait)
	}
}
