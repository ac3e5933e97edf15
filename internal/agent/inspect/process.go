// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/queueworker/operator/internal/preflight"
)

const (
	mostFacts = 4 << 20 // bytes of one process
	mostLine  = 1 << 20 // bytes of one record
	keptWords = 8 << 10 // bytes of what the application printed last

	// afterEnd is how long what a dead process left behind may hold its pipes.
	afterEnd = time.Second
)

// process is one PHP process.
type process struct {
	words []string
	dir   string
	env   []string
	limit time.Duration
}

// read runs the process to its end and returns what it said.
func (p process) read() preflight.Reading {
	var r preflight.Reading
	facts, write, err := os.Pipe()
	if err != nil {
		r.Ending = notStarted(err.Error())
		return r
	}
	defer facts.Close()
	kills := oomKills()
	printed := &tail{}
	cmd := exec.Command(p.words[0], p.words[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = p.dir, p.env, []*os.File{write}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = printed, printed, afterEnd
	ownGroup(cmd)
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		r.Ending = notStarted(startProblem(p.words[0], err))
		return r
	}
	var late atomic.Bool
	stop := time.AfterFunc(p.limit, func() { late.Store(true); killGroup(cmd) })
	var ended = make(chan error, 1)
	go func() {
		err := cmd.Wait()
		killGroup(cmd) // what it left behind
		_ = facts.SetReadDeadline(time.Now().Add(afterEnd))
		ended <- err
	}()
	readErr := collect(facts, &r)
	if readErr != nil {
		killGroup(cmd)
	}
	exit := <-ended
	stop.Stop()
	r.Ending = p.ending(r.Ending, readErr, exit, printed.lastLine())
	switch {
	case late.Load():
		r.Ending.How = preflight.TimedOut
	case r.Ending.How == preflight.Killed && oomKills() > kills:
		r.Ending.How = preflight.OOMKilled
	}
	return r
}

var errTooMuch = errors.New("too many facts")

// collect takes the records in until the process ends.
func collect(from io.Reader, r *preflight.Reading) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), mostLine)
	total := 0
	for lines.Scan() {
		if total += len(lines.Bytes()); total > mostFacts {
			return errTooMuch
		}
		if err := r.Add(lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return errTooMuch
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil // somebody else holds the pipe, the process is gone
	default:
		return err
	}
}

// ending is how the process ended, as it says itself or as it was seen.
func (p process) ending(said preflight.Ending, readErr, exit error, last string) preflight.Ending {
	if said.Failure.Message == "" {
		said.Failure.Message = last
	}
	var status *exec.ExitError
	switch {
	case errors.Is(readErr, errTooMuch):
		said.How = preflight.TooMuch
	case readErr != nil:
		said.How, said.Failure = preflight.Unread, preflight.Failure{Message: readErr.Error()}
	case errors.As(exit, &status) && status.ExitCode() < 0 && said.How != preflight.Ended:
		said.How = preflight.Killed
	case said.How == "":
		said.How = preflight.Failed
		said.Failure.Message = fmt.Sprintf("%q did not run our PHP file: %s", strings.Join(p.words[:len(p.words)-2], " "), cmp.Or(last, "it said nothing"))
	}
	return said
}

func notStarted(message string) preflight.Ending {
	return preflight.Ending{How: preflight.NotStarted, Failure: preflight.Failure{Message: message}}
}

func startProblem(program string, err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no program %q in the image", program)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("program %q may not be started by this user", program)
	default:
		return fmt.Sprintf("program %q cannot be started: %v", program, err)
	}
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(text []byte) (int, error) {
	t.kept = append(t.kept, text...)
	if len(t.kept) > 2*keptWords {
		t.kept = bytes.Clone(t.kept[len(t.kept)-keptWords:])
	}
	return len(text), nil
}

const longestWords = 300

func (t *tail) lastLine() string {
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(t.kept), "?"), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return line[:min(len(line), longestWords)]
		}
	}
	return ""
}
