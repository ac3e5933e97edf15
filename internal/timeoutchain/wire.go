// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WireEnv is the environment variable that carries the chain into the pod.
const WireEnv = "QUEUEWORKER_CHAIN"

// WireVersion is the version of [Wire] that this package writes and reads.
const WireVersion = 1

// Wire is what a pod acts on. Nothing else travels, so that changing a number
// that only warns restarts nobody. All numbers are seconds; 0 means none.
type Wire struct {
	Version           int     `json:"v"`
	Runtime           Runtime `json:"runtime"`
	Driver            Driver  `json:"driver,omitempty"`
	CallSeconds       int64   `json:"call,omitempty"`
	JobSeconds        int64   `json:"job,omitempty"`
	RetryAfterSeconds int64   `json:"retryAfter,omitempty"`
	GraceSeconds      int64   `json:"grace"`
	BeforeStopSeconds int64   `json:"beforeStop,omitempty"`
	PopSeconds        int64   `json:"pop,omitempty"`
	WatchdogSeconds   int64   `json:"watchdog,omitempty"`
}

// ToWire picks what the pod acts on.
func (c *Chain) ToWire() Wire {
	return Wire{
		Version:           WireVersion,
		Runtime:           c.Runtime,
		Driver:            c.Driver,
		CallSeconds:       c.Call(),
		JobSeconds:        c.Job.N(),
		RetryAfterSeconds: c.RetryAfter.N(),
		GraceSeconds:      c.GracePeriod(),
		BeforeStopSeconds: c.BeforeStop.N(),
		PopSeconds:        c.Pop(),
		WatchdogSeconds:   c.Watchdog(),
	}
}

// Encode renders the wire form; the same chain always gives the same text.
func (w Wire) Encode() string {
	text, err := json.Marshal(w)
	if err != nil { // strings and integers only: cannot happen
		return ""
	}
	return string(text)
}

// DecodeWire reads the wire form strictly: another version, an unknown or
// misspelt field, a number out of range or anything after the document is an
// error, since a process that guesses at its limits is worse than one that does
// not start.
func DecodeWire(text string) (Wire, error) {
	var w Wire
	if err := DecodeStrictly([]byte(text), &w); err != nil {
		return Wire{}, fmt.Errorf("%s is not a chain document: %w", WireEnv, err)
	}
	return w, w.validate()
}

// DecodeStrictly reads one of the documents that travel to a pod: a field that
// is not known and anything after the document are errors.
func DecodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

func (w Wire) validate() error {
	if w.Version != WireVersion {
		return fmt.Errorf("%s has version %d, this program reads version %d", WireEnv, w.Version, WireVersion)
	}
	switch w.Runtime {
	case Laravel, Horizon, Generic:
	default:
		return fmt.Errorf("%s names runtime %q, known are Laravel, Horizon and Generic", WireEnv, w.Runtime)
	}
	// Sums of a few links, so a few times the largest single number.
	const most = 1000 * MaxSeconds
	for _, field := range []struct {
		name string
		n    int64
	}{
		{"call", w.CallSeconds}, {"job", w.JobSeconds}, {"retryAfter", w.RetryAfterSeconds}, {"grace", w.GraceSeconds},
		{"beforeStop", w.BeforeStopSeconds}, {"pop", w.PopSeconds}, {"watchdog", w.WatchdogSeconds},
	} {
		if field.n < 0 || field.n > most {
			return fmt.Errorf("%s: %s is %d, allowed are 0 to %d", WireEnv, field.name, field.n, int64(most))
		}
	}
	return nil
}
