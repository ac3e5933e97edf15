// SPDX-License-Identifier: Apache-2.0

// Package termination is the message that a worker container leaves behind: how
// it ended, and what job it ended with.
package termination

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// DefaultPath is where the kubelet looks for the message.
const DefaultPath = "/dev/termination-log"

// Version is the version of [Message] that this package writes and reads.
const Version = 1

// MaxBytes is how much of the message the kubelet keeps.
const MaxBytes = 4096

// longestText keeps any message below MaxBytes, even if every byte of the job's
// three texts, and of a reason three times as long, is written as an escape of
// six.
const longestText = 100

// Outcome is how a worker container ended.
type Outcome string

// The outcomes.
const (
	Drained   Outcome = "Drained"   // stopped when asked to, no job disturbed
	GraceCut  Outcome = "GraceCut"  // only ever provisional: nothing came after it, so the grace ended first
	Overran   Outcome = "Overran"   // the watchdog killed a job that its own limit did not end
	Killed    Outcome = "Killed"    // someone else killed the worker
	OOMKilled Outcome = "OOMKilled" // the kernel killed the worker for its memory
	Crashed   Outcome = "Crashed"   // the worker ended by itself without having been asked
)

// Job is the job that the worker was running.
type Job struct {
	UUID       string  `json:"uuid,omitempty"`
	Class      string  `json:"class,omitempty"`
	Queue      string  `json:"queue,omitempty"`
	Attempt    int     `json:"attempt,omitempty"`
	AgeSeconds float64 `json:"ageSeconds"`
}

// Message is the JSON document.
type Message struct {
	Version      int     `json:"v"`
	Outcome      Outcome `json:"outcome"`
	Provisional  bool    `json:"provisional,omitempty"` // written in advance, in case nothing can be written later
	Reason       string  `json:"reason,omitempty"`      // one line for a person
	DrainAt      string  `json:"drainAt,omitempty"`     // when the stop was asked for, RFC 3339
	DrainSeconds float64 `json:"drainSeconds"`          // from then to the worker's end
	ExitCode     int     `json:"exitCode"`              // the worker's: 128 + n for signal n
	Job          *Job    `json:"job,omitempty"`         // the job that was cut short
	WaitedFor    *Job    `json:"waitedFor,omitempty"`   // the last job that a drain let end, and its age when it was met
}

// Encode renders the message in at most MaxBytes, names cut where they are long.
func (m Message) Encode() []byte {
	m.Version = Version
	if len(m.Reason) > 3*longestText {
		m.Reason = strings.ToValidUTF8(m.Reason[:3*longestText-3], "") + "..."
	}
	m.Job, m.WaitedFor = m.Job.shortened(), m.WaitedFor.shortened()
	if m.Job != nil {
		m.WaitedFor = nil // there is room for one
	}
	text, err := json.Marshal(m)
	if err != nil { // an infinite age: cannot happen
		return []byte(`{"v":1,"outcome":"Crashed","reason":"the outcome cannot be encoded"}`)
	}
	return text
}

// Decode reads a message. What is not one, such as an application's own last
// words, is an error.
func Decode(text string) (Message, error) {
	var m Message
	if err := json.Unmarshal([]byte(strings.TrimSpace(text)), &m); err != nil {
		return Message{}, fmt.Errorf("not an agent's termination message: %w", err)
	}
	if m.Version != Version || m.Outcome == "" {
		return Message{}, fmt.Errorf("termination message has version %d and outcome %q", m.Version, m.Outcome)
	}
	return m, nil
}

// Write puts the message where the kubelet will look.
func Write(path string, m Message) error { return WriteText(path, m.Encode()) }

// WriteText puts a text of at most MaxBytes where the kubelet will look. The file is a bind mount,
// so it cannot be replaced, and is not made where there is none: then no kubelet
// is looking. One write holds it all, so that a kill leaves the old message or
// the new one.
func WriteText(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the termination message: %w", err)
	}
	defer file.Close()
	padded := bytes.Clone(text)
	if info, err := file.Stat(); err == nil && info.Size() > int64(len(text)) {
		padded = append(padded, strings.Repeat(" ", int(min(info.Size(), MaxBytes))-len(text))...)
	}
	if _, err := file.WriteAt(padded, 0); err != nil {
		return fmt.Errorf("write the termination message: %w", err)
	}
	if err := file.Truncate(int64(len(text))); err != nil {
		return fmt.Errorf("shorten the termination message: %w", err)
	}
	return nil
}

func (j *Job) shortened() *Job {
	if j == nil {
		return nil
	}
	job := *j
	job.UUID, job.Class, job.Queue = shorten(job.UUID, longestText), shorten(job.Class, longestText), shorten(job.Queue, longestText)
	return &job
}

// shorten keeps the end of a name, where classes differ.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "..." + strings.ToValidUTF8(text[len(text)-most+3:], "")
}
